// Requests of io_uring that went unseen, for the `end` record. Interception adds to them; the
// session reads them when a process ends.
#pragma once
#include <atomic>
#include <cstdint>

namespace dft::session {

struct RingGap {
  std::atomic<std::uint64_t> rings;     // that had such requests
  std::atomic<std::uint64_t> requests;  // as the kernel counted them
};
extern RingGap g_ring_gap;

// What interception does before the trace is closed, while records can still be written.
enum class Closing : bool { kForExec, kForGood };
extern std::atomic<void (*)(Closing) noexcept> g_before_close;
// No lock is held.
inline void before_close(Closing why) noexcept {
  if (const auto act = g_before_close.load()) act(why);
}

}  // namespace dft::session
