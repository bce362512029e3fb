#include "buffer/lane.hpp"

#include <sys/resource.h>

#include <set>
#include <thread>

#include "support/recording.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::kLargeChunk;
using dft::buffer::kSmallChunk;
using dft::buffer::reserve;
using dft::buffer::Slot;
using dft::buffer::this_thread;
using dft::buffer::ThreadState;
using dft::record::Kind;
using fixture::make_record;
using fixture::Recording;
using fixture::state_of;

namespace {

std::string instant(std::uint64_t id, std::size_t extra = 0) {
  return make_record({0, Kind::kInstant, 0, 1, 0, 0, id, 0, 0, 0}, std::string(extra, '\0'));
}

bool write(ThreadState& t, const std::string& bytes) {
  const Slot slot = reserve(t, bytes.size());
  if (slot.at == nullptr) return false;
  std::memcpy(slot.at, bytes.data(), bytes.size());
  fixture::commit(slot, bytes.size());
  return true;
}

std::vector<std::uint64_t> ids(Recording& recording) {
  std::vector<std::uint64_t> list;
  for (const auto& found : recording.records()) {
    if (found.head.kind == Kind::kInstant) list.push_back(found.head.id);
  }
  return list;
}

}  // namespace

TEST_CASE("nothing is recorded while recording is off") {
  dft::buffer::g_on.store(false);
  dft::buffer::stop_generation();
  CHECK(this_thread() == nullptr);
}

TEST_CASE("a record is visible when it is committed, not before") {
  Recording recording;
  ThreadState* t = this_thread();
  REQUIRE(t != nullptr);
  CHECK(this_thread() == t);
  REQUIRE(write(*t, instant(5)));
  const std::string bytes = instant(6);
  const Slot slot = reserve(*t, bytes.size());
  REQUIRE(slot.at != nullptr);
  std::memcpy(slot.at, bytes.data(), bytes.size());
  CHECK(ids(recording) == std::vector<std::uint64_t>{5});
  fixture::commit(slot, bytes.size());
  CHECK(ids(recording) == std::vector<std::uint64_t>{5, 6});
}

TEST_CASE("a signal handler that interrupts a record writes into its own lane") {
  Recording recording;
  ThreadState* t = this_thread();
  const std::string outer = instant(1);
  const Slot first = reserve(*t, outer.size());  // as if a signal handler ran here
  std::memcpy(first.at, outer.data(), outer.size());
  const Slot second = reserve(*t, outer.size());
  REQUIRE(second.at != nullptr);
  CHECK(second.lane != first.lane);
  CHECK(second.at != first.at);
  const std::string inner = instant(2);
  std::memcpy(second.at, inner.data(), inner.size());
  REQUIRE(write(*t, instant(3)));  // and a third inside the second
  fixture::commit(second, inner.size());
  fixture::commit(first, outer.size());
  REQUIRE(write(*t, instant(4)));
  std::vector<std::uint64_t> list = ids(recording);
  std::sort(list.begin(), list.end());
  CHECK(list == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK(recording.spool().head().lost.load() == 0);
}

TEST_CASE("handlers that never return do not stop their thread's recording") {
  Recording recording;
  ThreadState* t = this_thread();
  // Reserved and left by siglongjmp(), more often than there are lanes.
  for (int i = 0; i < 10; ++i) CHECK(reserve(*t, 64).at != nullptr);
  std::uint64_t written = 0;
  for (std::uint64_t id = 1; id <= 200; ++id) written += write(*t, instant(id)) ? 1 : 0;
  const std::vector<std::uint64_t> list = ids(recording);
  CHECK(written + recording.spool().head().lost.load() >= 200);
  CHECK(std::set<std::uint64_t>(list.begin(), list.end()).size() == written);
}

TEST_CASE("full chunks are replaced: the first one is small, later ones are large") {
  Recording recording(false);
  ThreadState* t = this_thread();
  std::uint64_t id = 0;
  while (id * 1048 < 200000) REQUIRE(write(*t, instant(++id, 1000)));
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t i = 1; i <= id; ++i) wanted.push_back(i);
  CHECK(ids(recording) == wanted);
  int small = 0;
  int full = 0;
  int owned = 0;
  recording.spool().each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (chunk.thread.load() == 0 || state_of(chunk) == ChunkState::kFree) return;
    small += chunk.size == kSmallChunk ? 1 : 0;
    full += state_of(chunk) == ChunkState::kFull ? 1 : 0;
    owned += state_of(chunk) == ChunkState::kOwned ? 1 : 0;
  });
  CHECK(small == 1);
  CHECK(owned == 1);
  CHECK(full == 3);  // one small, two large
  CHECK(Recording::filled() == 2);
}

TEST_CASE("a first record of any size is kept, and the spool stays small") {
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{7 << 10}, std::size_t{9 << 10}, std::size_t{30 << 10},
        std::size_t{63 << 10}, std::size_t{65 << 10}, std::size_t{1 << 20},
        std::size_t{17 << 20}}) {
    CAPTURE(size);
    // The limit keeps a bug from filling the disk.
    const int result = fixture::in_child([&] {
      dft::SlowPath slow;
      const rlimit limit{64 << 20, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      Recording recording(false);
      ThreadState* t = this_thread();
      if (t == nullptr || !write(*t, instant(1, size))) return 1;
      const auto file = fixture::read_file(recording.spool().path()).size();
      return file < (1 << 20) + 3 * size ? 0 : 2;
    });
    CHECK(result == 0);
  }
}

