// SlowPath: RAII guard that blocks signals around all work off the hot path. Used by all rooms,
// on the program's threads and on the writer thread.
#pragma once
#include <signal.h>

#include <cstdint>

#include "base/syscalls.hpp"

namespace dft {

// Number of SlowPath scopes that this thread is in. Calls made inside one (by the program's
// allocator, for example) are our doing, so interception does not record them.
extern thread_local constinit std::uint32_t t_slow __attribute__((tls_model("initial-exec")));

// Blocks all signals for its lifetime, so that no handler of the program runs inside a slow path
// and deadlocks on a lock that its own thread holds. Discards a SIGXFSZ raised by our own writes:
// a file size limit must not kill the program because of our bytes.
class SlowPath {
 public:
  // t_slow is nonzero only while no handler can run: calls made by handlers are the program's own.
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

// True inside a signal handler on an alternate stack, which may be tiny.
inline bool on_alternate_stack() noexcept {
  stack_t stack{};
  return sys::call(SYS_sigaltstack, nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace dft
