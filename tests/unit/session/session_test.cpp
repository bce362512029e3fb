// A whole session through the C functions, each in a process of its own: the state is the
// process's.
#include "session/session.hpp"

#include <set>
#include <thread>

#include "dftracer/dftracer.h"
#include "support/fixture.hpp"
#include "support/gunzip.hpp"
#include "support/strict_json.hpp"

using dft::buffer::SpoolHead;
using fixture::TemporaryDirectory;

namespace {

template <class Body>
int traced(const TemporaryDirectory& directory, Body body) {
  return fixture::in_child([&] {
    ::setenv("DFTRACER_ENABLE", "1", 1);
    ::unsetenv("DFTRACER_CONFIGURATION");
    ::setenv("DFTRACER_SUMMARY", "0", 0);
    ::setenv("DFTRACER_LOG_PATH", (directory / "said").c_str(), 0);
    if (dftracer_initialize((directory / "t.pfw").c_str(), nullptr, nullptr) != 0) return 90;
    return body();
  });
}

void event(const char* name) {
  dftracer_region region;
  dftracer_region_begin(&region, nullptr, name, "APP");
  dftracer_region_end(&region);
}

std::string trace(const TemporaryDirectory& directory, const char* name = "t.pfw.gz") {
  return fixture::gunzip_text(fixture::read_file(directory / name));
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

void check_lines(const std::string& text) {
  std::set<std::uint64_t> ids;
  for (const std::string& line : fixture::lines_of(text)) {
    if (line == "[") continue;
    CHECK_MESSAGE(json::valid(line), line);
    if (line.find("\"ph\":\"X\"") == line.npos) continue;
    CHECK_MESSAGE(ids.insert(std::strtoull(line.c_str() + 6, nullptr, 10)).second, line);
  }
}

}  // namespace

TEST_CASE("a session's events are in its file, and its spool is gone") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    event("first");
    std::thread([] { event("threaded"); }).join();
    dftracer_finalize();
    return dftracer_active();
  });
  CHECK(result == 0);
  CHECK(directory.list() == std::vector<std::string>{"t.pfw.gz"});
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"first\"") == 1);
  CHECK(count(text, "\"name\":\"threaded\"") == 1);
  CHECK(count(text, "\"name\":\"start\"") == 1);
  CHECK(count(text, "\"name\":\"end\"") == 1);
  CHECK(fixture::line_with(text, "\"name\":\"first\"").starts_with("{\"id\":7,"));
}

TEST_CASE("starts nest, and ends without a start do nothing") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    if (dftracer_initialize("/elsewhere/x.pfw", nullptr, nullptr) != 0) return 1;
    event("one");
    dftracer_finalize();
    if (dftracer_active() != 1) return 2;
    event("two");
    dftracer_finalize();
    if (dftracer_active() != 0) return 3;
    event("nowhere");
    dftracer_finalize();
    dftracer_finalize();
    dftracer_flush();
    return 0;
  });
  CHECK(result == 0);
  const std::string text = trace(directory);
  CHECK(count(text, "\"name\":\"one\"") == 1);
  CHECK(count(text, "\"name\":\"two\"") == 1);
  CHECK(count(text, "\"name\":\"nowhere\"") == 0);
}

TEST_CASE("a process that starts again goes on in its file, with ids of its own") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [&] {
    event("before");
    dftracer_finalize();
    if (dftracer_initialize((directory / "t.pfw").c_str(), nullptr, nullptr) != 0) return 1;
    event("after");
    dftracer_finalize();
    return 0;
  });
  CHECK(result == 0);
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"before\"") == 1);
  CHECK(count(text, "\"name\":\"after\"") == 1);
  CHECK(count(text, "[\n") == 1);
}

TEST_CASE("null and empty arguments are no harm, on or off") {
  const auto everything = [] {
    dftracer_region_begin(nullptr, nullptr, nullptr, nullptr);
    dftracer_region_end(nullptr);
    dftracer_region_drop(nullptr);
    dftracer_region region;
    std::memset(&region, 0, sizeof region);
    dftracer_region_end(&region);
    dftracer_region_begin(&region, nullptr, nullptr, nullptr);
    dftracer_region_int(&region, nullptr, nullptr, -1);
    dftracer_region_float(&region, nullptr, "", 1.5);
    dftracer_region_string(&region, nullptr, "s", nullptr);
    dftracer_region_bytes(&region, nullptr, "b", nullptr, 100);
    dftracer_region_int(nullptr, nullptr, "k", 1);
    dftracer_region_end(&region);
    dftracer_region_end(&region);
    dftracer_region_int(&region, nullptr, "late", 1);
    dftracer_region_begin(&region, nullptr, "dropped", "APP");
    dftracer_region_drop(&region);
    dftracer_region_end(&region);
    dftracer_instant(nullptr, nullptr, nullptr, 5);
    dftracer_counter(nullptr, "", 0.5);
    dftracer_metadata(nullptr, nullptr);
    dftracer_complete("given", "APP", 0, 0, nullptr, 0);
    dftracer_flush();
    dftracer_recover("/nowhere/at/all", 0, nullptr);
    return 0;
  };
  CHECK(fixture::in_child(everything) == 0);
  const TemporaryDirectory directory;
  const int result = traced(directory, [&] {
    everything();
    dftracer_finalize();
    return 0;
  });
  CHECK(result == 0);
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"unnamed\",\"cat\":\"APP\"") == 3);
  CHECK(count(text, "\"name\":\"dropped\"") == 0);
  CHECK(count(text, "late") == 0);
}

