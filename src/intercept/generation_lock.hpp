// A lock for short looks at shared tables on the hot path: no system call, and never a deadlock.
// Held by the generation of its thread, so that a forked child takes over what a thread of its
// parent held. On the program's threads, also in signal handlers, which find it busy.
#pragma once
#include <atomic>
#include <cstdint>

namespace dft::intercept {

class GenerationLock {
 public:
  // False if another thread holds it for long, or this one does.
  [[nodiscard]] bool lock(std::uint64_t generation) noexcept {
    constexpr int kTries = 200;
    for (int i = 0; i < kTries; ++i) {
      std::uint64_t holder = 0;
      if (owner_.compare_exchange_strong(holder, generation, std::memory_order_acquire))
        return true;
      // A thread of another generation does not exist any more.
      if (holder != generation &&
          owner_.compare_exchange_strong(holder, generation, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void unlock() noexcept { owner_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> owner_{0};
};

}  // namespace dft::intercept
