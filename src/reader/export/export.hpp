// Writes a trace in the formats of other tools. Called by the commands `export` and `view`, on one
// thread; blocks are parsed on several.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reader/input/scan.hpp"
#include "reader/write/out_file.hpp"

namespace dft::reader {

struct Exported {
  ScanResult scan_result;
  std::uint64_t events = 0;   // written: of the program, as the readers count them
  std::uint64_t records = 0;  // written in all; of Chrome, metadata too
  std::uint64_t added = 0;    // written beside them: names and places of processes and threads
  std::uint64_t bytes = 0;
  bool too_large = false;  // and given up
  std::set<std::int64_t> pids;
};

// What of a trace a viewer gets.
struct View {
  bool on = false;  // no metadata but names
  // Nanoseconds after the first event.
  std::optional<std::int64_t> begin;
  std::optional<std::int64_t> end;
  std::set<std::int64_t> pids;  // empty: all
  std::uint64_t limit = 0;      // bytes; 0: any number
};

// All throw std::system_error if the file cannot be written. It is put in its place once it is
// whole.
// Strict JSON, {"traceEvents":[...]}. The trace is read twice, and 48 bytes a record are kept
// meanwhile: what is written first depends on what is read last.
Exported export_chrome(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                       Control* control, const View& view = {});
// Both keep about 100 bytes an event, and the arguments.
Exported export_perfetto(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                         Control* control);
Exported export_speedscope(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                           Control* control);

// Time in I/O calls by stack. `added` is the sum of its nanoseconds.
Exported export_folded(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                       Control* control);

// Counts what such a file holds, so that both sides can be compared.
std::uint64_t count_perfetto(const std::string& path);
std::uint64_t count_speedscope(const std::string& path);
std::uint64_t count_folded(const std::string& path);  // nanoseconds

}  // namespace dft::reader
