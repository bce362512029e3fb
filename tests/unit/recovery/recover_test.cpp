#include "recovery/recover.hpp"

#include <sys/file.h>

#include <map>
#include <numeric>
#include <thread>

#include "base/message.hpp"
#include "sink/sink.hpp"
#include "support/fixture.hpp"
#include "support/gunzip.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::Spool;
using dft::buffer::SpoolHead;
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

constexpr const char* kName = ".t.pfw.spool";

// The recoverer's messages go into a file of the test.
struct LoggedDirectory : TemporaryDirectory {
  LoggedDirectory() { dft::say_into((*this / "messages").c_str()); }
  ~LoggedDirectory() { dft::say_into(nullptr); }
  std::string messages() const { return read_file(*this / "messages"); }
};

std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> list(to - from + 1);
  std::iota(list.begin(), list.end(), from);
  return list;
}

// A process that records `events` spans, flushes the first ones to the file, and is killed.
void record_and_die(const std::string& spool_path, const std::string& directory, const char* trace,
                    std::uint64_t events, std::uint64_t flushed = 0, std::uint64_t run = 1) {
  const int result = fixture::in_child([&] {
    const bool compressed = std::string_view(trace).ends_with(".gz");
    Spool* spool = fixture::make_spool(spool_path, trace,
                                       compressed ? std::uint32_t{dft::buffer::kCompressed} : 0u);
    if (spool == nullptr) return 1;
    spool->head().run = run;
    ChunkHead* chunk = spool->take(10, true, 77);
    for (std::uint64_t id = 1; id <= events; ++id) {
      if (!fixture::put(*chunk, fixture::make_span(id))) {
        fixture::set_state(*chunk, ChunkState::kFull);
        if (!fixture::grow(*spool, 10, false) || (chunk = spool->take(10, false, 77)) == nullptr)
          return 2;
        fixture::put(*chunk, fixture::make_span(id));
      }
      if (id == flushed) {
        auto* sink = dft::sink::Sink::create(*spool, directory.c_str(), 1 << 16);
        if (!sink->drain(dft::sink::Sink::Scope::kEverything)) return 3;
      }
    }
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  REQUIRE(result == 1000 + SIGKILL);
}

template <class Change>
void change_head(const std::string& path, Change change) {
  const fixture::Image image(read_file(path));
  change(image.head());
  write_file(path, {reinterpret_cast<const char*>(image.data()), image.size()});
}

// As if it had last been written two days ago.
void make_old(const std::string& path) {
  const timespec then[2] = {{::time(nullptr) - 2 * 86400, 0}, {::time(nullptr) - 2 * 86400, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), then, AT_SYMLINK_NOFOLLOW) == 0);
}

RecoveryOutcome recover(const TemporaryDirectory& directory, const char* name = kName,
                        bool force = false) {
  RecoveryCounts found;
  RecoveryOptions wanted;
  wanted.force = force;
  return recover_spool(directory.path(), name, wanted, found);
}

}  // namespace

TEST_CASE("what a killed process committed is in the trace, once") {
  for (const char* trace : {"t.pfw", "t.pfw.gz"}) {
    for (const std::uint64_t flushed : {0, 1, 300, 1000}) {
      CAPTURE(trace);
      CAPTURE(flushed);
      const LoggedDirectory directory;
      record_and_die(directory / kName, directory.path(), trace, 1000, flushed);
      RecoveryCounts found;
      CHECK(recover_spool(directory.path(), kName, {}, found) == RecoveryOutcome::kRecovered);
      CHECK(found.recovered == 1);
      CHECK(found.events >= 1000 - flushed);
      std::string text = read_file(directory / trace);
      if (std::string_view(trace).ends_with(".gz")) text = fixture::gunzip_text(text);
      CHECK(event_ids(text) == range(1, 1000));
      const std::string end = fixture::lines_of(text).back();
      CHECK(end.find("\"recovered\":true") != end.npos);
      CHECK(recover(directory) == RecoveryOutcome::kNothing);  // the spool is gone
      CHECK(directory.list() == std::vector<std::string>{trace});
    }
  }
}

TEST_CASE("the spool of a running process is left alone") {
  const LoggedDirectory directory;
  Spool* spool = fixture::make_spool(directory / kName, "t.pfw");
  REQUIRE(spool != nullptr);
  CHECK(recover(directory) == RecoveryOutcome::kAlive);
  CHECK(recover(directory, kName, true) ==
        RecoveryOutcome::kAlive);  // force is for those that cannot be seen
  CHECK(fixture::exists(directory / kName));
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
  spool->retire(true);
}

