// The time on the trace's clock, for the C API and for Python. On the program's threads.
#include "buffer/lane.hpp"
#include "record/clock.hpp"
#include "session/session.hpp"
#include "session/state.hpp"

namespace dft::session {

std::uint64_t now_ns() noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  buffer::Spool* spool = buffer::g_spool.load(std::memory_order_acquire);
  if (t == nullptr || spool == nullptr) return 0;
  record::ClockMap& line = spool->clock_map();
  // Before the first block the rate is not known, and later it drifts: follow the clock
  // now and then.
  const std::uint64_t tick = record::ticks();
  const std::uint64_t rate = line.rate();
  if (line.counter != record::Ticks::kNanoseconds &&
      (rate == 0 ||
       ((tick - __atomic_load_n(&line.recent.tick, __ATOMIC_RELAXED)) >> 16) * (rate >> 16) >
           (std::uint64_t{1} << 30))) {
    SlowPath slow;
    if (Pipeline* pipeline = g_pipeline.load()) {
      Locked locked(pipeline->sink.lock());
      if (!pipeline->sink.closed()) line.follow();
    }
  }
  line.hold(tick);
  return line.to_ns(tick);
}

std::uint64_t now() noexcept {
  std::uint64_t ns = now_ns();
  buffer::Spool* spool = buffer::g_spool.load(std::memory_order_acquire);
  if (spool == nullptr) return 0;
  for (std::uint32_t i = spool->head().time_divisor_log10; i > 0; --i) ns /= 10;
  return ns;
}

}  // namespace dft::session
