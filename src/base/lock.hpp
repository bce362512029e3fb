// Lock: a futex lock that fork() cannot leave stuck. Locked: its RAII guard. Used on the slow
// paths of all rooms, on any thread.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/syscalls.hpp"

namespace dft {

// Set on a thread that has called vfork(), to the pid it had then: a vfork child runs in its
// parent's memory and holds its parent's locks.
extern thread_local constinit std::int32_t t_vforked_from
    __attribute__((tls_model("initial-exec")));

// The lock word holds the pid of the owner. A child forked while another thread held the lock
// finds a foreign pid and takes the lock over; the data it guards is consistent at every instant.
class Lock {
 public:
  [[nodiscard]] bool try_lock() noexcept {
    const auto mine =
        static_cast<std::uint32_t>(t_vforked_from != 0 ? t_vforked_from : sys::process_id());
    std::uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, mine, std::memory_order_acquire)) return true;
    return seen != mine && word_.compare_exchange_strong(seen, mine, std::memory_order_acquire);
  }
  void lock() noexcept {
    while (!try_lock()) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      const std::uint32_t seen = word_.load(std::memory_order_relaxed);
      if (seen != 0) sys::futex_wait(&word_, seen, 2'000'000);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  void unlock() noexcept {
    word_.store(0, std::memory_order_release);
    if (waiting_.load(std::memory_order_relaxed) != 0) sys::futex_wake(&word_, 1);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace dft