TEST_CASE("the spool of an unknown owner is left alone until it is silent or forced") {
  const LoggedDirectory directory;
  record_and_die(directory / kName, directory.path(), "t.pfw", 5);
  const auto now = static_cast<std::uint64_t>(::time(nullptr));
  change_head(directory / kName, [&](SpoolHead& head) {
    ++head.owner.pid_namespace;
    head.heartbeat.store(now);
  });
  CHECK(recover(directory) == RecoveryOutcome::kUnknown);
  change_head(directory / kName, [&](SpoolHead& head) { head.heartbeat.store(now - 23 * 3600); });
  CHECK(recover(directory) == RecoveryOutcome::kUnknown);
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
  SUBCASE("silent") {
    change_head(directory / kName, [&](SpoolHead& head) { head.heartbeat.store(now - 25 * 3600); });
    make_old(directory / kName);
    CHECK(recover(directory) == RecoveryOutcome::kRecovered);
  }
  SUBCASE("by force") { CHECK(recover(directory, kName, true) == RecoveryOutcome::kRecovered); }
  CHECK(event_ids(read_file(directory / "t.pfw")) == range(1, 5));
}

TEST_CASE("only the requested run is touched") {
  const LoggedDirectory directory;
  record_and_die(directory / ".a.pfw.spool", directory.path(), "a.pfw", 3, 0, 7);
  record_and_die(directory / ".b.pfw.spool", directory.path(), "b.pfw", 3, 0, 8);
  RecoveryOptions wanted;
  wanted.only_run = true;
  wanted.run = 7;
  RecoveryCounts found;
  CHECK(recover_directory(directory.path(), wanted, found) == 0);
  CHECK(found.spools == 2);
  CHECK(found.recovered == 1);
  CHECK(fixture::exists(directory / "a.pfw"));
  CHECK(fixture::exists(directory / ".b.pfw.spool"));
}

TEST_CASE("all spools of a directory are recovered, and other files stay") {
  const LoggedDirectory directory;
  for (int i = 0; i < 8; ++i) {
    const std::string trace = "t" + std::to_string(i) + ".pfw";
    record_and_die(directory / ("." + trace + ".spool"), directory.path(), trace.c_str(), 20);
  }
  write_file(directory / "visible.spool", "mine");
  write_file(directory / ".other.txt", "mine");
  RecoveryCounts found;
  CHECK(recover_directory(directory.path(), {}, found) == 0);
  CHECK(found.recovered == 8);
  CHECK(found.events == 160);
  for (int i = 0; i < 8; ++i) {
    CHECK(event_ids(read_file(directory / ("t" + std::to_string(i) + ".pfw"))) == range(1, 20));
  }
  CHECK(read_file(directory / "visible.spool") == "mine");
  CHECK(read_file(directory / ".other.txt") == "mine");
  CHECK(recover_directory((directory / "missing").c_str(), {}, found) == -ENOENT);
  CHECK(recover_directory((directory / "t0.pfw").c_str(), {}, found) == -ENOTDIR);
}

TEST_CASE("a spool that was never completed is removed") {
  const LoggedDirectory directory;
  record_and_die(directory / kName, directory.path(), "t.pfw", 5);
  change_head(directory / kName, [](SpoolHead& head) { head.ready.store(0); });
  CHECK(recover(directory) == RecoveryOutcome::kNothing);
  CHECK_FALSE(fixture::exists(directory / kName));
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
}

TEST_CASE("a damaged spool stays, and one message gives the reason") {
  const LoggedDirectory directory;
  record_and_die(directory / kName, directory.path(), "t.pfw", 5);
  change_head(directory / kName, [](SpoolHead& head) { head.segments.store(999); });
  CHECK(recover(directory) == RecoveryOutcome::kBroken);
  CHECK(fixture::exists(directory / kName));
  CHECK(fixture::lines_of(directory.messages()).size() == 1);
  CHECK(directory.messages().find(kName) != std::string::npos);
  CHECK_FALSE(fixture::exists(directory / "t.pfw"));
}

TEST_CASE("files that are not spools stay") {
  const LoggedDirectory directory;
  write_file(directory / ".text.spool", std::string(200000, 'x'));
  write_file(directory / ".fresh.spool", "");  // its owner may be about to fill it
  REQUIRE(::symlink("messages", (directory / ".link.spool").c_str()) == 0);
  REQUIRE(::mkfifo((directory / ".fifo.spool").c_str(), 0600) == 0);
  REQUIRE(::mkdir((directory / ".dir.spool").c_str(), 0700) == 0);
  const auto before = directory.list();
  RecoveryCounts found;
  CHECK(recover_directory(directory.path(), {}, found) == 0);
  CHECK(found.recovered == 0);
  CHECK(recover(directory, ".text.spool") == RecoveryOutcome::kBroken);
  CHECK(recover(directory, ".fresh.spool") == RecoveryOutcome::kAlive);
  CHECK(recover(directory, ".link.spool") == RecoveryOutcome::kNothing);
  CHECK(recover(directory, ".fifo.spool") == RecoveryOutcome::kNothing);
  CHECK(recover(directory, ".dir.spool") == RecoveryOutcome::kNothing);
  CHECK(recover(directory, std::string(300, 'x').c_str()) == RecoveryOutcome::kNothing);
  CHECK(recover(directory, "../x.spool") == RecoveryOutcome::kNothing);
  auto after = directory.list();
  std::erase(after, "messages");
  CHECK(after == before);
}

