#include "sink/nesting.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "support/fixture.hpp"

using dft::sink::Nesting;

namespace {

struct Checked {
  ~Checked() { nesting.free(); }
  bool fits(std::uint64_t start, std::uint64_t end, std::uint32_t thread = 1) {
    return nesting.fits(thread, start, end);
  }
  Nesting nesting;
};

}  // namespace

TEST_CASE("nested, equal, adjacent and empty spans fit") {
  Checked c;
  CHECK(c.fits(2, 4));
  CHECK(c.fits(4, 6));
  CHECK(c.fits(2, 6));
  CHECK(c.fits(2, 6));
  CHECK(c.fits(6, 6));
  CHECK(c.fits(6, 9));
  CHECK(c.fits(0, 9));
  CHECK(c.fits(9, 9));
}

TEST_CASE("thousands of calls within one unit of a coarse clock stay on their thread") {
  Checked c;
  CHECK(c.fits(4, 5));
  for (int i = 0; i < 2000; ++i) REQUIRE(c.fits(5, 5));
  CHECK(c.fits(5, 6));
  for (int i = 0; i < 2000; ++i) REQUIRE(c.fits(6, 6));
  CHECK(c.fits(4, 6));
  CHECK_FALSE(c.fits(5, 7));
}

TEST_CASE("a span that begins inside another one and ends after it does not fit") {
  Checked c;
  CHECK(c.fits(2, 4));
  CHECK_FALSE(c.fits(3, 5));
  CHECK(c.fits(1, 6));
  CHECK_FALSE(c.fits(5, 7));
  CHECK(c.fits(6, 7));
  CHECK(c.fits(0, 3, 2));  // a different thread
}

TEST_CASE("a span that arrives after its enclosing span may cross one inside that") {
  Checked c;
  CHECK(c.fits(3, 5));
  CHECK(c.fits(0, 10));
  CHECK_FALSE(c.fits(4, 9));
  CHECK_FALSE(c.fits(4, 10));
  CHECK(c.fits(10, 12));
}

TEST_CASE("a span that arrives late is inserted where it belongs") {
  Checked c;
  CHECK(c.fits(10, 90));
  CHECK(c.fits(2, 10));  // the wait before it
  CHECK(c.fits(2, 2));
  CHECK_FALSE(c.fits(50, 100));
  CHECK_FALSE(c.fits(5, 95));
  CHECK(c.fits(1, 100));
  CHECK(c.fits(1, 1));
  CHECK_FALSE(c.fits(50, 101));
}

TEST_CASE("the check agrees with a slow, obvious one on random spans") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Checked c;
    struct Span {
      std::uint64_t start, end;
    };
    std::vector<Span> spans(40);
    for (Span& span : spans) {
      span.start = random() % 60;
      span.end = span.start + random() % 20;
    }
    std::stable_sort(
        spans.begin(), spans.end(),
        [](const Span& a, const Span& b) {  // of two that end at the same time, the inner one first
          return a.end != b.end ? a.end < b.end : a.start > b.start;
        });
    std::vector<Span> line;
    for (const Span& span : spans) {
      const bool crosses = std::any_of(line.begin(), line.end(), [&](const Span& other) {
        return other.start < span.start && span.start < other.end && other.end < span.end;
      });
      REQUIRE(c.fits(span.start, span.end) == !crosses);
      if (!crosses) line.push_back(span);
    }
  }
}

TEST_CASE("many spans and many threads stay within bounds") {
  Checked c;
  for (std::uint64_t i = 0; i < 100000; ++i) REQUIRE(c.fits(2 * i, 2 * i + 1));
  CHECK(c.fits(0, 300001));
  for (std::uint32_t thread = 2; thread < 5000; ++thread) REQUIRE(c.fits(1, 2, thread));
}
