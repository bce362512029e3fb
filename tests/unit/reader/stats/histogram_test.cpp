#include "reader/stats/histogram.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace {

using namespace dft::reader;

}  // namespace

TEST_CASE("a percentile is exact to a 64th of its value") {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t value = random() >> (random() % 50 + 10);
    values.push_back(value);
    histogram.add(value);
  }
  std::sort(values.begin(), values.end());
  CHECK(histogram.count() == values.size());
  for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99}) {
    const auto exact = static_cast<double>(
        values[static_cast<std::size_t>(share * static_cast<double>(values.size()))]);
    const auto found = static_cast<double>(histogram.percentile(share));
    INFO(share);
    CHECK(found >= exact * (1 - 1.0 / 64) - 1);
    CHECK(found <= exact * (1 + 1.0 / 64) + 1);
  }
}

TEST_CASE("small values are exact") {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 32; ++value) histogram.add(value);
  CHECK(histogram.percentile(0) == 0);
  CHECK(histogram.percentile(0.5) == 16);
  CHECK(histogram.percentile(1) == 31);
}

TEST_CASE("two histograms add up to that of all values, in any order") {
  Histogram whole;
  Histogram low;
  Histogram high;
  for (std::uint64_t value = 1; value < 1000000; value = value * 5 / 4 + 1) {
    whole.add(value, 3);
    (value < 1000 ? low : high).add(value, 3);
  }
  Histogram one = low;
  one.add(high);
  Histogram two = high;
  two.add(low);
  CHECK(one.count() == whole.count());
  CHECK(two.count() == whole.count());
  for (double share = 0; share <= 1; share += 0.05) {
    CHECK(one.percentile(share) == whole.percentile(share));
    CHECK(two.percentile(share) == whole.percentile(share));
  }
}

TEST_CASE("an empty histogram has no percentile") {
  CHECK(Histogram().percentile(0.5) == 0);
  CHECK(Histogram().count() == 0);
}
