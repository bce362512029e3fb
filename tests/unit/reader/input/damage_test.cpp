#include "reader/input/damage.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace {

using namespace dft::reader;

Problem problem(Trouble kind, std::uint32_t file, std::uint64_t block, std::uint64_t line) {
  return {kind, file, block, 0, line, 0, {}};
}

}  // namespace

TEST_CASE("every kind of trouble has a name and a text of its own") {
  std::set<std::string> names;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const TroubleInfo& info = info_of(static_cast<Trouble>(i));
    names.insert(info.name);
    texts.insert(info.text);
  }
  CHECK(names.size() == kTroubles);
  CHECK(texts.size() == kTroubles);
  CHECK(std::string(info_of(Trouble::kEmptyFile).name) == "empty_file");
  CHECK(std::string(info_of(Trouble::kUnpaired).name) == "unpaired");
}

TEST_CASE("a span without its end is odd and no damage") {
  Damage damage;
  CHECK_FALSE(damage.is_damaged());
  damage.note(problem(Trouble::kUnpaired, 0, 0, 0));
  CHECK_FALSE(damage.is_damaged());
  damage.note(problem(Trouble::kBadLine, 0, 0, 0));
  CHECK(damage.is_damaged());
  CHECK(damage.count(Trouble::kBadLine) == 1);
}

TEST_CASE("damage adds up to the same in any order") {
  Damage first;
  first.bytes_read = 10;
  first.text_bytes = 20;
  first.members = 1;
  first.lines = 3;
  first.records = 2;
  first.metadata = 1;
  first.events = 1;
  first.note(problem(Trouble::kBadLine, 0, 2, 5));
  Damage second;
  second.bytes_read = 1;
  second.records = 4;
  second.own = 1;
  second.ends = 1;
  second.events = 2;
  second.note(problem(Trouble::kCutLine, 0, 1, 9));
  second.note(problem(Trouble::kBadLine, 1, 0, 0));
  Damage one = first;
  one.add(second);
  Damage two = second;
  two.add(first);
  for (const Damage& sum : {one, two}) {
    CHECK(sum.bytes_read == 11);
    CHECK(sum.text_bytes == 20);
    CHECK(sum.members == 1);
    CHECK(sum.lines == 3);
    CHECK(sum.records == 6);
    CHECK(sum.metadata == 1);
    CHECK(sum.own == 1);
    CHECK(sum.ends == 1);
    CHECK(sum.events == 3);
    CHECK(sum.count(Trouble::kBadLine) == 2);
    CHECK(sum.count(Trouble::kCutLine) == 1);
    REQUIRE(sum.problems.size() == 3);
    CHECK(sum.problems[0].block == 1);
    CHECK(sum.problems[1].block == 2);
    CHECK(sum.problems[2].file == 1);
  }
}

TEST_CASE("of many problems the first are kept and all are counted") {
  Damage late;
  Damage early;
  for (std::uint64_t i = 0; i < kProblemsKept + 50; ++i) {
    late.note(problem(Trouble::kBadLine, 1, 0, i));
    early.note(problem(Trouble::kBadLine, 0, 0, i));
  }
  late.add(early);
  CHECK(late.count(Trouble::kBadLine) == 2 * (kProblemsKept + 50));
  REQUIRE(late.problems.size() == kProblemsKept);
  CHECK(late.problems.back().file == 0);
}