TEST_CASE("a record above the limit is lost and counted, and the next one is kept") {
  Recording recording(false);
  ThreadState* t = this_thread();
  CHECK(reserve(*t, dft::record::kMaxRecord + 8).at == nullptr);
  CHECK(recording.spool().head().lost.load() == 1);
  CHECK(write(*t, instant(1)));
  CHECK(ids(recording) == std::vector<std::uint64_t>{1});
}

TEST_CASE("an ending thread releases its chunk and keeps its records") {
  Recording recording;
  std::uint32_t thread_id = 0;
  std::thread thread([&] {
    ThreadState* t = this_thread();
    thread_id = t->thread;
    for (std::uint64_t id = 1; id <= 50; ++id) write(*t, instant(id));
    const Slot slot = reserve(*t, 64);  // the lane for handlers is released as well
    write(*t, instant(51));
    fixture::commit(slot, 0);
  });
  thread.join();
  int full = 0;
  recording.spool().each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (chunk.thread.load() != thread_id) return;
    CHECK(state_of(chunk) == ChunkState::kFull);
    ++full;
  });
  CHECK(full == 2);
  CHECK(ids(recording).size() == 51);
}

TEST_CASE("a new thread records its name first, the main thread does not") {
  Recording recording;
  std::thread([&] { write(*this_thread(), instant(7)); }).join();
  write(*this_thread(), instant(8));
  const auto found = recording.records();
  REQUIRE(found.size() == 3);
  CHECK(found[0].head.kind == Kind::kThread);
  CHECK(found[0].args.substr(16, 5) == "dftra");  // inherited from the program
  CHECK(found[1].head.id == 7);
  CHECK(found[2].head.id == 8);
}

TEST_CASE("ids are unique") {
  Recording recording;
  constexpr int kThreads = 4;
  std::vector<std::uint64_t> given[kThreads];
  std::vector<std::thread> threads;
  for (auto& mine : given) {
    threads.emplace_back([&mine] {
      ThreadState* t = this_thread();
      for (int n = 0; n < 1000; ++n) mine.push_back(dft::buffer::new_id(*t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : given) {
    CHECK(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  CHECK(all.size() == 4000);
  CHECK(*all.begin() >= 1000000);  // the spool's next_id
}

TEST_CASE("short-lived threads lose nothing, and their chunks are reused") {
  Recording recording;
  for (int round = 0; round < 12; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([round, i] {
        const auto base = static_cast<std::uint64_t>(round * 8 + i) * 100 + 1;
        for (std::uint64_t n = 0; n < 100; ++n) write(*this_thread(), instant(base + n, 40));
      });
    }
    for (std::thread& thread : threads) thread.join();
    dft::Locked locked(recording.sink().lock());
    REQUIRE(recording.sink().drain(dft::sink::Sink::Scope::kFull));
  }
  dft::Locked locked(recording.sink().lock());
  REQUIRE(recording.sink().drain(dft::sink::Sink::Scope::kEverything));
  const std::string text = fixture::read_file(recording.directory() / "t.pfw");
  std::set<std::uint64_t> seen;
  std::uint64_t lines = 0;
  for (const std::string& line : fixture::lines_of(text)) {
    if (line.find("\"ph\":\"i\"") == line.npos) continue;
    ++lines;
    seen.insert(std::strtoull(line.c_str() + 6, nullptr, 10));
  }
  CHECK(lines == 9600);
  CHECK(seen.size() == 9600);
  CHECK(recording.spool().head().lost.load() == 0);
}

TEST_CASE("threads that start simultaneously grow the spool once, not once per thread") {
  // Each growth adds half of what exists: once per waiting thread would fill any disk.
  const int result = fixture::in_child([] {
    const rlimit limit{256 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    Recording recording(false);
    constexpr std::uint32_t kThreads = 48;
    static std::atomic<std::uint32_t> ready{0};
    static std::atomic<std::uint32_t> kept{0};
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        ready.fetch_add(1);
        while (ready.load() < kThreads) std::this_thread::yield();
        if (write(*this_thread(), instant(1))) kept.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (kept.load() != kThreads) return 1;
    struct stat info{};
    if (::stat(recording.spool().path(), &info) != 0) return 2;
    return info.st_size < (4 << 20) ? 0 : 3;  // 48 chunks of 8 KiB are 384 KiB
  });
  CHECK(result == 0);
}

TEST_CASE("a forked child's first event notices the fork") {
  Recording recording;
  REQUIRE(write(*this_thread(), instant(1)));
  const int result = fixture::in_child([&] {
    if (dft::buffer::generation_is_live()) return 1;
    static int begun = 0;
    dft::buffer::g_hooks.begin = [] {
      ++begun;
      return false;
    };
    if (this_thread() != nullptr || begun != 1) return 2;
    return 0;
  });
  CHECK(result == 0);
  CHECK(dft::buffer::generation_is_live());
  CHECK(ids(recording) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a new generation re-attaches every thread, a new epoch drops its spans") {
  Recording recording;
  ThreadState* t = this_thread();
  REQUIRE(write(*t, instant(1)));
  const std::uint64_t live = t->live;
  t->level = 3;
  dft::buffer::new_generation();
  t = this_thread();
  CHECK(t->live == live);  // its spans are still open
  CHECK(t->level == 3);
  CHECK(t->lane.chunk == nullptr);
  dft::buffer::new_epoch();
  dft::buffer::new_generation();
  t = this_thread();
  CHECK(t->live != live);
  CHECK(t->lane.chunk == nullptr);
  CHECK(t->level == 0);
  REQUIRE(write(*t, instant(2)));
  CHECK(ids(recording) == std::vector<std::uint64_t>{1, 2});
}
