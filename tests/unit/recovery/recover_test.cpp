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
using dft::recovery::Found;
using dft::recovery::Outcome;
using dft::recovery::recover_directory;
using dft::recovery::recover_spool;
using dft::recovery::Wanted;
using fixture::event_ids;
using fixture::read_file;
using fixture::TemporaryDirectory;
using fixture::write_file;

namespace {

constexpr const char* kName = ".t.pfw.spool";

// What the recoverer says goes into a file of the test's.
struct Place : TemporaryDirectory {
  Place() { dft::say_into((*this / "said").c_str()); }
  ~Place() { dft::say_into(nullptr); }
  std::string said() const { return read_file(*this / "said"); }
};

std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> list(to - from + 1);
  std::iota(list.begin(), list.end(), from);
  return list;
}

// A process that records `events` spans, of which the first ones may be in the file already, and is
// killed.
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

// As if nobody had written to it for two days.
void make_old(const std::string& path) {
  const timespec then[2] = {{::time(nullptr) - 2 * 86400, 0}, {::time(nullptr) - 2 * 86400, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), then, AT_SYMLINK_NOFOLLOW) == 0);
}

Outcome recover(const TemporaryDirectory& directory, const char* name = kName, bool force = false) {
  Found found;
  Wanted wanted;
  wanted.force = force;
  return recover_spool(directory.path(), name, wanted, found);
}

}  // namespace

TEST_CASE("what a killed process had committed is in the trace, once") {
  for (const char* trace : {"t.pfw", "t.pfw.gz"}) {
    for (const std::uint64_t flushed : {0, 1, 300, 1000}) {
      CAPTURE(trace);
      CAPTURE(flushed);
      const Place place;
      record_and_die(place / kName, place.path(), trace, 1000, flushed);
      Found found;
      CHECK(recover_spool(place.path(), kName, {}, found) == Outcome::kRecovered);
      CHECK(found.recovered == 1);
      CHECK(found.events >= 1000 - flushed);
      std::string text = read_file(place / trace);
      if (std::string_view(trace).ends_with(".gz")) text = fixture::gunzip_text(text);
      CHECK(event_ids(text) == range(1, 1000));
      const std::string end = fixture::lines_of(text).back();
      CHECK(end.find("\"recovered\":true") != end.npos);
      CHECK(recover(place) == Outcome::kNothing);  // nobody finds it again
      CHECK(place.list() == std::vector<std::string>{trace});
    }
  }
}

TEST_CASE("the spool of a process that runs is left alone") {
  const Place place;
  Spool* spool = fixture::make_spool(place / kName, "t.pfw");
  REQUIRE(spool != nullptr);
  CHECK(recover(place) == Outcome::kAlive);
  CHECK(recover(place, kName, true) == Outcome::kAlive);  // force is for those that cannot be seen
  CHECK(fixture::exists(place / kName));
  CHECK_FALSE(fixture::exists(place / "t.pfw"));
  spool->retire(true);
}

TEST_CASE("an owner that cannot be seen is left alone until it is silent for long, or by force") {
  const Place place;
  record_and_die(place / kName, place.path(), "t.pfw", 5);
  const auto now = static_cast<std::uint64_t>(::time(nullptr));
  change_head(place / kName, [&](SpoolHead& head) {
    ++head.owner.pid_namespace;
    head.heartbeat.store(now);
  });
  CHECK(recover(place) == Outcome::kUnknown);
  change_head(place / kName, [&](SpoolHead& head) { head.heartbeat.store(now - 23 * 3600); });
  CHECK(recover(place) == Outcome::kUnknown);
  CHECK_FALSE(fixture::exists(place / "t.pfw"));
  SUBCASE("silent") {
    change_head(place / kName, [&](SpoolHead& head) { head.heartbeat.store(now - 25 * 3600); });
    make_old(place / kName);
    CHECK(recover(place) == Outcome::kRecovered);
  }
  SUBCASE("by force") { CHECK(recover(place, kName, true) == Outcome::kRecovered); }
  CHECK(event_ids(read_file(place / "t.pfw")) == range(1, 5));
}

