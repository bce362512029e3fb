#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "reader/export/span_forest.hpp"

namespace {

using namespace dft::reader;

struct Given {
  std::int64_t ts;
  std::int64_t dur;
  std::int64_t tid = 7;
};

// Reads these spans, in microseconds, as a trace.
SpanForest forest_of(const std::vector<Given>& spans) {
  static int number = 0;
  const std::string path =
      "/tmp/dft_nesting_" + std::to_string(::getpid()) + "_" + std::to_string(number++) + ".pfw";
  {
    std::ofstream out(path);
    out << "[\n";
    std::int64_t id = 0;
    for (const Given& span : spans) {
      out << R"({"id":)" << id << R"(,"name":"s)" << id << R"(","cat":"c","pid":7,"tid":)"
          << span.tid << R"(,"ts":)" << span.ts << R"(,"dur":)" << span.dur
          << R"(,"ph":"X","args":{}})" << "\n";
      ++id;
    }
  }
  SpanForest forest;
  forest.read({path}, 1, [](const Event&, std::string&) {}, nullptr);
  std::remove(path.c_str());
  forest.arrange();
  return forest;
}

// The spans of a row may be one inside the other, or one after the other.
void check_nested(const SpanForest& forest) {
  for (std::size_t i = 0; i < forest.order.size(); ++i) {
    const Item& a = forest.items[forest.order[i]];
    for (std::size_t j = i + 1; j < forest.order.size(); ++j) {
      const Item& b = forest.items[forest.order[j]];
      if (a.track != b.track) break;
      CHECK(a.ts <= b.ts);
      const bool after = b.ts >= a.end();
      const bool inside = b.end() <= a.end();
      CHECK((after || inside));
    }
  }
}

}  // namespace

TEST_CASE("spans that nest stay in the row of their thread") {
  const SpanForest forest = forest_of({{1000, 100}, {1010, 20}, {1012, 5}, {1040, 60}, {1200, 10}});
  check_nested(forest);
  for (const Item& item : forest.items) CHECK(forest.tracks[item.track].lane == 0);
  CHECK(forest.tracks.size() == 1);
  CHECK(forest.items[0].ts == 1000000);
  CHECK(forest.items[0].dur == 100000);
}

TEST_CASE("a span that crosses another one goes to a row of its own") {
  const SpanForest forest = forest_of({{1000, 100}, {1050, 100}, {1060, 10}});
  check_nested(forest);
  REQUIRE(forest.tracks.size() == 2);
  CHECK(forest.tracks[forest.items[0].track].lane == 0);
  CHECK(forest.tracks[forest.items[1].track].lane == 1);
  CHECK(forest.tracks[forest.items[2].track].lane == 0);
  CHECK(forest.items[1].dur == 100000);  // nothing was cut
  CHECK(forest.tracks[1].label == "main crossing 1");
}

TEST_CASE("spans that cross by no more than a unit of the clock are cut") {
  const SpanForest forest = forest_of({{1000, 100}, {1050, 51}});
  check_nested(forest);
  CHECK(forest.tracks.size() == 1);
  CHECK(forest.items[1].end() == forest.items[0].end());
}

TEST_CASE("random spans nest in every row, and none is lost") {
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    std::vector<Given> spans;
    for (int i = 0; i < 60; ++i) {
      spans.push_back({1000 + static_cast<std::int64_t>(random() % 400),
                       static_cast<std::int64_t>(random() % 80),
                       7 + static_cast<std::int64_t>(random() % 2)});
    }
    const SpanForest forest = forest_of(spans);
    CHECK(forest.order.size() == spans.size());
    check_nested(forest);
  }
}

TEST_CASE("the longest span that begins at a time comes first") {
  const SpanForest forest = forest_of({{1000, 10}, {1000, 100}, {1000, 50}});
  REQUIRE(forest.order.size() == 3);
  CHECK(forest.order[0] == 1);
  CHECK(forest.order[1] == 2);
  CHECK(forest.order[2] == 0);
}
