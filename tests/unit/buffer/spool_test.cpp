#include "buffer/spool.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <thread>

#include "support/fixture.hpp"

using dft::SlowPath;
using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::kFixedSize;
using dft::buffer::kLargeChunk;
using dft::buffer::kMaxSegments;
using dft::buffer::kSmallChunk;
using dft::buffer::Spool;
using fixture::state_of;
using fixture::TemporaryDirectory;

namespace {

constexpr std::size_t kSmallRoom = kSmallChunk - sizeof(ChunkHead);
constexpr std::size_t kLargeRoom = kLargeChunk - sizeof(ChunkHead);

Spool* create(const std::string& path) {
  int error = 0;
  return Spool::create(path.c_str(), 100, &error);
}

int create_error(const std::string& path) {
  int error = 0;
  CHECK(Spool::create(path.c_str(), 100, &error) == nullptr);
  return error;
}

}  // namespace

TEST_CASE("a new spool is a private file with its space reserved and six small chunks") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  struct stat info{};
  REQUIRE(::stat((directory / "s.spool").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_size == static_cast<off_t>(kFixedSize + dft::buffer::kPage + 6 * kSmallChunk));
  CHECK(static_cast<std::uint64_t>(info.st_blocks) * 512 >=
        static_cast<std::uint64_t>(info.st_size));
  CHECK(std::memcmp(spool->head().magic, dft::buffer::kMagic, 8) == 0);
  CHECK(spool->head().ready.load() == 0);
  CHECK(spool->large_chunks() == 0);
  int chunks = 0;
  spool->each_chunk([&](ChunkHead& chunk, std::uint64_t offset) {
    CHECK(chunk.size == kSmallChunk);
    CHECK(state_of(chunk) == ChunkState::kFree);
    CHECK(offset == kFixedSize + dft::buffer::kPage + static_cast<unsigned>(chunks) * kSmallChunk);
    ++chunks;
  });
  CHECK(chunks == 6);
  // A store is visible in the file at once, without a system call.
  spool->preamble()[0] = '#';
  CHECK(fixture::read_file(directory / "s.spool")[kFixedSize] == '#');
  spool->retire(true);
}

TEST_CASE("a spool never overwrites an existing file") {
  const TemporaryDirectory directory;
  fixture::write_file(directory / "file", "mine");
  CHECK(create_error(directory / "file") == -EEXIST);
  CHECK(fixture::read_file(directory / "file") == "mine");

  REQUIRE(::symlink((directory / "victim").c_str(), (directory / "link").c_str()) == 0);
  CHECK(create_error(directory / "link") == -EEXIST);
  CHECK_FALSE(fixture::exists(directory / "victim"));
  fixture::write_file(directory / "victim", "mine");
  CHECK(create_error(directory / "link") == -EEXIST);
  CHECK(fixture::read_file(directory / "victim") == "mine");

  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  CHECK(create_error(directory / "fifo") == -EEXIST);
  CHECK(directory.list() == std::vector<std::string>{"fifo", "file", "link", "victim"});
}

TEST_CASE("a spool that cannot be created returns the error and leaves nothing") {
  const TemporaryDirectory directory;
  CHECK(create_error(directory / "missing/s.spool") == -ENOENT);
  CHECK(create_error("/" + std::string(5000, 'x')) == -ENAMETOOLONG);
  CHECK(create_error(directory / std::string(300, 'x')) == -ENAMETOOLONG);
  CHECK(create_error("/proc/s.spool") < 0);
  REQUIRE(::chmod(directory.path(), 0500) == 0);
  if (::geteuid() != 0) CHECK(create_error(directory / "s.spool") == -EACCES);
  REQUIRE(::chmod(directory.path(), 0700) == 0);
  const int other_user = fixture::in_child([&] {  // so that it also works for root
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
    int error = 0;
    ::chmod(directory.path(), 0500);
    return Spool::create((directory / "s.spool").c_str(), 100, &error) == nullptr &&
                   error == -EACCES
               ? 0
               : 2;
  });
  CHECK(other_user == 0);
  CHECK(directory.list().empty());
}