TEST_CASE("only the wanted run is touched") {
  const Place place;
  record_and_die(place / ".a.pfw.spool", place.path(), "a.pfw", 3, 0, 7);
  record_and_die(place / ".b.pfw.spool", place.path(), "b.pfw", 3, 0, 8);
  Wanted wanted;
  wanted.only_run = true;
  wanted.run = 7;
  Found found;
  CHECK(recover_directory(place.path(), wanted, found) == 0);
  CHECK(found.spools == 2);
  CHECK(found.recovered == 1);
  CHECK(fixture::exists(place / "a.pfw"));
  CHECK(fixture::exists(place / ".b.pfw.spool"));
}

TEST_CASE("a directory is finished as a whole, and foreign files stay") {
  const Place place;
  for (int i = 0; i < 8; ++i) {
    const std::string trace = "t" + std::to_string(i) + ".pfw";
    record_and_die(place / ("." + trace + ".spool"), place.path(), trace.c_str(), 20);
  }
  write_file(place / "visible.spool", "mine");
  write_file(place / ".other.txt", "mine");
  Found found;
  CHECK(recover_directory(place.path(), {}, found) == 0);
  CHECK(found.recovered == 8);
  CHECK(found.events == 160);
  for (int i = 0; i < 8; ++i) {
    CHECK(event_ids(read_file(place / ("t" + std::to_string(i) + ".pfw"))) == range(1, 20));
  }
  CHECK(read_file(place / "visible.spool") == "mine");
  CHECK(read_file(place / ".other.txt") == "mine");
  CHECK(recover_directory((place / "missing").c_str(), {}, found) == -ENOENT);
  CHECK(recover_directory((place / "t0.pfw").c_str(), {}, found) == -ENOTDIR);
}

TEST_CASE("a spool that was never completed holds nothing and goes") {
  const Place place;
  record_and_die(place / kName, place.path(), "t.pfw", 5);
  change_head(place / kName, [](SpoolHead& head) { head.ready.store(0); });
  CHECK(recover(place) == Outcome::kNothing);
  CHECK_FALSE(fixture::exists(place / kName));
  CHECK_FALSE(fixture::exists(place / "t.pfw"));
}

TEST_CASE("a damaged spool stays, and one line says why") {
  const Place place;
  record_and_die(place / kName, place.path(), "t.pfw", 5);
  change_head(place / kName, [](SpoolHead& head) { head.segments.store(999); });
  CHECK(recover(place) == Outcome::kBroken);
  CHECK(fixture::exists(place / kName));
  CHECK(fixture::lines_of(place.said()).size() == 1);
  CHECK(place.said().find(kName) != std::string::npos);
  CHECK_FALSE(fixture::exists(place / "t.pfw"));
}

TEST_CASE("what is no spool stays, whatever it is") {
  const Place place;
  write_file(place / ".text.spool", std::string(200000, 'x'));
  write_file(place / ".fresh.spool", "");  // somebody may be about to fill it
  REQUIRE(::symlink("said", (place / ".link.spool").c_str()) == 0);
  REQUIRE(::mkfifo((place / ".fifo.spool").c_str(), 0600) == 0);
  REQUIRE(::mkdir((place / ".dir.spool").c_str(), 0700) == 0);
  const auto before = place.list();
  Found found;
  CHECK(recover_directory(place.path(), {}, found) == 0);
  CHECK(found.recovered == 0);
  CHECK(recover(place, ".text.spool") == Outcome::kBroken);
  CHECK(recover(place, ".fresh.spool") == Outcome::kAlive);
  CHECK(recover(place, ".link.spool") == Outcome::kNothing);
  CHECK(recover(place, ".fifo.spool") == Outcome::kNothing);
  CHECK(recover(place, ".dir.spool") == Outcome::kNothing);
  CHECK(recover(place, std::string(300, 'x').c_str()) == Outcome::kNothing);
  CHECK(recover(place, "../x.spool") == Outcome::kNothing);
  auto after = place.list();
  std::erase(after, "said");
  CHECK(after == before);
}

