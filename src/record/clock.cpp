#include "record/clock.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/hot.hpp"
#include "base/syscalls.hpp"

namespace dft::record {

alignas(64) DFT_HOT bool g_counter_clock = false;

namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 32;

// The rate that the processor states; 0 if it states none. aarch64 counters run at 1 GHz or as
// slowly as 19.2 MHz, and firmware tells programs and the kernel the same frequency.
std::uint64_t rate_of_counter() noexcept {
#if defined(__aarch64__)
  std::uint64_t per_second;
  asm("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second != 0 ? (std::uint64_t{1'000'000'000} << 32) / per_second : 0;
#else
  return 0;
#endif
}

bool counter_is_invariant() noexcept {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return rate_of_counter() != 0;
#endif
}

// The kernel monitors the TSC and abandons it as clock source when cores disagree; its choice is
// the only portable sign that the counter is comparable across cores.
bool kernel_trusts_counter() noexcept {
  char name[32];
  const long n = sys::read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                                name, sizeof name);
  if (n <= 0) return false;
  const std::string_view source(name, static_cast<std::size_t>(n));
#if defined(__aarch64__)
  return source.starts_with("arch_sys_counter");
#else
  return source.starts_with("tsc") || source.starts_with("kvm-clock") ||
         source.starts_with("hyperv");
#endif
}

// The rate between two moments; 0 if they are too close to tell.
std::uint64_t measured_rate(const Moment& from, const Moment& to) noexcept {
  if (to.tick <= from.tick || to.monotonic <= from.monotonic) return 0;
  return static_cast<std::uint64_t>(
      (static_cast<unsigned __int128>(to.monotonic - from.monotonic) << 32) /
      (to.tick - from.tick));
}

}  // namespace

void choose_clock() noexcept {
  g_counter_clock = counter_is_invariant() && kernel_trusts_counter();
}

Moment read_moment() noexcept {
  if (!g_counter_clock) {
    const std::uint64_t now = monotonic_ns();
    return {now, now};
  }
  // Keep the reading with the narrowest bracket: it was disturbed least.
  Moment best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t before = ticks();
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t after = ticks();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before + (after - before) / 2, now};
    }
  }
  return best;
}

void ClockMap::start(std::uint64_t guess) noexcept {
  first = read_moment();
  timespec wall;
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const std::uint64_t mono = monotonic_ns();
  wall_offset = static_cast<std::uint64_t>(wall.tv_sec) * 1000000000u +
                static_cast<std::uint64_t>(wall.tv_nsec) - mono;
  counter = g_counter_clock ? kCounterTicks : Ticks::kNanoseconds;
  if (guess == 0) guess = rate_of_counter();
  recent = first;
  until = first.tick;
  knots[0] = {first.tick, first.monotonic + wall_offset, g_counter_clock ? guess : kOne};
  count = 1;
}

void ClockMap::add(const Knot& knot) noexcept {
  knots[count] = knot;
  __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

void ClockMap::follow() noexcept {
  if (counter == Ticks::kNanoseconds) return;
  const Moment now = read_moment();
  const std::uint64_t truth = now.monotonic + wall_offset;
  if (rate() == 0) {  // first stretch: exact from the start
    const std::uint64_t measured = std::max<std::uint64_t>(measured_rate(first, now), 1);
    __atomic_store_n(&knots[0].rate, measured, __ATOMIC_RELAXED);
  } else {
    const std::uint64_t line = to_ns(now.tick);
    const std::uint64_t error = truth > line ? truth - line : line - truth;
    // The tolerance doubles after every 32 knots, so that the table lasts for a run of any length.
    const std::uint64_t tolerance = std::uint64_t{200} << (count / 32);
    if (error > tolerance && count + 2 <= kKnots) bend(now, truth);
  }
  hold(now.tick);
  if (now.monotonic - recent.monotonic > 1'000'000'000) {
    __atomic_store_n(&recent.tick, now.tick, __ATOMIC_RELAXED);  // now_ns() reads it
    recent.monotonic = now.monotonic;
  }
}

void ClockMap::bend(const Moment& now, std::uint64_t truth) noexcept {
  const bool fresh = now.monotonic - recent.monotonic < 100'000'000;
  const std::uint64_t measured = measured_rate(fresh ? first : recent, now);
  const std::uint64_t held = __atomic_load_n(&until, __ATOMIC_RELAXED);
  if (measured == 0 || now.tick <= held) return;
  const std::uint64_t from = to_ns(held);
  // A line that is ahead of the clock may slow down but never run backwards: the correction then
  // takes several calls.
  const std::uint64_t wanted =
      truth > from ? static_cast<std::uint64_t>(
                         (static_cast<unsigned __int128>(truth - from) << 32) / (now.tick - held))
                   : 0;
  add({held, from, std::clamp(wanted, measured / 2, measured + measured / 2)});
  add({now.tick, to_ns(now.tick), measured});
}

void ClockMap::settle(bool same_boot) noexcept {
  if (count == 0 || count > kKnots) count = 1;
  Knot& last = knots[count - 1];
  if (counter == Ticks::kNanoseconds) {
    if (last.rate == 0) last.rate = kOne;
    return;
  }
  if (last.rate == 0 && same_boot && g_counter_clock && counter == kCounterTicks)
    last.rate = measured_rate(first, read_moment());
  if (last.rate == 0) last.rate = kOne / 3;  // another machine's counter: assume 3 GHz
}

// For ticks before the last knot.
std::uint64_t ClockMap::earlier_to_ns(std::uint64_t tick, std::uint32_t known) const noexcept {
  const Knot* knot = std::upper_bound(knots, knots + known, tick,
                                      [](std::uint64_t t, const Knot& k) { return t < k.tick; });
  if (knot != knots) --knot;
  const std::uint64_t rate_here = __atomic_load_n(&knot->rate, __ATOMIC_RELAXED);
  if (tick >= knot->tick) return knot->ns + scale(tick - knot->tick, rate_here);
  const std::uint64_t before = scale(knot->tick - tick, rate_here);
  return before < knot->ns ? knot->ns - before : 0;
}

}  // namespace dft::record