TEST_CASE("a file size limit stops a spool without killing the process") {
  const TemporaryDirectory directory;
  const std::string path = directory / "s.spool";
  const int result = fixture::in_child([&] {
    SlowPath slow;  // as on every slow path
    for (const rlim_t bytes : {rlim_t{0}, rlim_t{4096}, rlim_t{kFixedSize + 5000}}) {
      const rlimit limit{bytes, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
      int error = 0;
      if (Spool::create(path.c_str(), 100, &error) != nullptr || error >= 0) return 2;
      if (fixture::exists(path)) return 3;
    }
    // Enough to create the spool, not enough to grow it.
    const rlimit limit{256 << 10, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 4;
    int error = 0;
    Spool* spool = Spool::create(path.c_str(), 100, &error);
    if (spool == nullptr) return 5;
    struct stat before{};
    ::stat(path.c_str(), &before);
    // A smaller step is tried if the large one does not fit.
    while (fixture::grow(*spool, 100, false)) {
    }
    if (spool->large_chunks() > 2) return 6;
    struct stat after{};
    ::stat(path.c_str(), &after);
    if (after.st_size > 256 << 10) return 7;
    if (spool->take(100, true, 1) == nullptr) return 8;  // existing chunks stay usable
    return 0;
  });
  CHECK(result == 0);
}

#ifndef DFT_SANITIZED  // the sanitizer itself would run out first
TEST_CASE("an address space limit stops a spool, and leaves no file") {
  const TemporaryDirectory directory;
  const std::string path = directory / "s.spool";
  const int result = fixture::in_child([&] {
    int error = 0;
    Spool* spool = Spool::create((directory / "first").c_str(), 100, &error);
    if (spool == nullptr) return 1;
    const rlimit limit{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    if (Spool::create(path.c_str(), 100, &error) != nullptr || error != -ENOMEM) return 3;
    if (::access(path.c_str(), F_OK) == 0) return 4;
    struct stat before{};
    struct stat after{};
    ::stat((directory / "first").c_str(), &before);
    if (fixture::grow(*spool, 100, false)) return 5;
    ::stat((directory / "first").c_str(), &after);
    return before.st_size == after.st_size ? 0 : 6;  // no space reserved that cannot be mapped
  });
  CHECK(result == 0);
}
#endif

TEST_CASE("take() returns every chunk once, in numbered order") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  std::set<ChunkHead*> taken;
  for (std::uint64_t i = 0; i < 6; ++i) {
    ChunkHead* chunk = spool->take(10, true, 40 + static_cast<std::uint32_t>(i));
    REQUIRE(chunk != nullptr);
    CHECK(taken.insert(chunk).second);
    CHECK(chunk->sequence.load() == i);
    CHECK(chunk->thread.load() == 40 + i);
    CHECK(state_of(*chunk) == ChunkState::kOwned);
    CHECK(dft::buffer::room(*chunk) == kSmallRoom);
  }
  CHECK(spool->take(10, true, 1) == nullptr);
  fixture::set_state(**taken.begin(), ChunkState::kFree);
  CHECK(spool->take(10, true, 1) == *taken.begin());
  spool->retire(true);
}

TEST_CASE("take() returns a chunk of the right size") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  CHECK(spool->take(10, false, 1) == nullptr);  // small chunks are for a thread's first
  REQUIRE(fixture::grow(*spool, 10, false));
  CHECK(spool->large_chunks() == 8);
  ChunkHead* large = spool->take(10, false, 1);
  REQUIRE(large != nullptr);
  CHECK(large->size == kLargeChunk);
  CHECK(spool->take(kSmallRoom, true, 1)->size == kSmallChunk);
  CHECK(spool->take(kSmallRoom + 1, true, 1)->size == kLargeChunk);
  CHECK(spool->take(kLargeRoom, false, 1)->size == kLargeChunk);
  CHECK(spool->take(kLargeRoom + 1, false, 1) == nullptr);
  REQUIRE(fixture::grow(*spool, kLargeRoom + 1, false));
  ChunkHead* huge = spool->take(kLargeRoom + 1, false, 1);
  REQUIRE(huge != nullptr);
  CHECK(huge->size == 2 * kLargeChunk);
  CHECK(spool->take(kLargeRoom + 1, false, 1) == nullptr);  // one, not eight
  spool->retire(true);
}

TEST_CASE("chunks added by grow() can be taken, for every size") {
  const TemporaryDirectory directory;
  for (const bool first : {true, false}) {
    for (const std::size_t need : {std::size_t{1}, kSmallRoom, kSmallRoom + 1, std::size_t{20000},
                                   kLargeRoom, kLargeRoom + 1, std::size_t{1} << 20}) {
      CAPTURE(need);
      CAPTURE(first);
      Spool* spool = create(directory / "s.spool");
      REQUIRE(spool != nullptr);
      while (spool->take(need, first, 1) != nullptr) {
      }
      REQUIRE(fixture::grow(*spool, need, first));
      ChunkHead* chunk = spool->take(need, first, 1);
      CHECK(chunk != nullptr);
      if (chunk != nullptr) CHECK(dft::buffer::room(*chunk) >= need);
      spool->retire(true);
    }
  }
}

TEST_CASE("the table of segments is bounded") {
  const TemporaryDirectory directory;
  const int result = fixture::in_child([&] {
    // Steps grow by half each time: the file size limit keeps a bug from filling the disk.
    SlowPath slow;
    const rlimit limit{64 << 20, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int error = 0;
    Spool* spool = Spool::create((directory / "s.spool").c_str(), 100, &error);
    if (spool == nullptr) return 1;
    int grown = 0;
    while (grown < 1000 && fixture::grow(*spool, kLargeRoom + 1, false)) ++grown;
    if (spool->head().segments.load() != kMaxSegments) return 2;
    return grown == static_cast<int>(kMaxSegments) - 1 ? 0 : 3;
  });
  CHECK(result == 0);
}

TEST_CASE("grow() does not touch a file that took the spool's name") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  SUBCASE("a file") {
    REQUIRE(::unlink((directory / "s.spool").c_str()) == 0);
    fixture::write_file(directory / "s.spool", "mine");
  }
  SUBCASE("a symbolic link to the spool itself") {
    REQUIRE(::rename((directory / "s.spool").c_str(), (directory / "moved").c_str()) == 0);
    REQUIRE(::symlink("moved", (directory / "s.spool").c_str()) == 0);
  }
  SUBCASE("nothing") { REQUIRE(::unlink((directory / "s.spool").c_str()) == 0); }
  const std::vector<std::string> before = directory.list();
  CHECK_FALSE(fixture::grow(*spool, 100, false));
  spool->retire(true);
  CHECK(directory.list() == before);
  if (fixture::read_file(directory / "s.spool").size() < 100) {
    CHECK((fixture::read_file(directory / "s.spool") == "mine" ||
           !fixture::exists(directory / "s.spool")));
  }
}

TEST_CASE("a renamed spool grows and is removed under its new name") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "a");
  REQUIRE(spool != nullptr);
  REQUIRE(::rename((directory / "a").c_str(), (directory / "b").c_str()) == 0);
  spool->moved_to((directory / "b").c_str());
  CHECK(fixture::grow(*spool, 100, false));
  CHECK(spool->path() == directory / "b");
  spool->retire(true);
  CHECK(directory.list().empty());
}

