// Recovery with other processes involved: two recoverers at once, one that dies midway, and spools
// on another file system behind a spool pointer.
#include <sys/file.h>

#include <numeric>

#include "base/message.hpp"
#include "recovery/recover.hpp"
#include "support/fixture.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::Spool;
using dft::recovery::kSpoolPointerStart;
using dft::recovery::recover_directory;
using dft::recovery::recover_spool;
using dft::recovery::RecoveryCounts;
using dft::recovery::RecoveryOptions;
using dft::recovery::RecoveryOutcome;
using fixture::event_ids;
using fixture::read_file;
using fixture::TemporaryDirectory;
using fixture::write_file;

namespace {

std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> list(to - from + 1);
  std::iota(list.begin(), list.end(), from);
  return list;
}

constexpr std::uint64_t kNoteKey = 0x1234;

// The spool of a dead process, with spans 1 to 100.
void dead_spool(const std::string& path, const char* trace) {
  const int result = fixture::in_child([&] {
    Spool* spool = fixture::make_spool(path, trace);
    if (spool == nullptr) return 1;
    spool->head().pointer_key = kNoteKey;
    ChunkHead* chunk = spool->take(10, true, 77);
    for (std::uint64_t id = 1; id <= 100; ++id) fixture::put(*chunk, fixture::make_span(id));
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  REQUIRE(result == 1000 + SIGKILL);
}

RecoveryOutcome recover(const TemporaryDirectory& directory, const char* name, bool force = false) {
  RecoveryCounts found;
  RecoveryOptions wanted;
  wanted.force = force;
  return recover_spool(directory.path(), name, wanted, found);
}

void write_note(const std::string& path, const std::string& spool) {
  write_file(path, std::string(kSpoolPointerStart) + spool + "\n0000000000001234\n");
}

}  // namespace

TEST_CASE("concurrent recoverers never lose or duplicate a record") {
  for (int round = 0; round < 10; ++round) {
    const TemporaryDirectory directory;
    constexpr int kSpools = 6;
    for (int i = 0; i < kSpools; ++i) {
      const std::string trace = "t" + std::to_string(i) + ".pfw";
      dead_spool(directory / ("." + trace + ".spool"), trace.c_str());
    }
    std::atomic<int>* go = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<pid_t> pids;
    for (int i = 0; i < 3; ++i) {
      pids.push_back(fixture::start_child([&] {
        dft::say_into("/dev/null");
        go->fetch_add(1);
        while (go->load() < 3) {
        }
        RecoveryCounts found;
        if (recover_directory(directory.path(), {}, found) != 0) return 99;
        return static_cast<int>(found.recovered);
      }));
    }
    int recovered = 0;
    for (const pid_t pid : pids) recovered += fixture::wait_for(pid);
    ::munmap(go, 4096);
    CHECK(recovered == kSpools);
    for (int i = 0; i < kSpools; ++i) {
      CHECK(event_ids(read_file(directory / ("t" + std::to_string(i) + ".pfw"))) == range(1, 100));
    }
    CHECK(directory.list().size() == kSpools);
  }
}

TEST_CASE("a spool that another recoverer holds is left alone") {
  const TemporaryDirectory directory;
  dead_spool(directory / ".t.pfw.spool", "t.pfw");
  const int fd = ::open((directory / ".t.pfw.spool").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::flock(fd, LOCK_EX) == 0);
  CHECK(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kAlive);
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
  ::close(fd);
  CHECK(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kRecovered);
}

TEST_CASE("the next recoverer finishes after one that died") {
  // It wrote the whole trace and died before it removed the spool: the spool is unchanged.
  const TemporaryDirectory directory;
  dead_spool(directory / ".t.pfw.spool", "t.pfw");
  const std::string spool = read_file(directory / ".t.pfw.spool");
  REQUIRE(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kRecovered);
  write_file(directory / ".t.pfw.spool", spool);
  CHECK(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kRecovered);
  CHECK(event_ids(read_file(directory / "t.pfw")) == range(1, 100));
  CHECK(directory.list() == std::vector<std::string>{"t.pfw"});
}

TEST_CASE("a spool pointer leads to a spool elsewhere, whose trace is next to the pointer") {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  dead_spool(elsewhere / "dftracer-1.spool", "t.pfw");
  write_note(directory / ".t.pfw.spool", elsewhere / "dftracer-1.spool");
  RecoveryCounts found;
  CHECK(recover_directory(directory.path(), {}, found) == 0);
  CHECK(found.recovered == 1);
  CHECK(event_ids(read_file(directory / "t.pfw")) == range(1, 100));
  CHECK(directory.list() == std::vector<std::string>{"t.pfw"});
  CHECK(elsewhere.list().empty());
}

TEST_CASE("the pointer to a spool in use stays") {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  Spool* spool = fixture::make_spool(elsewhere / "dftracer-1.spool", "t.pfw");
  REQUIRE(spool != nullptr);
  spool->head().pointer_key = kNoteKey;
  write_note(directory / ".t.pfw.spool", elsewhere / "dftracer-1.spool");
  CHECK(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kAlive);
  CHECK(fixture::exists(directory / ".t.pfw.spool"));
  CHECK(fixture::exists(elsewhere / "dftracer-1.spool"));
  spool->retire(true);
}

TEST_CASE("the pointer to a missing spool stays unless recovery is forced") {
  const TemporaryDirectory directory;
  write_note(directory / ".t.pfw.spool", directory / "missing.spool");
  CHECK(recover(directory, ".t.pfw.spool") == RecoveryOutcome::kUnknown);
  CHECK(fixture::exists(directory / ".t.pfw.spool"));
  CHECK(recover(directory, ".t.pfw.spool", true) == RecoveryOutcome::kNothing);
  CHECK_FALSE(fixture::exists(directory / ".t.pfw.spool"));
}

TEST_CASE("a pointer with a wrong key touches neither a real spool nor an empty one") {
  const TemporaryDirectory directory;
  dft::say_into("/dev/null");
  dead_spool(directory / "real.spool", "t.pfw");
  write_file(directory / "empty.spool", "");
  const std::string before = read_file(directory / "real.spool");
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (directory / "empty.spool").c_str(), long_ago, 0) == 0);
  for (const char* victim : {"real.spool", "empty.spool"}) {
    for (const char* key : {"", "0\n", "0000000000004321\n", "x\n"}) {
      CAPTURE(victim);
      CAPTURE(key);
      write_file(directory / ".t.pfw.spool",
                 std::string(kSpoolPointerStart) + (directory / victim) + "\n" + key);
      for (const bool force : {false, true})
        CHECK(recover(directory, ".t.pfw.spool", force) != RecoveryOutcome::kRecovered);
      CHECK(read_file(directory / "real.spool") == before);
      CHECK(fixture::exists(directory / "empty.spool"));
    }
  }
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
  dft::say_into(nullptr);
}

