// The kernel's samples of page faults: rings that it fills without a system call of the program
// (perf_event_open). The descriptors belong to the writer's thread, whose table the program cannot
// see; the rings are memory of the process.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::intercept {

struct FaultSample {
  std::uint32_t thread;
  bool finished;       // a major fault has ended; otherwise a fault begins
  std::uint64_t time;  // of the wall clock, in nanoseconds
  std::uint64_t address;
};

// On the writer's thread. False if the kernel does not permit it.
bool open_fault_rings() noexcept;
// Threads that have appeared meanwhile, where the kernel does not add them by itself.
void follow_threads() noexcept;
// On the same thread. Samples that were not taken are gone.
void close_fault_rings() noexcept;
// In a forked child, which has neither.
void forget_fault_rings() noexcept;

// Takes up to `most` samples out of the rings, in the order of each ring. `lost` grows by those
// for which a ring had no room. One thread at a time.
std::size_t take_samples(FaultSample* to, std::size_t most, std::uint64_t& lost) noexcept;

}  // namespace dft::intercept
