#include "reader/parse/text_map.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <tuple>

namespace {

using namespace dft::reader;

}  // namespace

TEST_CASE("a text map agrees with std::map on random keys") {
  TextMap<int> map;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::uint32_t> expected;
  std::mt19937 random(7);
  const auto text = [&](std::size_t longest) {
    std::string out(random() % (longest + 1), ' ');
    for (char& c : out) c = static_cast<char>('a' + random() % 3);
    return out;
  };
  for (int i = 0; i < 20000; ++i) {
    // Two letters at the ends make texts that differ in the middle alone.
    const std::string first = random() % 2 == 0 ? text(4) : "prefix" + text(12) + "suffix";
    const std::string second = text(2);
    const std::uint64_t number = random() % 3;
    bool fresh = false;
    const std::uint32_t row = map.find(first, second, number, fresh);
    const auto [known, is_new] = expected.emplace(std::make_tuple(first, second, number),
                                                  static_cast<std::uint32_t>(expected.size()));
    REQUIRE(fresh == is_new);
    REQUIRE(row == known->second);
    ++map.row(row);
  }
  CHECK(map.entries().size() == expected.size());
  int sum = 0;
  for (const auto& entry : map.entries()) sum += entry.row;
  CHECK(sum == 20000);
}

TEST_CASE("a cleared text map knows nothing") {
  TextMap<int> map;
  bool fresh = false;
  map.row(map.find("a", "b", 1, fresh)) = 5;
  map.clear();
  CHECK(map.entries().empty());
  CHECK(map.row(map.find("a", "b", 1, fresh)) == 0);
  CHECK(fresh);
}

TEST_CASE("texts are compared whole") {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string text(size, 'x');
    CHECK(same_text(text, std::string(size, 'x')));
    CHECK_FALSE(same_text(text, text + 'x'));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = text;
      other[i] = 'y';
      CHECK_FALSE(same_text(text, other));
      CHECK(hash_text(text, 1) != hash_text(other, 1));
    }
  }
}

TEST_CASE("a short word is the same while compiling and at run time") {
  constexpr std::string_view kTexts[] = {"", "a", "ret", "size", "count", "offset", "hostname"};
  constexpr std::uint64_t kWords[] = {short_word("", 0),        short_word("a", 1),
                                      short_word("ret", 3),     short_word("size", 4),
                                      short_word("count", 5),   short_word("offset", 6),
                                      short_word("hostname", 8)};
  for (std::size_t i = 0; i < std::size(kTexts); ++i) {
    const std::string text(kTexts[i]);
    CHECK(short_word(text.data(), text.size()) == kWords[i]);
  }
}