TEST_CASE("a retired spool discards writes from late threads") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  ChunkHead* chunk = spool->take(10, true, 1);
  fixture::put(*chunk, std::string(100, 'x'));
  const std::string before = fixture::read_file(directory / "s.spool");
  spool->retire(false);
  std::memset(static_cast<void*>(dft::buffer::payload(*chunk)), 'y', kSmallRoom);
  chunk->committed.store(kSmallRoom);
  spool->head().lost.fetch_add(1);
  CHECK(fixture::read_file(directory / "s.spool") == before);
}

TEST_CASE("threads that take chunks concurrently never share one") {
  const TemporaryDirectory directory;
  Spool* spool = create(directory / "s.spool");
  REQUIRE(spool != nullptr);
  constexpr int kThreads = 4;
  std::vector<ChunkHead*> taken[kThreads];
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        ChunkHead* chunk = spool->take(10, true, static_cast<std::uint32_t>(i + 1));
        while (chunk == nullptr && fixture::grow(*spool, 10, true)) {
          chunk = spool->take(10, true, static_cast<std::uint32_t>(i + 1));
        }
        if (chunk != nullptr) taken[i].push_back(chunk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<ChunkHead*> all;
  std::set<std::uint64_t> sequences;
  for (const auto& mine : taken) {
    CHECK(mine.size() == 20);
    for (ChunkHead* chunk : mine) {
      CHECK(all.insert(chunk).second);
      CHECK(sequences.insert(chunk->sequence.load()).second);
    }
  }
  spool->retire(true);
}
