#include "session/trace_name.hpp"

#include <set>

#include "sink/deflate.hpp"
#include "support/fixture.hpp"

using dft::session::Existing;
using dft::session::inspect;
using dft::session::resolve;
using dft::session::TracePlace;
using fixture::read_file;
using fixture::TemporaryDirectory;
using fixture::write_file;
using What = dft::session::Existing::What;

namespace {

TracePlace resolved(const std::string& path, bool is_prefix = false, bool compressed = true) {
  TracePlace place{};
  REQUIRE(resolve(path.c_str(), is_prefix, compressed, place) == 0);
  return place;
}

std::string exact(const TracePlace& place) {
  char name[256];
  dft::session::exact_name(place, name);
  return name;
}

// The first lines of a trace of this run and process.
std::string opening(const char* run, const char* process) {
  return std::string(
             "[\n{\"id\":1,\"name\":\"HH\",\"pid\":7,\"ph\":\"M\"}\n"
             "{\"id\":6,\"name\":\"start\",\"cat\":\"dftracer\",\"args\":{\"run\":\"") +
         run + "\",\"proc\":\"" + process + "\"}}\n{\"id\":7}\n";
}
constexpr const char* kRun = "00000000000000aa";
constexpr const char* kProcess = "00000000000000bb";

std::string gz(const std::string& text) {
  dft::sink::Gzip gzip(1);
  dft::sink::MmapBuffer out;
  REQUIRE(gzip.member(text, 1, out));
  return std::string(out.view());
}

Existing look(const TemporaryDirectory& directory, const char* name, std::uint64_t run = 0xaa,
              std::uint64_t process = 0xbb) {
  return inspect(resolved(directory / name), name, run, process);
}

}  // namespace

TEST_CASE("a path is taken as users write it") {
  const TemporaryDirectory directory;
  const std::string d = directory.path();
  for (const char* name : {"t.pfw", "t.pfw.gz", "t", "t.gz"}) {
    CAPTURE(name);
    const TracePlace place = resolved(d + "/" + name);
    CHECK(std::string(place.directory) == d);
    CHECK(std::string(place.stem) == "t");
    CHECK(place.exact);
    CHECK(exact(place) == "t.pfw.gz");
  }
  CHECK(exact(resolved(d + "/t.pfw.gz", false, false)) == "t.pfw");
  CHECK(exact(resolved(d + "/a.b.pfw")) == "a.b.pfw.gz");
  CHECK(exact(resolved(d + "/a b\n.pfw")) == "a b\n.pfw.gz");
  CHECK(exact(resolved(d + "/t.pfwx")) == "t.pfwx.pfw.gz");
}

TEST_CASE("a prefix is one unless it ends like a trace") {
  const TemporaryDirectory directory;
  CHECK_FALSE(resolved(directory / "t", true).exact);
  CHECK_FALSE(resolved(directory / "t.gz", true).exact);
  CHECK(resolved(directory / "t.pfw", true).exact);
  CHECK(resolved(directory / "t.pfw.gz", true).exact);
}

TEST_CASE("a path without a name gets one, and none begins with a dot") {
  const TemporaryDirectory directory;
  CHECK(exact(resolved(directory / "")) == "trace.pfw.gz");
  CHECK(exact(resolved(directory / ".pfw")) == "trace.pfw.gz");
  CHECK(exact(resolved(directory / ".pfw.gz")) == "trace.pfw.gz");
  CHECK(exact(resolved(directory / ".hidden.pfw")) == "_.hidden.pfw.gz");
}

TEST_CASE("a relative path is made absolute") {
  const TemporaryDirectory directory;
  const int result = fixture::in_child([&] {
    if (::chdir(directory.path()) != 0) return 1;
    TracePlace place{};
    const std::string d = directory.path();
    if (resolve("t.pfw", false, true, place) != 0 || d != place.directory) return 2;
    if (resolve("./t.pfw", false, true, place) != 0 || d != place.directory) return 3;
    if (resolve("././t.pfw", false, true, place) != 0 || d != place.directory) return 4;
    if (resolve("a/b/t.pfw", false, true, place) != 0 || d + "/a/b" != place.directory) return 5;
    if (resolve("", true, true, place) != 0 || d != place.directory) return 6;
    if (resolve("a//t.pfw", false, true, place) != 0 || d + "/a" != place.directory) return 7;
    return 0;
  });
  CHECK(result == 0);
  CHECK(fixture::exists(directory / "a/b"));
}