TEST_CASE("an old file that is no spool stays, an old empty one of ours goes") {
  const Place place;
  write_file(place / ".zero.spool", std::string(100000, '\0') + "mine");
  write_file(place / ".nul.spool", std::string(1, '\0') + std::string(100000, 'x'));
  write_file(place / ".short.spool", "mine");
  write_file(place / ".empty.spool", "");
  for (const std::string& name : place.list()) make_old(place / name);
  Found found;
  CHECK(recover_directory(place.path(), {}, found) == 0);
  CHECK(fixture::exists(place / ".nul.spool"));
  CHECK(fixture::exists(place / ".short.spool"));
  CHECK_FALSE(fixture::exists(place / ".empty.spool"));
}

TEST_CASE("a spool that names another file than a trace beside it is refused") {
  for (const char* name : {"../victim.pfw", "/tmp/victim.pfw", "victim.txt", ".victim.pfw", ""}) {
    CAPTURE(name);
    const Place place;
    record_and_die(place / kName, place.path(), "t.pfw", 5);
    change_head(place / kName, [&](SpoolHead& head) { std::strcpy(head.trace_name, name); });
    CHECK(recover(place) == Outcome::kBroken);
    CHECK(fixture::exists(place / kName));
  }
}

TEST_CASE("another user's spool is not ours to finish") {
  if (::geteuid() != 0) return;
  const Place place;
  record_and_die(place / kName, place.path(), "t.pfw", 5);
  REQUIRE(::chmod(place.path(), 0777) == 0);
  REQUIRE(::chmod((place / kName).c_str(), 0666) == 0);
  const int result = fixture::in_child([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    return recover(place) == Outcome::kNothing ? 0 : 2;
  });
  CHECK(result == 0);
  CHECK(fixture::exists(place / kName));
  REQUIRE(::chown((place / kName).c_str(), 65534, 65534) == 0);
  CHECK(recover(place) == Outcome::kNothing);  // not even for root, unless it is asked to
  Found found;
  Wanted wanted;
  wanted.any_user = true;
  CHECK(recover_spool(place.path(), kName, wanted, found) == Outcome::kRecovered);
}

TEST_CASE("what is left of a trace that went away gets a name of its own") {
  for (const char* trace : {"t.pfw", "t.pfw.gz"}) {
    CAPTURE(trace);
    const Place place;
    record_and_die(place / kName, place.path(), trace, 100, 60);
    SUBCASE("removed") { REQUIRE(::unlink((place / trace).c_str()) == 0); }
    SUBCASE("replaced") {
      write_file(place / "new", "mine");
      REQUIRE(::rename((place / "new").c_str(), (place / trace).c_str()) == 0);
    }
    SUBCASE("shortened") { REQUIRE(::truncate((place / trace).c_str(), 3) == 0); }
    const std::string before = read_file(place / trace);
    CHECK(recover(place) == Outcome::kRecovered);
    CHECK(read_file(place / trace) == before);
    std::string rest;
    for (const std::string& name : place.list()) {
      if (name.find("-rest-") != name.npos) rest = name;
    }
    REQUIRE_FALSE(rest.empty());
    CHECK(rest.starts_with("t-rest-"));
    CHECK(rest.ends_with(std::string_view(trace).substr(1)));
    std::string text = read_file(place / rest);
    if (rest.ends_with(".gz")) text = fixture::gunzip_text(text);
    CHECK(text.starts_with(fixture::kPreamble));
    CHECK(event_ids(text) == range(61, 100));
  }
}

TEST_CASE("where the trace cannot be written the spool stays") {
  const Place place;
  record_and_die(place / kName, place.path(), "t.pfw", 5);
  REQUIRE(::mkdir((place / "t.pfw").c_str(), 0700) == 0);
  CHECK(recover(place) == Outcome::kBroken);
  CHECK(fixture::exists(place / kName));
  REQUIRE(::rmdir((place / "t.pfw").c_str()) == 0);
  CHECK(recover(place) == Outcome::kRecovered);
  CHECK(event_ids(read_file(place / "t.pfw")) == range(1, 5));
}
