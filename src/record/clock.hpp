// The clock of a record: raw ticks of the processor's counter (x86-64: TSC, aarch64: the generic
// timer) on the traced thread, wall-clock nanoseconds in the trace.
// The program's threads call ticks() twice per event; draining threads and recoverers use ClockMap.
#pragma once
#include <time.h>

#include <cstdint>

#include "base/hot.hpp"

namespace dft::record {

// True if the counter is invariant and the kernel itself trusts it. Set once, before the first tick
// is read; a forked child inherits it.
DFT_HOT extern bool g_counter_clock;
void choose_clock() noexcept;

inline std::uint64_t monotonic_ns() noexcept {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// Where ticks come from; spools hold these numbers.
enum class Ticks : std::uint32_t { kNanoseconds = 0, kTsc = 1, kGenericTimer = 2 };
#if defined(__aarch64__)
inline constexpr Ticks kCounterTicks = Ticks::kGenericTimer;
#else
inline constexpr Ticks kCounterTicks = Ticks::kTsc;
#endif

// Valid only if g_counter_clock is true. Like rdtsc, cntvct_el0 may be read a few instructions early
// or late, but never on the other side of a system call.
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

// Two clocks read at the same moment.
struct Moment {
  std::uint64_t tick;
  std::uint64_t monotonic;
};
Moment read_moment() noexcept;

// Maps ticks to nanoseconds of the Unix epoch by a piecewise linear function: continuous,
// monotonic, and fixed for every tick that was ever converted. So spans that nest in ticks nest
// in the trace, however long the run, while the line follows the kernel's clock. It lives in the
// spool, where a recoverer finds it.
struct ClockMap {
  static constexpr std::uint32_t kKnots = 500;  // with the other members, three pages
  std::uint64_t wall_offset;                    // wall time minus monotonic time, read once
  Moment first;
  Moment recent;  // reading from about a second ago, for the current rate instead of the average
  std::uint64_t until;  // no tick after this one has been converted
  Ticks counter;        // what is counted
  std::uint32_t count;  // knots in use, stored after the knot itself
  Knot knots[kKnots];

  // Starts a line at this moment. `guess`, from a parent's line, is the rate until one is measured.
  void start(std::uint64_t guess) noexcept;
  // Corrects the line at this moment by bending the stretch that no conversion has used yet.
  // Called under the sink's lock, after the records to convert have been collected and before
  // the first conversion.
  void follow() noexcept;
  // For recoverers: a process that died before its first measurement gets this boot's rate.
  void settle(bool same_boot) noexcept;

  // Fixes the line up to this tick, before it is converted outside of the sink's lock.
  void hold(std::uint64_t tick) noexcept {
    std::uint64_t seen = __atomic_load_n(&until, __ATOMIC_RELAXED);
    while (tick > seen && !__atomic_compare_exchange_n(&until, &seen, tick, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
  }

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
  void bend(const Moment& now, std::uint64_t truth) noexcept;
  void add(const Knot& knot) noexcept;
};

}  // namespace dft::record
