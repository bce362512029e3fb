#include "record/clock.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

using dft::record::ClockMap;
using dft::record::g_counter_clock;
using dft::record::Knot;
using dft::record::monotonic_ns;
using dft::record::read_moment;
using dft::record::Ticks;
using dft::record::ticks;

namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 32;

// Both clocks are tested on every machine; the choice is per process, so it is restored.
class Clock {
 public:
  explicit Clock(bool counter) : before_(g_counter_clock) { g_counter_clock = counter; }
  ~Clock() { g_counter_clock = before_; }

 private:
  bool before_;
};

std::unique_ptr<ClockMap> fresh(std::uint64_t guess = 0) {
  auto line = std::make_unique<ClockMap>();
  line->start(guess);
  return line;
}

// Lets some ticks pass, however long that takes.
void pass(std::uint64_t ns) {
  const std::uint64_t until = monotonic_ns() + ns;
  while (monotonic_ns() < until) {
  }
}

// At a knot's tick the line equals the knot, also coming from the stretch before it.
void check_continuous(const ClockMap& line) {
  for (std::uint32_t i = 0; i < line.count; ++i) {
    const Knot& knot = line.knots[i];
    CHECK(line.to_ns(knot.tick) == knot.ns);
    if (i == 0) continue;
    CHECK(line.knots[i - 1].tick <= knot.tick);
    const std::uint64_t before = line.to_ns(knot.tick - 1);
    CHECK(before <= knot.ns);
    const Knot& last = line.knots[i - 1];
    const auto reached = static_cast<std::uint64_t>(
        (static_cast<unsigned __int128>(knot.tick - last.tick) * last.rate) >> 32);
    CHECK(last.ns + reached == knot.ns);
  }
}