TEST_CASE("a pointer cannot be used to reach another file") {
  const TemporaryDirectory directory;
  dft::say_into("/dev/null");
  write_file(directory / "victim", "mine");
  write_file(directory / "victim.spool", "mine");
  REQUIRE(::symlink("victim.spool", (directory / "link.spool").c_str()) == 0);
  const std::string long_path = "/" + std::string(5000, 'x') + ".spool";
  const std::string pointers[] = {
      std::string(kSpoolPointerStart) + (directory / "victim") + "\n",  // not a spool's name
      std::string(kSpoolPointerStart) + "victim.spool\n",               // not absolute
      std::string(kSpoolPointerStart) + (directory / "victim.spool"),   // no newline
      std::string(kSpoolPointerStart) + (directory / "link.spool") + "\n",
      std::string(kSpoolPointerStart) + (directory / "victim.spool") + "\n",
      std::string(kSpoolPointerStart) + long_path + "\n",
      std::string(kSpoolPointerStart) + "/\n",
      std::string(kSpoolPointerStart),
      std::string(kSpoolPointerStart) + "/" + std::string("\0.spool\n", 8),
  };
  for (const std::string& pointer : pointers) {
    CAPTURE(pointer.substr(0, 100));
    write_file(directory / ".t.pfw.spool", pointer);
    for (const bool force : {false, true}) {
      CHECK(recover(directory, ".t.pfw.spool", force) != RecoveryOutcome::kRecovered);
    }
    CHECK(read_file(directory / "victim") == "mine");
    CHECK(read_file(directory / "victim.spool") == "mine");
    CHECK_FALSE(fixture::exists(directory / "t.pfw"));
  }
  dft::say_into(nullptr);
}