TEST_CASE("the directory is made, with those above it") {
  const TemporaryDirectory directory;
  resolved(directory / "a/b/c/t.pfw");
  CHECK(fixture::exists(directory / "a/b/c"));
  resolved(directory / "a/b/c/t.pfw");
  write_file(directory / "file", "mine");
  TracePlace place{};
  CHECK(resolve((directory / "file/d/t.pfw").c_str(), false, true, place) != 0);
  CHECK(resolve("/proc/none/t.pfw", false, true, place) < 0);
  CHECK(resolve("/t.pfw", false, true, place) == 0);
  CHECK(std::string(place.directory) == "/");
}

TEST_CASE("names and paths that are too long are refused") {
  const TemporaryDirectory directory;
  TracePlace place{};
  CHECK(resolve((directory / std::string(200, 'n')).c_str(), false, true, place) == -ENAMETOOLONG);
  CHECK(resolve(("/" + std::string(4096, 'd') + "/t").c_str(), false, true, place) ==
        -ENAMETOOLONG);
  const TracePlace longest = resolved(directory / std::string(199, 'n'));
  char name[256];
  dft::session::keyed_name(longest, ~0ULL, ~0u, name);
  CHECK(std::string(name).ends_with(".pfw.gz"));
  char spool[256];
  dft::session::spool_name(name, spool);
  CHECK(std::string(spool).ends_with(".pfw.spool"));
}

TEST_CASE("keyed names carry run and pid, and no two are alike") {
  const TemporaryDirectory directory;
  const TracePlace place = resolved(directory / "t", true);
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) {
    char name[256];
    dft::session::keyed_name(place, 0x1234567800000000, 42, name);
    const std::string text = name;
    CHECK(text.starts_with("t-12345678-42-"));
    CHECK(text.size() == std::string("t-12345678-42-abcdef.pfw.gz").size());
    names.insert(text);
  }
  CHECK(names.size() == 50);
}

TEST_CASE("a spool's name follows from its trace's, compressed or not") {
  char name[256];
  dft::session::spool_name("t.pfw", name);
  CHECK(std::string(name) == ".t.pfw.spool");
  dft::session::spool_name("t.pfw.gz", name);
  CHECK(std::string(name) == ".t.pfw.spool");
}

TEST_CASE("a name is taken when it is free, and left when it is not") {
  const TemporaryDirectory directory;
  write_file(directory / "mine", "1");
  CHECK(dft::session::take_name((directory / "mine").c_str(), (directory / "name").c_str()) == 0);
  CHECK(directory.list() == std::vector<std::string>{"name"});
  write_file(directory / "second", "2");
  CHECK(dft::session::take_name((directory / "second").c_str(), (directory / "name").c_str()) ==
        -EEXIST);
  REQUIRE(::symlink("nowhere", (directory / "link").c_str()) == 0);
  CHECK(dft::session::take_name((directory / "second").c_str(), (directory / "link").c_str()) ==
        -EEXIST);
  CHECK(read_file(directory / "name") == "1");
  CHECK(read_file(directory / "second") == "2");
  CHECK(dft::session::take_name((directory / "none").c_str(), (directory / "x").c_str()) ==
        -ENOENT);
}

TEST_CASE("what stands under a trace's name is told apart") {
  const TemporaryDirectory directory;
  CHECK(look(directory, "none.pfw").what == What::kNothing);
  const std::string mine = opening(kRun, kProcess);
  for (const bool compressed : {false, true}) {
    const auto put = [&](const std::string& text) {
      write_file(directory / "t.pfw", compressed ? gz(text) : text);
    };
    put(mine);
    const Existing existing = look(directory, "t.pfw");
    CHECK(existing.what == What::kSameProcess);
    CHECK(existing.run == 0xaa);
    CHECK(existing.size == read_file(directory / "t.pfw").size());
    struct stat info{};
    REQUIRE(::stat((directory / "t.pfw").c_str(), &info) == 0);
    CHECK(existing.inode == info.st_ino);
    CHECK(look(directory, "t.pfw", 0xaa, 0xcc).what == What::kSameRun);
    CHECK(look(directory, "t.pfw", 0xab, 0xcc).what == What::kFinished);
    CHECK(look(directory, "t.pfw", 0xab, 0xbb).what == What::kSameProcess);
    put("[\n{\"id\":1,\"name\":\"read\",\"pid\":7,\"ph\":\"X\"}\n");  // of another tracer, or an
                                                                      // older one
    CHECK(look(directory, "t.pfw").what == What::kFinished);
    put("[\n");
    CHECK(look(directory, "t.pfw").what == What::kFinished);
    put(opening("00000000000000AA", kProcess));  // not as we write it
    CHECK(look(directory, "t.pfw").what == What::kFinished);
    put("{\"json\":\"of somebody else\"}\n");
    CHECK(look(directory, "t.pfw").what == What::kForeign);
    put("hello, world\n");
    CHECK(look(directory, "t.pfw").what == What::kForeign);
  }
  write_file(directory / "t.pfw", "");
  CHECK(look(directory, "t.pfw").what == What::kFinished);
}

