// How much of a trace is kept in memory at most. Checked by all that keep a row for each process.
// Any thread.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>

namespace dft::reader {

// A process takes about 1 KB in the statistics and in Python. A number that is read from a damaged
// or foreign file may be any: without a bound, memory would be the bound.
inline constexpr std::size_t kMostProcesses = std::size_t{1} << 20;

inline void check_processes(std::size_t known, std::size_t most = kMostProcesses) {
  if (known < most) return;
  throw std::runtime_error("the trace has more than " + std::to_string(most) +
                           " processes, which is the most that is read at a time");
}

}  // namespace dft::reader
