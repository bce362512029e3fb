#include "sink/json_write.hpp"

#include <limits>
#include <random>
#include <string>

#include "support/fixture.hpp"

namespace {

// Checks the text, and that nothing beyond the documented limit is written.
template <class T>
std::string text_of(T value) {
  char text[32];
  std::memset(text, '#', sizeof text);
  const char* end = dft::sink::number(text + 2, value);
  CHECK(std::string_view(text, 2) == "##");
  CHECK(std::string_view(text + 26, 6) == "######");
  return std::string(text + 2, static_cast<std::size_t>(end - text - 2));
}

}  // namespace

TEST_CASE("integers are written as std::to_string writes them") {
  const auto check = [](auto value) { REQUIRE(text_of(value) == std::to_string(value)); };
  std::uint64_t power = 1;
  for (int digits = 1; digits <= 20; ++digits, power *= 10) {
    for (const std::uint64_t near : {power - 1, power, power + 1, power * 9, power * 5 + 7}) {
      check(near);
      check(static_cast<std::int64_t>(near));
      check(-static_cast<std::int64_t>(near));
      check(static_cast<std::uint32_t>(near));
      check(static_cast<std::int32_t>(near));
    }
  }
  check(std::numeric_limits<std::uint64_t>::max());
  check(std::numeric_limits<std::int64_t>::min());
  check(std::numeric_limits<std::int32_t>::min());
  check(std::uint16_t{0xffff});
  for (std::uint32_t value = 0; value < 20000; ++value) check(value);
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t value = random() >> random() % 64;
    check(value);
    check(static_cast<std::int64_t>(value));
  }
}
