// Values as text: for a line on a terminal, and in the form that a variable takes.

#include "session/config_values.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "session/config.hpp"

using namespace dft::session;

TEST_CASE("visible") {
  CHECK(visible("") == "");
  CHECK(visible(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(visible("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
  CHECK(visible("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(visible("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  CHECK(visible(std::string(60, 'a')) == std::string(60, 'a'));
  CHECK(visible(std::string(61, 'a')) == std::string(60, 'a') + "...");
}

TEST_CASE("the value of a setting as text") {
  Config config;
  config.enable = true;
  config.data_dirs = {"/a", "/b"};
  CHECK(setting_text(config, "DFTRACER_ENABLE") == "1");
  CHECK(setting_text(config, "DFTRACER_DISABLE_IO") == "0");
  CHECK(setting_text(config, "DFTRACER_TIME_METRIC") == "US");
  CHECK(setting_text(config, "DFTRACER_WRITE_BUFFER_SIZE") == "524288");
  CHECK(setting_text(config, "DFTRACER_DATA_DIR") == "/a:/b");
  CHECK(setting_text(config, "DFTRACER_NO_SUCH") == "");
}

TEST_CASE("the table is sound") {
  for (const Setting& setting : settings()) {
    CAPTURE(std::string(setting.variable));
    CHECK(setting.variable.starts_with("DFTRACER_"));
    CHECK_FALSE(setting.text.empty());
    // A default must be a value that can be given, or else nobody can ask for it.
    Config config;
    CHECK(assign(config, setting, show(config, setting)));
    CHECK(config == Config{});
    int uses = 0;
    for (const Setting& other : settings()) {
      uses += other.variable == setting.variable;
      uses += !setting.key.empty() && other.key == setting.key;
    }
    CHECK(uses == (setting.key.empty() ? 1 : 2));
  }
}
