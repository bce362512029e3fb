// Facts about the process, and the lines that open its trace.
// Called when a session starts and in a forked child at its first event, on that thread.
#pragma once
#include <cstdint>
#include <string_view>

#include "buffer/layout.hpp"
#include "sink/mmap_buffer.hpp"

namespace dft::session {

// Gathered once. A forked child keeps its parent's: gathering again may need locks that a thread of
// the parent held at the fork.
struct ProcessFacts {
  sink::MmapBuffer command;  // argv joined with ';'
  char exec[256];            // the word of argv that stands for the program
  char label[256];           // what a viewer shows as the name of the process
  long zone_offset_seconds;  // local time minus UTC
};
// `mask`: without what looks like a secret.
void gather(ProcessFacts& facts, bool mask) noexcept;

struct Preamble {
  const ProcessFacts* facts;
  const buffer::Owner* owner;
  std::uint64_t host_hash;
  std::uint64_t run;
  std::uint64_t process_key;
  std::uint64_t start_ns;
  std::uint64_t first_id;  // of six; further metadata takes ids from extra_id on
  std::uint64_t extra_id;
  std::uint32_t time_divisor_log10;
  int rank;         // -1: none
  bool opens_file;  // begins with the line `[`
  bool details;     // command line, directory and the rest
  bool affinity;
};
// Appends the lines and returns how many; 0 when there is no memory. `cwd` is looked up here.
std::uint64_t write_preamble(const Preamble& what, sink::MmapBuffer& out) noexcept;

}  // namespace dft::session