TEST_CASE("names past the table's limits are whole in the trace") {
  const TemporaryDirectory directory;
  const std::string name(5000, 'n');
  const std::string key(3000, 'k');
  const int result = traced(directory, [&] {
    dftracer_region region;
    dftracer_region_begin(&region, nullptr, name.c_str(), name.c_str());
    dftracer_region_int(&region, nullptr, key.c_str(), 7);
    dftracer_region_end(&region);
    dftracer_metadata(key.c_str(), name.c_str());
    dftracer_finalize();
    return 0;
  });
  CHECK(result == 0);
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"" + name + "\",\"cat\":\"" + name + "\"") == 1);
  CHECK(count(text, "\"" + key + "\":7") == 1);
}

TEST_CASE("a site remembers its names") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    static dftracer_site site;
    static dftracer_site key;
    for (int i = 0; i < 1000; ++i) {
      dftracer_region region;
      dftracer_region_begin(&region, &site, "sited", "APP");
      dftracer_region_int(&region, &key, "i", i);
      dftracer_region_end(&region);
    }
    dftracer_finalize();
    return site.opaque != 0 && key.opaque != 0 ? 0 : 1;
  });
  CHECK(result == 0);
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"sited\",\"cat\":\"APP\"") == 1000);
  CHECK(count(text, "\"i\":999}") == 1);
}

TEST_CASE("a fresh spool gives a sign of life, so that those who cannot see its owner wait") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [&] {
    const std::string bytes = fixture::read_file(directory / ".t.pfw.spool");
    if (bytes.size() < sizeof(SpoolHead)) return 1;
    std::uint64_t heartbeat = 0;
    std::memcpy(&heartbeat, bytes.data() + offsetof(SpoolHead, heartbeat), sizeof heartbeat);
    const auto now = static_cast<std::uint64_t>(::time(nullptr));
    return heartbeat + 3600 > now && heartbeat < now + 3600 ? 0 : 2;
  });
  CHECK(result == 0);
}

TEST_CASE("a killed process is finished by whoever asks") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    for (int i = 0; i < 3000; ++i) event("kept");
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  CHECK(result == 1000 + SIGKILL);
  CHECK(fixture::exists(directory / ".t.pfw.spool"));
  dftracer_recovery recovery{};
  CHECK(dftracer_recover(directory.path(), 0, &recovery) == 0);
  CHECK(recovery.recovered == 1);
  const std::string text = trace(directory);
  check_lines(text);
  CHECK(count(text, "\"name\":\"kept\"") == 3000);
  CHECK(directory.list() == std::vector<std::string>{"t.pfw.gz"});
}

TEST_CASE("a forked child has a file of its own, which its parent's end completes") {
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    event("parent");
    const pid_t pid = ::fork();
    if (pid == 0) {
      event("child");
      ::_exit(7);  // no end of its own
    }
    if (fixture::wait_for(pid) != 7) return 1;
    event("parent");
    dftracer_finalize();
    return 0;
  });
  CHECK(result == 0);
  const auto names = directory.list();
  REQUIRE(names.size() == 2);
  std::size_t parents = 0;
  std::size_t children = 0;
  for (const std::string& name : names) {
    const std::string text = trace(directory, name.c_str());
    check_lines(text);
    CHECK(count(text, "\"name\":\"end\"") == 1);
    parents += count(text, "\"name\":\"parent\"");
    children += count(text, "\"name\":\"child\"");
    CHECK((count(text, "\"name\":\"parent\"") == 0) == (name != "t.pfw.gz"));
  }
  CHECK(parents == 2);
  CHECK(children == 1);
}

TEST_CASE("time is on the events' line, and 0 while nothing is recorded") {
  CHECK(dftracer_time() == 0);
  const TemporaryDirectory directory;
  const int result = traced(directory, [] {
    const auto wall = static_cast<std::uint64_t>(::time(nullptr)) * 1000000;
    std::uint64_t last = dftracer_time();
    if (last + 10000000 < wall || last > wall + 10000000) return 1;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t now = dftracer_time();
      if (now < last) return 2;
      last = now;
      if (i % 100 == 0) dftracer_flush();
    }
    dftracer_finalize();
    return dftracer_time() == 0 ? 0 : 3;
  });
  CHECK(result == 0);
}

TEST_CASE("an untraced program makes no file and is told nothing") {
  const TemporaryDirectory directory;
  const int result = fixture::in_child([&] {
    ::unsetenv("DFTRACER_ENABLE");
    if (dftracer_initialize((directory / "t.pfw").c_str(), nullptr, nullptr) != -1) return 1;
    event("nowhere");
    dftracer_finalize();
    return dftracer_active();
  });
  CHECK(result == 0);
  CHECK(directory.list().empty());
}
