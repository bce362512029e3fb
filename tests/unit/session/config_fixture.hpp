// An environment and a YAML file to read the configuration from, and the lines that were reported.
// Used by the tests of the configuration; each test has its own, so that tests run side by side.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/config.hpp"

namespace config_fixture {

using dft::session::Config;
using dft::session::Environment;

using Strings = std::vector<std::string>;

inline void collect(void* lines, const char* line) {
  static_cast<Strings*>(lines)->emplace_back(line);
}

class FakeEnvironment {
 public:
  explicit FakeEnvironment(Strings entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  Environment get(bool secure = false) { return {pointers_.data(), secure}; }

 private:
  Strings entries_;
  std::vector<char*> pointers_;
};

struct Result {
  Config config;
  Strings lines;
};

inline Result read(Strings entries, bool secure = false) {
  FakeEnvironment environment(std::move(entries));
  Result result;
  result.config = dft::session::read_config(environment.get(secure), collect, &result.lines);
  return result;
}

inline Result read_on(Strings entries) {
  entries.insert(entries.begin(), "DFTRACER_ENABLE=1");
  return read(std::move(entries));
}

inline Result yaml(std::string_view text) {
  Result result;
  dft::session::apply_yaml(result.config, text, "c.yaml", collect, &result.lines);
  return result;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) {
    const int fd = ::mkstemp(path_);
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { ::unlink(path_); }
  std::string variable() const { return "DFTRACER_CONFIGURATION=" + path(); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/dft_config_XXXXXX";
};

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// One line, in the form that every line has, with all the parts.
inline void check_one_line(const Result& result, std::initializer_list<std::string_view> parts) {
  REQUIRE_MESSAGE(result.lines.size() == 1, result.lines.size());
  const std::string& line = result.lines[0];
  CAPTURE(line);
  CHECK(line.starts_with("dftracer: "));
  for (const char c : line) CHECK(static_cast<unsigned char>(c) >= 0x20);
  for (const std::string_view part : parts) {
    CAPTURE(std::string(part));
    CHECK(contains(line, part));
  }
}

}  // namespace config_fixture