TEST_CASE("an old file that is not a spool stays, an old empty spool is removed") {
  const LoggedDirectory directory;
  write_file(directory / ".zero.spool", std::string(100000, '\0') + "mine");
  write_file(directory / ".nul.spool", std::string(1, '\0') + std::string(100000, 'x'));
  write_file(directory / ".short.spool", "mine");
  write_file(directory / ".empty.spool", "");
  for (const std::string& name : directory.list()) make_old(directory / name);
  RecoveryCounts found;
  CHECK(recover_directory(directory.path(), {}, found) == 0);
  CHECK(fixture::exists(directory / ".nul.spool"));
  CHECK(fixture::exists(directory / ".short.spool"));
  CHECK_FALSE(fixture::exists(directory / ".empty.spool"));
}

TEST_CASE("a spool that names anything but a trace next to it is rejected") {
  for (const char* name : {"../victim.pfw", "/tmp/victim.pfw", "victim.txt", ".victim.pfw", ""}) {
    CAPTURE(name);
    const LoggedDirectory directory;
    record_and_die(directory / kName, directory.path(), "t.pfw", 5);
    change_head(directory / kName, [&](SpoolHead& head) { std::strcpy(head.trace_name, name); });
    CHECK(recover(directory) == RecoveryOutcome::kBroken);
    CHECK(fixture::exists(directory / kName));
  }
}

TEST_CASE("another user's spool is left alone") {
  if (::geteuid() != 0) return;
  const LoggedDirectory directory;
  record_and_die(directory / kName, directory.path(), "t.pfw", 5);
  REQUIRE(::chmod(directory.path(), 0777) == 0);
  REQUIRE(::chmod((directory / kName).c_str(), 0666) == 0);
  const int result = fixture::in_child([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    return recover(directory) == RecoveryOutcome::kNothing ? 0 : 2;
  });
  CHECK(result == 0);
  CHECK(fixture::exists(directory / kName));
  REQUIRE(::chown((directory / kName).c_str(), 65534, 65534) == 0);
  CHECK(recover(directory) ==
        RecoveryOutcome::kNothing);  // not even for root, unless it is asked to
  RecoveryCounts found;
  RecoveryOptions wanted;
  wanted.any_user = true;
  CHECK(recover_spool(directory.path(), kName, wanted, found) == RecoveryOutcome::kRecovered);
}

TEST_CASE("the rest of a trace that disappeared gets a new name") {
  for (const char* trace : {"t.pfw", "t.pfw.gz"}) {
    CAPTURE(trace);
    const LoggedDirectory directory;
    record_and_die(directory / kName, directory.path(), trace, 100, 60);
    SUBCASE("removed") { REQUIRE(::unlink((directory / trace).c_str()) == 0); }
    SUBCASE("replaced") {
      write_file(directory / "new", "mine");
      REQUIRE(::rename((directory / "new").c_str(), (directory / trace).c_str()) == 0);
    }
    SUBCASE("shortened") { REQUIRE(::truncate((directory / trace).c_str(), 3) == 0); }
    const std::string before = read_file(directory / trace);
    CHECK(recover(directory) == RecoveryOutcome::kRecovered);
    CHECK(read_file(directory / trace) == before);
    std::string rest;
    for (const std::string& name : directory.list()) {
      if (name.find("-rest-") != name.npos) rest = name;
    }
    REQUIRE_FALSE(rest.empty());
    CHECK(rest.starts_with("t-rest-"));
    CHECK(rest.ends_with(std::string_view(trace).substr(1)));
    std::string text = read_file(directory / rest);
    if (rest.ends_with(".gz")) text = fixture::gunzip_text(text);
    CHECK(text.starts_with(fixture::kPreamble));
    CHECK(event_ids(text) == range(61, 100));
  }
}

TEST_CASE("the spool stays if the trace cannot be written") {
  const LoggedDirectory directory;
  record_and_die(directory / kName, directory.path(), "t.pfw", 5);
  REQUIRE(::mkdir((directory / "t.pfw").c_str(), 0700) == 0);
  CHECK(recover(directory) == RecoveryOutcome::kBroken);
  CHECK(fixture::exists(directory / kName));
  REQUIRE(::rmdir((directory / "t.pfw").c_str()) == 0);
  CHECK(recover(directory) == RecoveryOutcome::kRecovered);
  CHECK(event_ids(read_file(directory / "t.pfw")) == range(1, 5));
}
