// Counts of a thread's intercepted calls, recorded or not: one cache line per thread.
// Updated on the program's threads; summed when a process ends.
#pragma once
#include <atomic>
#include <cstdint>

namespace dft::buffer {

// Only the owning thread writes, so plain loads and stores suffice; sums may lag by one call.
struct alignas(64) Tally {
  std::atomic<std::uint64_t> recorded;  // calls
  std::atomic<std::uint64_t> filtered;  // calls outside the traced directories
  std::atomic<std::uint64_t> read;      // bytes
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> taken;

  [[gnu::always_inline]] static void add(std::atomic<std::uint64_t>& to, std::uint64_t n) noexcept {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

struct TallySums {
  std::uint64_t calls;
  std::uint64_t filtered;
  std::uint64_t read;
  std::uint64_t written;
};

// A tally for the calling thread, or a shared one if there is no memory: never nullptr. A
// returned tally keeps its counts.
Tally* take_tally() noexcept;
void give_tally(Tally* tally) noexcept;
TallySums sum_tallies() noexcept;
// In a forked child: only the calling thread is left, and it has made no calls yet.
void reset_tallies(const Tally* kept) noexcept;

}  // namespace dft::buffer