std::vector<std::uint64_t> some_ticks(const ClockMap& line, std::mt19937_64& random) {
  std::vector<std::uint64_t> list;
  for (int i = 0; i < 200; ++i) {
    list.push_back(line.first.tick + random() % (line.until - line.first.tick + 1));
  }
  list.push_back(line.until);
  list.push_back(line.first.tick);
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("with the kernel's clock, ticks are nanoseconds and the line is exact") {
  const Clock clock(false);
  const auto line = fresh(12345);  // a guessed TSC rate is irrelevant here
  CHECK(line->counter == Ticks::kNanoseconds);
  CHECK(line->rate() == kOne);
  const std::uint64_t first = line->knots[0].tick;
  CHECK(line->to_ns(first) == first + line->wall_offset);
  CHECK(line->to_ns(first + 1234567) == first + 1234567 + line->wall_offset);
  CHECK(line->to_ns(first - 1000) == first - 1000 + line->wall_offset);
  line->follow();
  line->follow();
  CHECK(line->count == 1);
  line->settle(true);
  CHECK(line->to_ns(first + 1) == first + 1 + line->wall_offset);
}

TEST_CASE("the line starts at the wall clock's time") {
  for (const bool counter : {false, true}) {
    const Clock clock(counter);
    timespec before;
    timespec after;
    ::clock_gettime(CLOCK_REALTIME, &before);
    const auto line = fresh();
    ::clock_gettime(CLOCK_REALTIME, &after);
    const std::uint64_t start = line->to_ns(line->knots[0].tick);
    const auto ns = [](const timespec& t) {
      return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u +
             static_cast<std::uint64_t>(t.tv_nsec);
    };
    // The offset comes from two consecutive readings, hence the tolerance.
    CHECK(start + 1000000 >= ns(before));
    CHECK(start <= ns(after) + 1000000);
  }
}

TEST_CASE("a moment's two readings belong to the same moment") {
  for (const bool counter : {false, true}) {
    const Clock clock(counter);
    const std::uint64_t tick_before = ticks();
    const std::uint64_t before = monotonic_ns();
    const auto moment = read_moment();
    CHECK(moment.monotonic >= before);
    CHECK(moment.monotonic <= monotonic_ns());
    CHECK(moment.tick >= tick_before);
    CHECK(moment.tick <= ticks());
  }
}

TEST_CASE("follow() corrects the line at that moment") {
  const Clock clock(true);
  const auto line = fresh();
  pass(200000);
  const std::uint64_t before = monotonic_ns();
  line->follow();
  const std::uint64_t after = monotonic_ns();
  CHECK(line->rate() > 0);
  const std::uint64_t shown = line->to_ns(line->until);
  CHECK(shown + 1 >= before + line->wall_offset);
  CHECK(shown <= after + line->wall_offset);
}

TEST_CASE("follow() bends a wrong line and keeps earlier conversions") {
  const Clock clock(true);
  std::mt19937_64 random(7);
  // A little fast, a little slow, and so far off that one bend cannot correct it.
  for (const double factor : {1.2, 0.8, 3.0, 0.1}) {
    CAPTURE(factor);
    const auto line = fresh();
    pass(100000);
    line->follow();
    line->knots[0].rate =
        static_cast<std::uint64_t>(static_cast<double>(line->knots[0].rate) * factor);
    std::vector<std::uint64_t> converted;
    std::vector<std::uint64_t> as;
    for (int round = 0; round < 12; ++round) {
      pass(300000);
      line->follow();
      for (const std::uint64_t tick : some_ticks(*line, random)) {
        converted.push_back(tick);
        as.push_back(line->to_ns(tick));
      }
    }
    CHECK(line->count > 1);
    for (std::size_t i = 0; i < converted.size(); ++i) REQUIRE(line->to_ns(converted[i]) == as[i]);
    check_continuous(*line);
    // After a dozen bends by at most half the rate each, the line is correct again.
    pass(300000);
    const std::uint64_t before = monotonic_ns();
    line->follow();
    const std::uint64_t after = monotonic_ns();
    const std::uint64_t shown = line->to_ns(line->until);
    CHECK(shown + 1000 >= before + line->wall_offset);
    CHECK(shown <= after + line->wall_offset + 1000);
  }
}

TEST_CASE("a time that was given out stays") {
  const Clock clock(true);
  const auto line = fresh();
  pass(1000000);
  line->follow();
  for (const int percent : {90, 110}) {
    line->knots[line->count - 1].rate = line->rate() * static_cast<std::uint64_t>(percent) / 100;
    pass(1000000);
    const std::uint64_t tick = ticks();
    line->hold(tick);
    const std::uint64_t given = line->to_ns(tick);
    const std::uint32_t knots = line->count;
    pass(1000000);
    line->follow();
    CHECK(line->count > knots);  // it was corrected
    CHECK(line->to_ns(tick) == given);
    line->hold(tick - 1);  // an earlier one changes nothing
    CHECK(line->until > tick);
  }
}

TEST_CASE("the line is monotonic for any ticks") {
  const Clock clock(true);
  std::mt19937_64 random(11);
  const auto line = fresh();
  for (int round = 0; round < 20; ++round) {
    pass(20000);
    line->follow();
    // Shift the last stretch, so that the next follow() bends up or down.
    Knot& last = line->knots[line->count - 1];
    if (line->until == last.tick) last.rate += last.rate / (round % 2 == 0 ? 4 : 10);
  }
  std::uint64_t previous = 0;
  for (const std::uint64_t tick : some_ticks(*line, random)) {
    CHECK(line->to_ns(tick) >= previous);
    previous = line->to_ns(tick);
  }
  check_continuous(*line);
}

TEST_CASE("a full table of knots is left unchanged") {
  const Clock clock(true);
  const auto line = fresh();
  pass(10000);
  line->follow();
  const Knot wrong{line->until, line->to_ns(line->until), line->rate() * 2};
  for (std::uint32_t i = 1; i < ClockMap::kKnots; ++i) line->knots[i] = wrong;
  line->count = ClockMap::kKnots;
  pass(100000);
  line->follow();
  CHECK(line->count == ClockMap::kKnots);
  line->count = ClockMap::kKnots - 1;  // a bend needs two
  line->follow();
  CHECK(line->count == ClockMap::kKnots - 1);
}

TEST_CASE("the parent's rate is used until one is measured") {
  const Clock clock(true);
  const auto line = fresh(kOne / 2);
  const std::uint64_t first = line->knots[0].tick;
  CHECK(line->to_ns(first + 1000) == line->knots[0].ns + 500);
}

// An aarch64 counter may be that slow: 25 MHz, 40 ns per tick.
TEST_CASE("a slow counter's line is as exact as its ticks") {
  auto line = std::make_unique<ClockMap>();
  constexpr std::uint64_t kStart = std::uint64_t{1} << 40;
  constexpr std::uint64_t kWall = 1'700'000'000'000'000'000;
  line->knots[0] = {kStart, kWall, 40 * kOne};
  line->count = 1;
  CHECK(line->to_ns(kStart + 1) == kWall + 40);
  // A year later, which a product of 64 bits could not hold.
  constexpr std::uint64_t kTicks = std::uint64_t{365} * 24 * 3600 * 25'000'000;
  CHECK(line->to_ns(kStart + kTicks) == kWall + kTicks * 40);
  CHECK(line->to_ns(kStart - 1) == kWall - 40);
}

TEST_CASE("settle() gives a rate to a line that was never corrected") {
  SUBCASE("from this boot's clock") {
    const Clock clock(true);
    const auto line = fresh();
    pass(1000000);
    line->settle(true);
    // Assumes a TSC frequency between 10 MHz and 10 GHz.
    CHECK(line->rate() > kOne / 10);
    CHECK(line->rate() < kOne * 100);
    const auto now = read_moment();
    const std::uint64_t truth = now.monotonic + line->wall_offset;
    const std::uint64_t shown = line->to_ns(now.tick);
    CHECK((shown > truth ? shown - truth : truth - shown) < 1000000000);
  }
  SUBCASE("from a guess on another machine") {
    const Clock clock(true);
    const auto line = fresh();
    line->knots[0].rate = 0;  // aarch64 states one from the start
    line->settle(false);
    CHECK(line->rate() == kOne / 3);
  }
  SUBCASE("from a guess for another kind of counter") {
    const Clock clock(true);
    const auto line = fresh();
    line->knots[0].rate = 0;
    line->counter = line->counter == Ticks::kTsc ? Ticks::kGenericTimer : Ticks::kTsc;
    pass(1000000);
    line->settle(true);
    CHECK(line->rate() == kOne / 3);
  }
  SUBCASE("but keeps a known one") {
    const Clock clock(true);
    const auto line = fresh(777);
    line->settle(true);
    CHECK(line->rate() == 777);
  }
  SUBCASE("also for the kernel's clock") {
    const Clock clock(false);
    const auto line = fresh();
    line->knots[0].rate = 0;
    line->settle(false);
    CHECK(line->rate() == kOne);
  }
}

TEST_CASE("settle() repairs an impossible number of knots") {
  for (const std::uint32_t count : {0u, ClockMap::kKnots + 1, ~0u}) {
    const auto line = fresh();
    line->count = count;
    line->settle(true);
    CHECK(line->count == 1);
    CHECK(line->to_ns(line->knots[0].tick) == line->knots[0].ns);
  }
}

TEST_CASE("unsorted knots give some time, without reading past their end") {
  std::mt19937_64 random(3);
  const auto line = fresh();
  for (Knot& knot : line->knots) knot = {random(), random(), random()};
  for (const std::uint32_t count : {1u, 2u, 3u, ClockMap::kKnots}) {
    line->count = count;
    for (int i = 0; i < 100; ++i) (void)line->to_ns(random());
    (void)line->to_ns(0);
    (void)line->to_ns(~std::uint64_t{0});
  }
}
