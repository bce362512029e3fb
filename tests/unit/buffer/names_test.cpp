#include "buffer/names.hpp"

#include <map>
#include <memory>
#include <set>
#include <thread>

#include "support/fixture.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::NameRecord;
using dft::buffer::Names;
using dft::buffer::Spool;
using fixture::TemporaryDirectory;

namespace {

// What a reader of the spool finds.
std::map<std::uint32_t, std::string> names_in(Spool& spool) {
  std::map<std::uint32_t, std::string> found;
  spool.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (fixture::state_of(chunk) != ChunkState::kNames) return;
    for (std::uint64_t at = 0; at < chunk.committed.load();) {
      NameRecord head;
      std::memcpy(&head, dft::buffer::payload(chunk) + at, sizeof head);
      const auto* text =
          reinterpret_cast<const char*>(dft::buffer::payload(chunk) + at + sizeof head);
      CHECK_MESSAGE(found.count(head.id) == 0, head.id);
      found[head.id] = std::string(text, head.length);
      at += dft::record::padded(sizeof head + head.length);
    }
  });
  return found;
}

Spool* create(const std::string& path) {
  int error = 0;
  return Spool::create(path.c_str(), 100, &error);
}

}  // namespace

TEST_CASE("equal bytes have the same id, different bytes different ones, starting at 1") {
  Names names;
  CHECK(names.id("a") == 1);
  CHECK(names.id("b") == 2);
  CHECK(names.id("a") == 1);
  CHECK(names.id("") == 3);
  CHECK(names.id(std::string_view("a\0", 2)) == 4);  // not truncated at a NUL
  CHECK(names.id(std::string_view("a\0\0", 3)) == 5);
  CHECK(names.id("12345678") == 6);
  CHECK(names.id(std::string_view("12345678\0", 9)) == 7);
  std::string copy = "b";
  CHECK(names.id(copy) == 2);
}

TEST_CASE("ids stay the same while the table grows") {
  Names names;
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(names.id("name " + std::to_string(i)));
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(ids[static_cast<std::size_t>(i)] == static_cast<std::uint32_t>(i) + 1);
    REQUIRE(names.id("name " + std::to_string(i)) == ids[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("threads that look up shared and private names agree") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  Names names;
  REQUIRE(names.publish_to(spool));
  constexpr int kThreads = 4;
  constexpr int kNames = 1500;  // enough to enlarge the table several times
  std::vector<std::uint32_t> ids[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) {
        // Half of the names are shared, and each thread looks them up in another order.
        const int shared = (i * (2 * t + 1)) % kNames;
        names.id("own " + std::to_string(t) + " " + std::to_string(i));
        names.id("shared " + std::to_string(shared));
      }
      for (int i = 0; i < kNames; ++i) ids[t].push_back(names.id("shared " + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) CHECK(ids[t] == ids[0]);
  const auto found = names_in(*spool);
  std::set<std::string> texts;
  for (const auto& [id, text] : found) CHECK(texts.insert(text).second);
  for (int i = 0; i < kNames; ++i) {
    REQUIRE(found.at(ids[0][static_cast<std::size_t>(i)]) == "shared " + std::to_string(i));
  }
  spool->retire(true);
}

TEST_CASE("the longest allowed name has an id, a longer one has none") {
  Names names;
  CHECK(names.id(std::string(Names::kLongest, 'x')) == 1);
  CHECK(names.id(std::string(Names::kLongest + 1, 'x')) == 0);
  CHECK(names.id(std::string(1 << 20, 'x')) == 0);
  CHECK(names.id("next") == 2);
}

TEST_CASE("a full table returns 0 for new names and keeps the old ones") {
  auto names = std::make_unique<Names>();
  SUBCASE("by number") {
    for (std::uint32_t i = 0; i < Names::kMost; ++i) {
      REQUIRE(names->id(std::to_string(i)) == i + 1);
    }
    CHECK(names->id("one more") == 0);
    CHECK(names->id("one more") == 0);
    CHECK(names->id("77") == 78);
  }
  SUBCASE("by bytes") {
    std::uint32_t count = 0;
    const std::string filler(Names::kLongest - 10, 'x');
    while (names->id(filler + std::to_string(count)) != 0) ++count;
    CHECK(count < Names::kMost);
    CHECK(count > 3000);
    CHECK(names->id(filler + "0") == 1);
    CHECK(names->id(filler + "new") == 0);
  }
}

TEST_CASE("a spool holds the names interned before and after it was created") {
  const TemporaryDirectory directory;
  Names names;
  for (int i = 0; i < 300; ++i) names.id("before " + std::to_string(i));
  Spool* first = create(directory / "1.spool");
  REQUIRE(first != nullptr);
  REQUIRE(names.publish_to(first));
  for (int i = 0; i < 300; ++i) names.id("after " + std::to_string(i));
  auto found = names_in(*first);
  CHECK(found.size() == 600);
  CHECK(found[1] == "before 0");
  CHECK(found[600] == "after 299");

  Spool* second = create(directory / "2.spool");
  REQUIRE(second != nullptr);
  REQUIRE(names.publish_to(second));
  CHECK(names.id("late") == 601);
  CHECK(names_in(*first).size() == 600);
  found = names_in(*second);
  CHECK(found.size() == 601);
  CHECK(found[601] == "late");
  CHECK(found[1] == "before 0");

  REQUIRE(names.publish_to(nullptr));
  CHECK(names.id("nowhere") == 602);
  CHECK(names_in(*second).size() == 601);
  first->retire(true);
  second->retire(true);
}

TEST_CASE("a name's bytes are in the spool verbatim, with no stray bytes after them") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  Names names;
  REQUIRE(names.publish_to(spool));
  const std::string odd("\xff\n\"\0\\", 5);
  CHECK(names.id(odd) == 1);
  CHECK(names.id(std::string(Names::kLongest, 'y')) == 2);
  const auto found = names_in(*spool);
  CHECK(found.at(1) == odd);
  CHECK(found.at(2) == std::string(Names::kLongest, 'y'));
  spool->retire(true);
}

TEST_CASE("a name that does not fit into the spool has no id until it does") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  Names names;
  while (spool->take(10, true, 1) != nullptr) {
  }
  REQUIRE(::rename((directory / "s.spool").c_str(), (directory / "away").c_str()) == 0);
  REQUIRE(names.publish_to(spool));
  CHECK(names.id("a") == 0);  // the file cannot grow
  REQUIRE(::rename((directory / "away").c_str(), (directory / "s.spool").c_str()) == 0);
  CHECK(names.id("a") == 1);
  CHECK(names_in(*spool).at(1) == "a");
  spool->retire(true);
}
