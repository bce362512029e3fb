// Bytes that the kernel has counted for this process since its recording began, against which the
// intercepted calls are measured. Under the session's lock.
#pragma once
#include <cstdint>

#include "base/thread_io.hpp"

namespace dft::session {

// CPU time that the process has used so far, in microseconds.
std::uint64_t cpu_time() noexcept;
// How long its main thread was ready to run, and waited for a processor, in microseconds; -1 where
// the kernel does not count it. Of threads that have ended nothing is known, so no other is asked.
std::int64_t cpu_wait_time() noexcept;
// Whether a child has been waited for.
bool has_reaped_children() noexcept;

class IoMeter {
 public:
  void begin() noexcept;
  // The process is about to have its first child, whose bytes the kernel will add to its own.
  void before_fork() noexcept;
  [[nodiscard]] bool is_ready_for_children() const noexcept { return by_thread_; }
  // Of this process alone, the tracer's own bytes included. False when it cannot be known: without
  // /proc, or after children that were made and waited for without a call that is intercepted.
  [[nodiscard]] bool measure(IoBytes& out) const noexcept;

 private:
  IoBytes before_{};
  bool by_thread_ = false;
  bool known_ = false;
};

}  // namespace dft::session
