#include "intercept/filter.hpp"

#include <doctest/doctest.h>

#include <string>

using dft::intercept::append_normal;
using dft::intercept::Filter;

namespace {

std::string normal(const std::string& base, const std::string& path) {
  std::string text(base.size() + path.size() + 2, '\0');
  std::size_t used = base.copy(text.data(), base.size());
  used = append_normal(text.data(), used, path);
  text.resize(used);
  return text;
}

}  // namespace

TEST_CASE("paths become absolute and normal") {
  CHECK(normal("", "/a/b") == "/a/b");
  CHECK(normal("/x/y", "z") == "/x/y/z");
  CHECK(normal("/x/y", "./z/../w//v/.") == "/x/y/w/v");
  CHECK(normal("/x", "../../..") == "/");
  CHECK(normal("/", "a") == "/a");
  CHECK(normal("", "//a///b/") == "/a/b");
  CHECK(normal("/x", "...") == "/x/...");
  CHECK(normal("/x", "") == "/x");
}

TEST_CASE("without directories, the program's own files are traced") {
  const Filter filter({}, "/home");
  CHECK(filter.admits("/data/train.bin"));
  CHECK(filter.admits("/dev/shm/cache"));
  CHECK(filter.admits("pipe:[7]"));
  CHECK(filter.admits("/home/notes.sorted"));
  CHECK(filter.admits("/home/script.py"));
  CHECK(filter.admits("/opt/lib/python3.11/site-packages/pkg/weights.bin"));
  CHECK(filter.admits_unknown());
  CHECK_FALSE(filter.admits("/proc/self/maps"));
  CHECK_FALSE(filter.admits("/sys/class"));
  CHECK_FALSE(filter.admits("/dev/null"));
  CHECK_FALSE(filter.admits("/usr/lib/libm.so.6"));
  CHECK_FALSE(filter.admits("/usr/lib/libm.so"));
  CHECK_FALSE(filter.admits("/usr/lib/python3.11/os.py"));
  CHECK_FALSE(filter.admits("/usr/lib/python3.11/__pycache__/os.cpython-311.pyc"));
  CHECK_FALSE(filter.admits("/usr/lib/python3.11"));
  CHECK(filter.admits("/procession"));
}

TEST_CASE("directories are compared by component, and are a union") {
  const Filter filter({"/x/data", "/x", "rel", "/y/../z/"}, "/home/me");
  CHECK(filter.admits("/x"));
  CHECK(filter.admits("/x/file"));
  CHECK(filter.admits("/x/data/deep/file"));
  CHECK(filter.admits("/home/me/rel/file"));
  CHECK(filter.admits("/z/file"));
  CHECK_FALSE(filter.admits("/x2/file"));
  CHECK_FALSE(filter.admits("/home/me/relative"));
  CHECK_FALSE(filter.admits("/y/file"));
  CHECK_FALSE(filter.admits("pipe:[7]"));
  CHECK_FALSE(filter.admits_unknown());
}

TEST_CASE("a quick look never refuses what is traced") {
  const Filter filter({"/x/data"}, "/");
  for (const char* path : {"/x/data/a", "/x/./data/a", "/q/../x/data/a", "/x//data/a", "a", "../a"})
    CHECK_MESSAGE(filter.may_admit(path), path);
  CHECK_FALSE(filter.may_admit("/y/data/a"));
  CHECK_FALSE(filter.may_admit("/"));
}

TEST_CASE("all means all") {
  const Filter filter({"/x", "all"}, "/");
  CHECK(filter.admits("/proc/self/maps"));
  CHECK(filter.admits("socket:[1]"));
  CHECK(filter.admits_unknown());
}
