// What passed through a thread's intercepted calls, recorded or not: one line of memory a thread.
// Added to on the program's threads; summed up when a process ends.
#pragma once
#include <atomic>
#include <cstdint>

namespace dft::buffer {

// Only its thread writes, so plain loads and stores do; whoever sums up may be a call behind.
struct alignas(64) Tally {
  std::atomic<std::uint64_t> recorded;  // calls
  std::atomic<std::uint64_t> filtered;  // and those outside the directories that are traced
  std::atomic<std::uint64_t> read;      // bytes
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> taken;

  [[gnu::always_inline]] static void add(std::atomic<std::uint64_t>& to, std::uint64_t n) noexcept {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

struct Sums {
  std::uint64_t calls;
  std::uint64_t filtered;
  std::uint64_t read;
  std::uint64_t written;
};

// A thread's own, or one that is shared when there is no memory: never nullptr. It keeps its counts
// when it is given back.
Tally* take_tally() noexcept;
void give_tally(Tally* tally) noexcept;
Sums sum_tallies() noexcept;
// In a forked child: only the calling thread is left, and nothing has passed yet.
void reset_tallies(const Tally* kept) noexcept;

}  // namespace dft::buffer