TEST_CASE("what is not a plain file is foreign, and so is broken gzip") {
  const TemporaryDirectory directory;
  write_file(directory / "real", opening(kRun, kProcess));
  REQUIRE(::symlink("real", (directory / "link.pfw").c_str()) == 0);
  CHECK(look(directory, "link.pfw").what == What::kForeign);
  REQUIRE(::mkfifo((directory / "fifo.pfw").c_str(), 0600) == 0);
  CHECK(look(directory, "fifo.pfw").what == What::kForeign);
  REQUIRE(::mkdir((directory / "dir.pfw").c_str(), 0700) == 0);
  CHECK(look(directory, "dir.pfw").what == What::kForeign);
  write_file(directory / "bad.pfw", std::string("\x1f\x8b\x08\x04junk", 8));
  CHECK(look(directory, "bad.pfw").what == What::kForeign);
  write_file(directory / "text.pfw", std::string(1 << 20, 'x'));
  CHECK(look(directory, "text.pfw").what == What::kForeign);
}

TEST_CASE("a start record far into the file is not looked for, and damaged ones are no harm") {
  const TemporaryDirectory directory;
  std::string far = "[\n";
  while (far.size() < (5 << 18)) far += "{\"id\":1,\"name\":\"read\",\"pid\":7,\"ph\":\"X\"}\n";
  write_file(directory / "t.pfw", far + opening(kRun, kProcess));
  CHECK(look(directory, "t.pfw").what == What::kFinished);
  const std::string mine = opening(kRun, kProcess);
  for (std::size_t size = 1; size < mine.size(); size += 3) {
    write_file(directory / "t.pfw", mine.substr(0, size));
    look(directory, "t.pfw");
    write_file(directory / "t.pfw", gz(mine).substr(0, size));
    look(directory, "t.pfw");
  }
}

TEST_CASE("the files of a finished run are cleared, and nobody else's") {
  const TemporaryDirectory directory;
  const TracePlace place = resolved(directory / "t.pfw", false, true);
  const std::uint64_t run = 0x1234567800000009;
  const std::string of_run = opening("1234567800000009", kProcess);
  write_file(directory / "t.pfw.gz", gz(of_run));
  write_file(directory / "t.pfw", of_run);  // its twin from a run without compression
  write_file(directory / "t-12345678-42-abcdef.pfw.gz", "x");
  write_file(directory / "t-12345678-43-abcdef.pfw", "x");
  write_file(directory / "t-12345678-notes.txt", "mine");
  write_file(directory / "t-99999999-42-abcdef.pfw.gz", "mine");
  write_file(directory / "tt-12345678-42-abcdef.pfw.gz", "mine");
  dft::session::clear_finished(place, "t.pfw.gz", {What::kFinished, 1, 1, run});
  CHECK(directory.list() == std::vector<std::string>{"t-12345678-notes.txt",
                                                     "t-99999999-42-abcdef.pfw.gz", "t.pfw.gz",
                                                     "tt-12345678-42-abcdef.pfw.gz"});
}

TEST_CASE("the twin of a trace goes with its run, unless it is no trace") {
  const TemporaryDirectory directory;
  const TracePlace place = resolved(directory / "t.pfw", false, true);
  write_file(directory / "t-00000001-42-abcdef.pfw", "x");
  write_file(directory / "t-00000002-42-abcdef.pfw", "mine");
  write_file(directory / "t.pfw", opening("00000001000000aa", kProcess));
  dft::session::clear_finished(place, "t.pfw.gz", {What::kNothing, 0, 0, 0});
  CHECK(directory.list() == std::vector<std::string>{"t-00000002-42-abcdef.pfw"});
  write_file(directory / "t.pfw", "not a trace");
  dft::session::clear_finished(place, "t.pfw.gz", {What::kNothing, 0, 0, 0});
  CHECK(read_file(directory / "t.pfw") == "not a trace");
}

TEST_CASE("spools are beside the trace unless they are wanted elsewhere") {
  const TemporaryDirectory directory;
  const TracePlace place = resolved(directory / "t.pfw");
  char to[4096];
  CHECK_FALSE(dft::session::spool_directory(place, "", to));
  CHECK(std::string(to) == directory.path());
  CHECK(dft::session::spool_directory(place, (directory / "a/spools").c_str(), to));
  CHECK(std::string(to) == directory / "a/spools");
  CHECK(fixture::exists(directory / "a/spools"));
  CHECK_FALSE(dft::session::spool_directory(place, directory.path(), to));
}

TEST_CASE("random numbers differ") {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(dft::session::random64());
  CHECK(seen.size() == 100);
}
