// The clock of a record: raw ticks on the traced thread, wall-clock nanoseconds when it is written
// out. ticks() is called twice an event on the program's threads; ClockMap by whoever drains or
// recovers.
#pragma once
#include <time.h>

#include <cstdint>

#include "base/hot.hpp"

namespace dft::record {

// True where the processor's counter is invariant and the kernel itself trusts it. Set once, before
// the first tick is taken; a forked child inherits it.
DFT_HOT extern bool g_counter_clock;
void choose_clock() noexcept;

inline std::uint64_t monotonic_ns() noexcept {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// Only where g_counter_clock says so.
inline std::uint64_t counter_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return 0;
#endif
}

inline std::uint64_t ticks() noexcept { return g_counter_clock ? counter_ticks() : monotonic_ns(); }

// From `tick` on, wall time is `ns + (t - tick) * rate / 2^32`.
struct Knot {
  std::uint64_t tick;
  std::uint64_t ns;
  std::uint64_t rate;
};

// One pair of readings of the same moment.
struct Moment {
  std::uint64_t tick;
  std::uint64_t monotonic;
};
Moment read_moment() noexcept;

// Ticks to nanoseconds of the Unix epoch, as a line with knots: continuous, never falling, and
// fixed for every tick that has once been converted. So spans that nest in ticks nest in the trace,
// however long the run, while the line follows the kernel's clock. It lives in the spool, where a
// recoverer finds it.
struct ClockMap {
  static constexpr std::uint32_t kKnots = 500;  // with the rest, three pages
  std::uint64_t wall_offset;                    // wall time minus monotonic time, read once
  Moment first;
  Moment recent;          // a reading of about a second ago: its rate is today's, not the average
  std::uint64_t until;    // no tick after this one has been converted
  std::uint32_t counter;  // ticks are the processor's, not nanoseconds
  std::uint32_t count;    // knots in use, written after the knot
  Knot knots[kKnots];

  // Starts a line at this moment; `guess` (from a parent's line) is the rate until it is measured.
  void start(std::uint64_t guess) noexcept;
  // Makes the line true at this moment by bending the stretch that nobody has used yet. Called
  // under the sink's lock, after the records to be converted have been collected and before the
  // first conversion.
  void follow() noexcept;
  // The recoverer's half: a process that died before its first knot gets its rate from this boot's
  // clock.
  void settle(bool same_boot) noexcept;

  [[nodiscard]] std::uint64_t to_ns(std::uint64_t tick) const noexcept {
    const std::uint32_t known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    const Knot& last = knots[known - 1];
    if (tick < last.tick) [[unlikely]]
      return earlier_to_ns(tick, known);
    return last.ns + scale(tick - last.tick, __atomic_load_n(&last.rate, __ATOMIC_RELAXED));
  }
  [[nodiscard]] std::uint64_t rate() const noexcept {
    const std::uint32_t known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    return known == 0 ? 0 : __atomic_load_n(&knots[known - 1].rate, __ATOMIC_RELAXED);
  }

 private:
  static std::uint64_t scale(std::uint64_t delta, std::uint64_t rate) noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(delta) * rate) >> 32);
  }
  [[nodiscard]] std::uint64_t earlier_to_ns(std::uint64_t tick, std::uint32_t known) const noexcept;
  void end_at(std::uint64_t tick) noexcept { __atomic_store_n(&until, tick, __ATOMIC_RELAXED); }
  void bend(const Moment& now, std::uint64_t truth) noexcept;
  void add(const Knot& knot) noexcept;
};

}  // namespace dft::record
