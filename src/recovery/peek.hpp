// A look at the spool of a process that runs: what it has recorded last, without its noticing.
// Called by `dftracer top`, through api/cli_peek.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sink/mmap_buffer.hpp"

namespace dft::recovery {

struct Peeked {
  std::uint64_t run;
  std::uint64_t key;         // of the process
  std::uint64_t written;     // lines that are in its trace, opening records included
  std::uint64_t waiting;     // records that are not there yet
  std::uint64_t lost;        // events that could not be kept
  std::uint64_t trace_size;  // bytes of the trace that are whole
  std::uint32_t pid;
  std::uint32_t life;                // 0 runs, 1 gone, 2 cannot be told from here
  std::uint32_t time_divisor_log10;  // of the times in the lines, from nanoseconds
  std::uint32_t opening;             // bytes of `lines` that are the trace's opening records
  char host[256];
  char trace_name[256];
};

// Fills in what the head says, and as lines of a trace: the opening records, then the newest
// records of each thread, at most a chunk of each. Opens for reading only, and copies; a chunk that
// was given to another thread meanwhile is left out. 0, or -errno; -EAGAIN if it is not complete
// yet.
int peek(const char* directory, const char* name, Peeked& out, sink::MmapBuffer& lines) noexcept;

}  // namespace dft::recovery
