#include "reader/input/work_queue.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include "reader/input/block.hpp"
#include "reader/write/write.hpp"

namespace {

using namespace dft::reader;

class TraceOf {
 public:
  explicit TraceOf(const std::string& bytes, const char* ending = ".pfw") {
    static std::atomic<int> number = 0;
    path_ =
        "/tmp/dft_queue_" + std::to_string(::getpid()) + "_" + std::to_string(number++) + ending;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TraceOf() { std::remove(path_.c_str()); }
  TraceOf(const TraceOf&) = delete;
  TraceOf& operator=(const TraceOf&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string lines(std::int64_t from, std::int64_t to) {
  std::string out;
  for (std::int64_t i = from; i < to; ++i) {
    out +=
        R"({"id":)" + std::to_string(i) + R"(,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":)" +
        std::to_string(1700000000000000 + i) + R"(,"dur":1,"ph":"X","args":{"p_idx":-1}})" + "\n";
  }
  return out;
}

std::string members(std::int64_t count, std::int64_t per_member) {
  Deflater deflater(1);
  std::string out;
  for (std::int64_t i = 0; i < count; i += per_member) {
    const std::int64_t end = std::min(count, i + per_member);
    deflater.member((i == 0 ? "[\n" : "") + lines(i, end), static_cast<std::uint32_t>(end - i),
                    out);
  }
  return out;
}

struct Items {
  std::multiset<std::int64_t> ids;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> order;  // file and number of each item
  Damage damage;
};

Items take_all(WorkQueue& queue) {
  Items out;
  Block block;
  while (queue.next(block.item())) {
    block.load();
    block.records([&](const Event& event, std::uint64_t) { out.ids.insert(event.id); });
    out.order.emplace_back(block.file().index, block.ordinal());
    out.damage.add(block.damage());
  }
  return out;
}

std::multiset<std::int64_t> numbers(std::int64_t from, std::int64_t to) {
  std::multiset<std::int64_t> out;
  for (std::int64_t i = from; i < to; ++i) out.insert(i);
  return out;
}

}  // namespace

TEST_CASE("plain text is cut into ranges, and each line is in one of them") {
  const TraceOf trace("[\n" + lines(0, 30000));
  WorkQueue queue({trace.path()}, true);
  const Items items = take_all(queue);
  CHECK(items.order.size() > 2);
  CHECK(items.ids == numbers(0, 30000));
  CHECK_FALSE(items.damage.is_damaged());
}

TEST_CASE("members of ours are grouped, and each is in one item") {
  const TraceOf trace(members(60000, 2000), ".pfw.gz");
  WorkQueue queue({trace.path()}, true);
  const Items items = take_all(queue);
  CHECK(items.order.size() > 2);
  CHECK(items.order.size() < 30);
  CHECK(items.ids == numbers(0, 60000));
  CHECK(items.damage.members == 30);
  CHECK_FALSE(items.damage.is_damaged());
}

TEST_CASE("ordered, the items of a file come before those of the next") {
  const TraceOf first(members(20000, 2000), ".pfw.gz");
  const TraceOf second("[\n" + lines(20000, 40000));
  WorkQueue queue({first.path(), second.path()}, true);
  const Items items = take_all(queue);
  CHECK(std::is_sorted(items.order.begin(), items.order.end()));
  CHECK(items.ids == numbers(0, 40000));
}

TEST_CASE("no item is handed out twice or lost among threads") {
  std::vector<std::unique_ptr<TraceOf>> traces;
  std::vector<std::string> paths;
  for (int i = 0; i < 5; ++i) {
    traces.push_back(std::make_unique<TraceOf>("[\n" + lines(i * 10000, (i + 1) * 10000)));
    paths.push_back(traces.back()->path());
  }
  WorkQueue queue(paths, false);
  std::vector<Items> found(4);
  std::vector<std::thread> threads;
  for (Items& items : found) threads.emplace_back([&] { items = take_all(queue); });
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::int64_t> all;
  for (const Items& items : found) all.insert(items.ids.begin(), items.ids.end());
  CHECK(all == numbers(0, 50000));
  CHECK(queue.files().size() == 5);
}

TEST_CASE("a file is read only up to the given size") {
  const std::string text = "[\n" + lines(0, 100);
  const std::size_t cut = ("[\n" + lines(0, 40)).size();
  const TraceOf trace(text);
  WorkQueue queue({trace.path()}, true, {cut});
  CHECK(take_all(queue).ids == numbers(0, 40));
}

TEST_CASE("what cannot be read is one item with the reason") {
  const TraceOf empty("");
  WorkQueue queue({"/nonexistent/trace.pfw", empty.path()}, true);
  const Items items = take_all(queue);
  CHECK(items.damage.count(Trouble::kCannotRead) == 1);
  CHECK(items.damage.count(Trouble::kEmptyFile) == 1);
  CHECK(items.order.size() == 2);
}

TEST_CASE("damage in the middle costs the damaged member alone") {
  std::string bytes = members(9000, 1000);
  dft::format::MemberHeader header;
  REQUIRE(dft::format::read_member_header(bytes, header));
  const std::size_t second = header.size;
  REQUIRE(dft::format::read_member_header(std::string_view(bytes).substr(second), header));
  for (std::size_t i = 100; i < 140; ++i) bytes[second + i] = 'x';
  const TraceOf trace(bytes, ".pfw.gz");
  WorkQueue queue({trace.path()}, true);
  const Items items = take_all(queue);
  std::multiset<std::int64_t> expected = numbers(0, 1000);
  expected.merge(numbers(2000, 9000));
  CHECK(items.ids == expected);
  CHECK(items.damage.count(Trouble::kBadMember) == 1);
}
