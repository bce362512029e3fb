// Writes a trace in the formats of other tools. Called by the command `export`, on one thread;
// blocks are parsed on several.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/scan.hpp"

namespace dft::reader {

struct Exported {
  Outcome outcome;
  std::uint64_t events = 0;   // written: of the program, as the readers count them
  std::uint64_t records = 0;  // written in all; of Chrome, metadata too
  std::uint64_t bytes = 0;
};

// Throws std::system_error if the file cannot be written. `out` is replaced once it is whole.
// Strict JSON, {"traceEvents":[...]}, in memory that does not grow.
Exported export_chrome(const std::vector<std::string>& paths, const std::string& out,
                       unsigned threads, Control* control);
// Both need spans in the order of their beginning, and so keep about 100 bytes an event.
Exported export_perfetto(const std::vector<std::string>& paths, const std::string& out,
                         unsigned threads, Control* control);
Exported export_speedscope(const std::vector<std::string>& paths, const std::string& out,
                           unsigned threads, Control* control);

// Counts what such a file holds, so that both sides can be compared.
std::uint64_t count_perfetto(const std::string& path);
std::uint64_t count_speedscope(const std::string& path);

}  // namespace dft::reader
