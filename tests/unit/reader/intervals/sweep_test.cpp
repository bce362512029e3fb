#include "reader/intervals/sweep.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <tuple>

namespace {

using namespace dft::reader;

struct Span {
  std::int64_t process;
  std::int64_t lane;
  std::int64_t start;
  std::int64_t end;
};
struct Step {
  std::int64_t process;
  std::int64_t id;
  std::int64_t start;
  std::int64_t end;
};
// (kind, process, key, lanes) to nanoseconds.
using Rows =
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::int64_t>;

constexpr std::int64_t kEnd = 300;
constexpr int kShift = 5;

// Looks at every nanosecond.
Rows brute_force(const std::vector<Span>& spans, const std::vector<Step>& steps) {
  Rows out;
  for (std::int64_t process = 0; process < 3; ++process) {
    for (std::int64_t t = -kEnd; t < kEnd; ++t) {
      std::int64_t lanes = 0;
      for (const Span& span : spans) {
        if (span.process == process && span.start <= t && t < span.end) {
          lanes |= std::int64_t{1} << span.lane;
        }
      }
      if (lanes == 0) continue;
      ++out[{0, process, 0, lanes}];
      for (const Step& step : steps) {
        if (step.process == process && step.start <= t && t < step.end) {
          ++out[{1, process, step.id, lanes}];
        }
      }
      ++out[{2, process, (t >> kShift) << kShift, lanes}];
    }
  }
  return out;
}

Rows swept(Sweep& sweep) {
  const IntTable table = sweep.take(kShift);
  REQUIRE(table.columns.size() == 5);
  Rows out;
  for (std::size_t i = 0; i < table.columns[0].size(); ++i) {
    const auto& c = table.columns;
    const bool fresh =
        out.emplace(std::make_tuple(c[0][i], c[1][i], c[2][i], c[3][i]), c[4][i]).second;
    CHECK(fresh);
  }
  return out;
}

}  // namespace

TEST_CASE("a sweep agrees with a look at every nanosecond") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    std::vector<Span> spans;
    for (int i = 0; i < 40; ++i) {
      const auto start = static_cast<std::int64_t>(random() % (2 * kEnd - 60)) - kEnd;
      spans.push_back({static_cast<std::int64_t>(random() % 3),
                       static_cast<std::int64_t>(random() % 4), start,
                       start + static_cast<std::int64_t>(random() % 60)});
    }
    if (round % 2 == 0) {
      std::sort(spans.begin(), spans.end(),
                [](const Span& a, const Span& b) { return a.start < b.start; });
    }
    std::vector<Step> steps;
    for (std::int64_t process = 0; process < 2; ++process) {
      std::int64_t start = -kEnd;
      for (std::int64_t id = 0; start < kEnd; ++id) {
        const std::int64_t end = start + 1 + static_cast<std::int64_t>(random() % 100);
        if (random() % 4 != 0) steps.push_back({process, 100 + id, start, end});
        start = end + static_cast<std::int64_t>(random() % 10);
      }
    }
    Sweep sweep;
    for (const Span& one : spans) sweep.span(one.process, one.lane, one.start, one.end);
    for (const Step& one : steps) sweep.window(one.process, one.id, one.start, one.end);
    CHECK(swept(sweep) == brute_force(spans, steps));
  }
}

TEST_CASE("spans without length and lanes that do not exist are left out") {
  Sweep sweep;
  sweep.span(0, 0, 10, 10);
  sweep.span(0, 0, 10, 5);
  sweep.span(0, -1, 0, 10);
  sweep.span(0, Sweep::kLanes, 0, 10);
  CHECK(swept(sweep).empty());
}

TEST_CASE("gathered lanes are those of all processes, joined") {
  Sweep sweep;
  sweep.span(0, 1, 0, 100);
  sweep.span(1, 1, 50, 150);
  sweep.span(1, 1, 300, 301);
  sweep.span(2, 2, 0, 1000);
  sweep.gather(std::int64_t{1} << 1);
  (void)sweep.take(62);
  const std::map<int, std::string> packed = sweep.take_gathered();
  REQUIRE(packed.size() == 1);
  CHECK(packed.at(1) == pack({{0, 150}, {300, 301}}));
}
