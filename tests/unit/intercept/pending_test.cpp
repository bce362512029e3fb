#include "intercept/pending.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace dft::intercept;  // NOLINT

namespace {

Request* add(PendingTable& table, std::uint64_t key, std::uint64_t start) {
  Request* request = table.add(key);
  if (request != nullptr) request->start = start;
  return request;
}

std::uint64_t take(PendingTable& table, std::uint64_t key) {
  const Request* found = table.find(key);
  if (found == nullptr) return 0;
  const std::uint64_t start = found->start;
  table.remove(found);
  return start;
}

}  // namespace

TEST_CASE("requests with the same key complete in the order in which they were submitted") {
  PendingTable table;
  REQUIRE(table.reserve(64));
  for (std::uint64_t i = 1; i <= 5; ++i) add(table, 7, i);
  add(table, 8, 100);
  CHECK(take(table, 7) == 1);
  CHECK(take(table, 7) == 2);
  add(table, 7, 6);
  CHECK(take(table, 8) == 100);
  for (std::uint64_t i = 3; i <= 6; ++i) CHECK(take(table, 7) == i);
  CHECK(take(table, 7) == 0);
  CHECK(table.size() == 0);
}

TEST_CASE("a full table of pending requests takes no more, and has room again") {
  PendingTable table;
  REQUIRE(table.reserve(100));
  REQUIRE(table.capacity() == 128);
  for (std::uint64_t i = 1; i <= 128; ++i) REQUIRE(add(table, i * 0x10001, i) != nullptr);
  CHECK(add(table, 1, 1) == nullptr);
  CHECK(take(table, 77 * 0x10001) == 77);
  CHECK(add(table, 5, 1000) != nullptr);
  CHECK(take(table, 5) == 1000);
  std::size_t left = 0;
  table.for_each([&](const Request&) { ++left; });
  CHECK(left == 127);
  table.clear();
  CHECK(table.size() == 0);
  CHECK(table.find(0x10001) == nullptr);
  REQUIRE(table.reserve(64));  // keeps its memory
  CHECK(table.capacity() == 128);
}

TEST_CASE("pending requests are found whatever was added and removed before") {
  PendingTable table;
  REQUIRE(table.reserve(256));
  std::vector<std::vector<std::uint64_t>> expected(37);
  std::uint64_t random = 1;
  for (std::uint64_t i = 1; i <= 20000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t key = (random >> 33) % 37;
    if ((random >> 60) < 8 && table.size() < table.capacity()) {
      REQUIRE(add(table, key, i) != nullptr);
      expected[key].push_back(i);
    } else {
      const std::uint64_t oldest = expected[key].empty() ? 0 : expected[key].front();
      REQUIRE(take(table, key) == oldest);
      if (oldest != 0) expected[key].erase(expected[key].begin());
    }
  }
}
