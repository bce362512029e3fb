// SlowPath: blocks signals around every piece of work that leaves the hot path. Used by all rooms, on
// the program's threads and on the writer thread.
#pragma once
#include <signal.h>

#include <cstdint>

#include "base/syscalls.hpp"

namespace dft {

// How many slow paths this thread is in. What the program's allocator, say, does on our behalf is
// not the program's own doing: interception lets it pass.
extern thread_local constinit std::uint32_t t_slow __attribute__((tls_model("initial-exec")));

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

}  // namespace dft
