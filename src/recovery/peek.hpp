// Looks at the spool of a running process: what it recorded last, without disturbing it.
// Called by `dftracer top`, through api/cli_peek.cpp; any thread of that process.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sink/mmap_buffer.hpp"

namespace dft::recovery {

struct Peeked {
  std::uint64_t run;
  std::uint64_t key;         // of the process (process_key)
  std::uint64_t written;     // lines in its trace, including the preamble
  std::uint64_t waiting;     // records that are not in the trace yet
  std::uint64_t lost;        // events that could not be kept
  std::uint64_t trace_size;  // whole bytes of the trace
  std::uint32_t pid;
  std::uint32_t life;                // 0 runs, 1 gone, 2 unknown
  std::uint32_t time_divisor_log10;  // unit of the times in the lines, from nanoseconds
  std::uint32_t opening;             // bytes of `lines` that are the preamble
  char host[256];
  char trace_name[256];
};

// Fills in what the head contains and, as trace lines, the preamble and then the newest records of
// each thread, at most one chunk per thread. Opens the file read-only and copies it; skips a chunk
// that was reused meanwhile. Returns 0, or -errno; -EAGAIN if the spool is not complete yet.
int peek(const char* directory, const char* name, Peeked& out, sink::MmapBuffer& lines) noexcept;

}  // namespace dft::recovery
