#include "sink/trace_file.hpp"

#include <sys/resource.h>

#include "support/fixture.hpp"

using dft::sink::append;
using dft::sink::cut_back;
using dft::sink::FileState;
using fixture::read_file;
using fixture::TemporaryDirectory;

namespace {

std::uint64_t inode(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

TEST_CASE("the first block creates the file, the next ones extend it") {
  const TemporaryDirectory directory;
  FileState state{};
  CHECK(append(directory.path(), "t.pfw", "one\n", state, 0600) == 0);
  CHECK(read_file(directory / "t.pfw") == "one\n");
  CHECK(state.size == 4);
  CHECK(state.inode == inode(directory / "t.pfw"));
  CHECK(append(directory.path(), "t.pfw", "two\n", state, 0600) == 0);
  CHECK(state.size == 8);
  CHECK(read_file(directory / "t.pfw") == "one\ntwo\n");
  CHECK(directory.list() == std::vector<std::string>{"t.pfw"});
}

TEST_CASE("a finished trace of the same name is replaced as a whole, never opened") {
  const TemporaryDirectory directory;
  fixture::write_file(directory / "t.pfw", "old and longer than the new one\n");
  REQUIRE(::link((directory / "t.pfw").c_str(), (directory / "other").c_str()) == 0);
  FileState state{};
  CHECK(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
  CHECK(read_file(directory / "t.pfw") == "new\n");
  CHECK(read_file(directory / "other") == "old and longer than the new one\n");
}

TEST_CASE("a temporary file left by a dead process does no harm") {
  const TemporaryDirectory directory;
  fixture::write_file(directory / ".t.pfw.part", "half");
  FileState state{};
  CHECK(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
  CHECK(directory.list() == std::vector<std::string>{"t.pfw"});
}

TEST_CASE("a symbolic link is never followed") {
  const TemporaryDirectory directory;
  fixture::write_file(directory / "victim", "mine\n");
  SUBCASE("at the trace's name, before it exists: the link is replaced") {
    REQUIRE(::symlink("victim", (directory / "t.pfw").c_str()) == 0);
    FileState state{};
    CHECK(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
    CHECK(state.inode == inode(directory / "t.pfw"));
  }
  SUBCASE("at the temporary name: another name is used") {
    REQUIRE(::symlink("victim", (directory / ".t.pfw.part").c_str()) == 0);
    FileState state{};
    CHECK(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
    CHECK(state.inode == inode(directory / "t.pfw"));
    CHECK(directory.list() == std::vector<std::string>{".t.pfw.part", "t.pfw", "victim"});
  }
  SUBCASE("put in the trace's place during the run") {
    FileState state{};
    REQUIRE(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
    REQUIRE(::rename((directory / "t.pfw").c_str(), (directory / "moved").c_str()) == 0);
    SUBCASE("to something else") {
      REQUIRE(::symlink("victim", (directory / "t.pfw").c_str()) == 0);
    }
    SUBCASE("to the trace itself") {
      REQUIRE(::symlink("moved", (directory / "t.pfw").c_str()) == 0);
    }
    CHECK(append(directory.path(), "t.pfw", "more\n", state, 0600) == -ESTALE);
    CHECK(cut_back(directory.path(), "t.pfw", {state.inode, 2}) == -ESTALE);
    CHECK(read_file(directory / "moved") == "new\n");
    CHECK(state.size == 4);
  }
  CHECK(read_file(directory / "victim") == "mine\n");
}

TEST_CASE("a file that was removed or replaced is not written to") {
  const TemporaryDirectory directory;
  FileState state{};
  REQUIRE(append(directory.path(), "t.pfw", "new\n", state, 0600) == 0);
  const FileState before = state;
  SUBCASE("removed") { REQUIRE(::unlink((directory / "t.pfw").c_str()) == 0); }
  SUBCASE("replaced by another file") {
    fixture::write_file(directory / "x", "mine\n");
    REQUIRE(::rename((directory / "x").c_str(), (directory / "t.pfw").c_str()) == 0);
  }
  SUBCASE("replaced by a FIFO without a reader") {
    REQUIRE(::unlink((directory / "t.pfw").c_str()) == 0);
    REQUIRE(::mkfifo((directory / "t.pfw").c_str(), 0600) == 0);
  }
  const auto list = directory.list();
  CHECK(append(directory.path(), "t.pfw", "more\n", state, 0600) == -ESTALE);
  CHECK(state.size == before.size);
  CHECK(state.inode == before.inode);
  CHECK(cut_back(directory.path(), "t.pfw", state) == -ESTALE);
  CHECK(directory.list() == list);
  struct stat info{};
  if (::lstat((directory / "t.pfw").c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    CHECK(read_file(directory / "t.pfw") == "mine\n");
  }
}

TEST_CASE("a directory of that name is an error, and stays") {
  const TemporaryDirectory directory;
  REQUIRE(::mkdir((directory / "t.pfw").c_str(), 0700) == 0);
  FileState state{};
  CHECK(append(directory.path(), "t.pfw", "new\n", state, 0600) < 0);
  CHECK(state.size == 0);
  CHECK(directory.list() == std::vector<std::string>{"t.pfw"});
}

TEST_CASE("if nothing can be written, nothing is left behind") {
  const TemporaryDirectory directory;
  FileState state{};
  CHECK(append((directory / "missing").c_str(), "t.pfw", "new\n", state, 0600) == -ENOENT);
  CHECK(append(directory.path(), std::string(300, 'n').c_str(), "new\n", state, 0600) ==
        -ENAMETOOLONG);
  CHECK(append(std::string(4396, 'd').c_str(), "t.pfw", "new\n", state, 0600) == -ENAMETOOLONG);
  CHECK(state.size == 0);
  CHECK(directory.list().empty());
}

TEST_CASE("a block that does not fit leaves the file unchanged") {
  const TemporaryDirectory directory;
  const int result = fixture::in_child([&] {
    dft::SlowPath slow;
    const rlimit limit{100, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const std::string large(200, 'x');
    FileState state{};
    if (append(directory.path(), "t.pfw", large, state, 0600) != -EFBIG || state.size != 0)
      return 2;
    if (fixture::exists(directory / "t.pfw") || fixture::exists(directory / ".t.pfw.part"))
      return 3;
    if (append(directory.path(), "t.pfw", "small\n", state, 0600) != 0) return 4;
    if (append(directory.path(), "t.pfw", large, state, 0600) != -EFBIG || state.size != 6)
      return 5;
    // The part that did fit was removed again.
    if (read_file(directory / "t.pfw") != "small\n") return 6;
    return append(directory.path(), "t.pfw", "fits\n", state, 0600) == 0 ? 0 : 7;
  });
  CHECK(result == 0);
  CHECK(read_file(directory / "t.pfw") == "small\nfits\n");
}

TEST_CASE("a dead writer's partial block is cut off, and nothing else") {
  const TemporaryDirectory directory;
  FileState state{};
  REQUIRE(append(directory.path(), "t.pfw", "whole\n", state, 0600) == 0);
  FileState further = state;
  REQUIRE(append(directory.path(), "t.pfw", "hal", further, 0600) == 0);
  CHECK(cut_back(directory.path(), "t.pfw", state) == 0);
  CHECK(read_file(directory / "t.pfw") == "whole\n");
  CHECK(cut_back(directory.path(), "t.pfw", state) == 0);
  CHECK(read_file(directory / "t.pfw") == "whole\n");
  // Shorter than before: another process truncated it.
  CHECK(cut_back(directory.path(), "t.pfw", further) == -ESTALE);
  CHECK(read_file(directory / "t.pfw") == "whole\n");
  CHECK(cut_back(directory.path(), "none.pfw", {0, 0}) == 0);  // never created
}

TEST_CASE("join() fits or fails") {
  char to[12];
  CHECK(dft::sink::join(to, sizeof to, "/d", ".", "name", "-x"));
  CHECK(std::string(to) == "/d/.name-x");
  CHECK(dft::sink::join(to, sizeof to, "/d", ".", "name1", "-x"));
  CHECK(std::string(to) == "/d/.name1-x");
  CHECK_FALSE(dft::sink::join(to, sizeof to, "/d", ".", "name12", "-x"));
}
