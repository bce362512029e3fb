#include "reader/intervals/intervals.hpp"

#include <doctest/doctest.h>

#include <bitset>
#include <locale>
#include <ostream>
#include <random>
#include <stdexcept>

namespace {

using namespace dft::reader;

constexpr std::int64_t kEnd = 500;
using Moments = std::bitset<kEnd>;

std::vector<TimeRange> random_ranges(std::mt19937& random, int count) {
  std::vector<TimeRange> out;
  for (int i = 0; i < count; ++i) {
    const auto start = static_cast<std::int64_t>(random() % (kEnd - 20));
    out.push_back({start, start + 1 + static_cast<std::int64_t>(random() % 19)});
  }
  return out;
}

Moments moments_of(const std::vector<TimeRange>& ranges) {
  Moments out;
  for (const TimeRange& range : ranges) {
    for (std::int64_t t = range.start; t < range.end; ++t) out.set(static_cast<std::size_t>(t));
  }
  return out;
}

}  // namespace

TEST_CASE("joined intervals are disjoint and cover the same moments") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<TimeRange> ranges = random_ranges(random, 20);
    const Moments expected = moments_of(ranges);
    join(ranges);
    CHECK((moments_of(ranges) == expected));
    for (std::size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i].start > ranges[i - 1].end);
  }
}

TEST_CASE("the length of a union is the number of its moments") {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    Moments expected;
    std::vector<std::string> packed;
    for (int set = 0; set < 4; ++set) {
      std::vector<TimeRange> ranges = random_ranges(random, set * 5);
      expected |= moments_of(ranges);
      join(ranges);
      packed.push_back(pack(ranges));
    }
    const std::vector<std::string_view> views(packed.begin(), packed.end());
    CHECK(union_length(views) == expected.count());
  }
}

TEST_CASE("intervals of all sizes survive packing") {
  const std::vector<TimeRange> ranges = {{-1000, -999}, {0, 127}, {128, INT64_MAX / 2}};
  const std::string packed = pack(ranges);
  const std::string_view views[] = {packed};
  CHECK(union_length(views) == 1 + 127 + static_cast<std::uint64_t>(INT64_MAX / 2 - 128));
}

TEST_CASE("bytes that are no packed intervals are refused") {
  const std::string packed = pack({{5, 500}});
  const std::string_view cut[] = {std::string_view(packed).substr(0, packed.size() - 1)};
  CHECK_THROWS_AS(union_length(cut), std::runtime_error);
  const std::string endless(20, '\xff');
  const std::string_view views[] = {endless};
  CHECK_THROWS_AS(union_length(views), std::runtime_error);
}
