// What every way off the hot path needs: signals held back, and locks that a fork cannot leave
// stuck. Used by the slow paths of all rooms, on the program's threads and on the writer thread.
#pragma once
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "record/sys.hpp"

namespace dft {

// How many slow paths this thread is in. What the program's allocator, say, does on our behalf is
// not the program's own doing: interception lets it pass.
extern thread_local constinit std::uint32_t t_slow __attribute__((tls_model("initial-exec")));

// On a thread that has called vfork: the process that it was then. The child of a vfork runs in its
// parent's memory, and holds its parent's locks.
extern thread_local constinit std::int32_t t_vforked_from
    __attribute__((tls_model("initial-exec")));

// Holds all signals back while it lives, so that no handler of the program runs inside a slow path
// and finds a lock of ours taken by its own thread. A SIGXFSZ that our own writing raised is taken
// off again: a file size limit must not kill a program for our bytes.
class SlowPath {
 public:
  // t_slow is set only while no handler can run: what handlers do is the program's own.
  SlowPath() : outermost_(t_slow == 0) {
    if (outermost_) {
      const std::uint64_t all = ~std::uint64_t{0};
      sys::call(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before_, sizeof all);
      was_pending_ = size_signal_pending();
    }
    ++t_slow;
  }
  ~SlowPath() {
    --t_slow;
    if (outermost_) {
      if (!was_pending_ && size_signal_pending()) {
        const std::uint64_t only = std::uint64_t{1} << (SIGXFSZ - 1);
        const timespec now{};
        sys::call(SYS_rt_sigtimedwait, &only, nullptr, &now, sizeof only);
      }
      sys::call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    }
  }
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

 private:
  static bool size_signal_pending() {
    std::uint64_t pending = 0;
    sys::call(SYS_rt_sigpending, &pending, sizeof pending);
    return (pending >> (SIGXFSZ - 1) & 1) != 0;
  }
  sys::KeepErrno errno_;
  bool outermost_;
  std::uint64_t before_ = 0;
  bool was_pending_ = false;
};

// Inside a signal handler that runs on a stack of its own, which may be tiny.
inline bool on_alternate_stack() noexcept {
  stack_t stack{};
  return sys::call(SYS_sigaltstack, nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

// A lock whose word is the process that holds it. A child forked while another thread held it sees
// a foreign word and takes it over: what it guards is left consistent at every instant.
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
