#include "intercept/return_thunk.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

extern "C" bool dftracer_jumps_back;

namespace {

struct Pair {
  long first;
  long second;
};

[[gnu::noinline]] DFT_RETURNS Pair pair_of(long a, long b) { return {a, b}; }
[[gnu::noinline]] DFT_RETURNS double half_of(double x) { return x / 2; }
[[gnu::noinline]] DFT_RETURNS long deep(long n) { return n == 0 ? 0 : 1 + deep(n - 1); }
[[gnu::noinline]] DFT_RETURNS long thrown_through(long n) {
  if (n == 0) throw std::runtime_error("thrown");
  const long below = thrown_through(n - 1);
  return below + 1;
}

void check_returns() {
  const Pair pair = pair_of(-1, 1L << 62);
  CHECK(pair.first == -1);
  CHECK(pair.second == 1L << 62);
  CHECK(half_of(5) == 2.5);
  CHECK(deep(1000) == 1000);
  CHECK_THROWS_AS(thrown_through(100), std::runtime_error);
}

}  // namespace

TEST_CASE("a function returns the same by a jump and by a return") {
  const bool chosen = dftracer_jumps_back;
  for (const bool jumps : {false, true}) {
    dftracer_jumps_back = jumps;
    check_returns();
  }
  dftracer_jumps_back = chosen;
  dft::intercept::choose_way_back();
  check_returns();
}
