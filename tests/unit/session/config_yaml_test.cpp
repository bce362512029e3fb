// What the YAML file says, and what is made of files that say it badly.

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "session/config.hpp"
#include "session/config_fixture.hpp"
#include "session/config_values.hpp"

using namespace dft::session;
using namespace config_fixture;

TEST_CASE("every key of the file") {
  const Result result = yaml(
      "enable: true\n"
      "profiler:\n"
      "  init: PRELOAD\n  log_file: /t/x\n  data_dirs: /a:/b\n  log_level: INFO\n"
      "  compression: off\n  compression_level: 2\n  spool_dir: /dev/shm\n  log_path: /t/d.log\n"
      "gotcha:\n  priority: 1\n"
      "features:\n"
      "  enable: true\n  metadata: false\n  core_affinity: true\n  tid: true\n"
      "  io:\n    enable: true\n    posix: true\n    stdio: false\n"
      "  interval: 1000\n  aggregation:\n    enable: false\n    type: FULL\n    file:\n"
      "internal:\n  bind_signals: false\n  throw_error: false\n  write_buffer_size: 4096\n"
      "tracer:\n  time_metric: SEC\n  libuv_threads: 1\n");
  for (const std::string& line : result.lines) MESSAGE(line);
  CHECK(result.lines.empty());
  const Config& config = result.config;
  CHECK(config.enable);
  CHECK(config.init == InitMode::kPreload);
  CHECK(config.log_file == "/t/x");
  CHECK(config.data_dirs == Strings{"/a", "/b"});
  CHECK(config.log_level == LogLevel::kInfo);
  CHECK_FALSE(config.compression);
  CHECK(config.compression_level == 2);
  CHECK(config.spool_dir == "/dev/shm");
  CHECK(config.log_path == "/t/d.log");
  CHECK_FALSE(config.inc_metadata);
  CHECK(config.core_affinity);
  CHECK_FALSE(config.disable_tids);
  CHECK_FALSE(config.disable_io);
  CHECK_FALSE(config.disable_posix);
  CHECK(config.disable_stdio);
  CHECK(config.write_buffer_size == 4096);
  CHECK(config.time_metric == TimeMetric::kSec);
}

TEST_CASE("each key of the table reaches its field, in `profiler` and in `tracer`") {
  for (const Setting& setting : settings()) {
    if (setting.key.empty()) continue;
    std::string value = "7";
    if (is_switch(setting)) value = show(Config{}, setting) == "1" ? "0" : "1";
    if (setting.allowed.high == 3) value = "3";
    if (setting.allowed.octal) value = "0644";
    if (!setting.allowed.names[0].empty()) value = setting.allowed.names[1];
    if (value == show(Config{}, setting)) value = setting.allowed.names[0];
    std::string in_file = value;
    if (setting.key_negated) in_file = value == "1" ? "0" : "1";
    Strings keys = {std::string(setting.key)};
    if (keys[0].starts_with("profiler.")) keys.push_back("tracer" + keys[0].substr(8));
    for (std::string key : keys) {
      CAPTURE(key);
      std::string text;
      std::size_t depth = 0;
      while (key.find('.') != key.npos) {
        text += std::string(depth++, ' ') + key.substr(0, key.find('.')) + ":\n";
        key.erase(0, key.find('.') + 1);
      }
      text += std::string(depth, ' ') + key + ": " + in_file + "\n";
      const Result result = yaml(text);
      CHECK(result.lines.empty());
      CHECK(show(result.config, setting) == value);
      CHECK(setting_text(result.config, setting.variable) == value);
    }
  }
}

TEST_CASE("files that say nothing") {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "---\n...\n", "~", "null\n",
                           "{}", "profiler:\n", "profiler: {}\nenable:\n", "\xef\xbb\xbf# BOM\n"}) {
    CAPTURE(text);
    const Result result = yaml(text);
    CHECK(result.lines.empty());
    CHECK(result.config == Config{});
  }
}

TEST_CASE("unknown keys") {
  check_one_line(yaml("enable: 1\nfoo: 3\n"), {"c.yaml:2: foo is not a setting"});
  check_one_line(yaml("profiler: {logfile: x}"),
                 {"profiler.logfile", "did you mean profiler.log_file?"});
  check_one_line(yaml("tracer: {logfile: x}"), {"tracer.logfile", "did you mean tracer.log_file?"});
  check_one_line(yaml("foo: {bar: [1, {a: b}], c: [[]]}\n"), {"foo is not a setting"});
  check_one_line(yaml("profilers:\n  x: 1\n"), {"profilers is not a setting"});
  check_one_line(yaml("'': 1\n"), {" is not a setting"});
  check_one_line(yaml("\"a\\nb\\0\": 1\n"), {"a\\x0ab\\x00 is not a setting"});
  check_one_line(yaml("\"profiler.log_file\": x\n\"\": ~\n"), {"c.yaml:2"});
  const Result rest = yaml("foo: {enable: true}\nbar: [1, 2]\nenable: true\n");
  CHECK(rest.lines.size() == 2);
  CHECK(rest.config.enable);
}

TEST_CASE("wrong types") {
  check_one_line(yaml("enable: [true]\n"), {"enable is not a switch"});
  check_one_line(yaml("enable: {a: 1}\n"), {"enable is not a switch"});
  check_one_line(yaml("enable: 17\n"), {"\"17\" is not a switch", "using 0"});
  check_one_line(yaml("profiler: 3\n"), {"profiler", "block of settings"});
  check_one_line(yaml("features:\n  io: [posix]\n"), {"features.io", "block of settings"});
  check_one_line(yaml("profiler: {log_file: {a: b}}\n"), {"profiler.log_file is not a text"});
  check_one_line(yaml("internal: {write_buffer_size: big}\n"), {"\"big\"", "using 524288"});
  check_one_line(yaml("features: {io: {posix: perhaps}}\n"), {"features.io.posix", "using 1"});
  check_one_line(yaml("profiler: {log_file: \"a\\0b\"}\n"), {"a\\x00b", "using ./trace"});
  check_one_line(yaml("[1, 2]\n"), {"key: value"});
  check_one_line(yaml("just text\n"), {"key: value"});
  check_one_line(yaml("? [a, b]\n: c\n"), {"a key must be a plain word"});
  const Result rest = yaml("profiler: {time_metric: [NS], log_file: /y}\nenable: on\n");
  CHECK(rest.lines.size() == 1);
  CHECK(rest.config.log_file == "/y");
  CHECK(rest.config.enable);
}

TEST_CASE("directories in the file") {
  CHECK(yaml("profiler: {data_dirs: all}").config.data_dirs == Strings{"all"});
  CHECK(yaml("profiler:\n  data_dirs:\n  - /a\n  - /b:c\n  - /a\n").config.data_dirs ==
        Strings{"/a", "/b:c"});
  CHECK(yaml("profiler: {data_dirs: []}").lines.empty());
  CHECK(yaml("profiler: {data_dirs: [/a]}\ntracer: {data_dirs: /b:/a}").config.data_dirs ==
        Strings{"/a", "/b"});
  const Result mixed =
      yaml("profiler:\n  data_dirs: [/a, [x, {y: z}], {p: q}, ~, /b]\nenable: 1\n");
  check_one_line(mixed, {"c.yaml:2", "profiler.data_dirs is not a list"});
  CHECK(mixed.config.data_dirs == Strings{"/a", "/b"});
  CHECK(mixed.config.enable);
}

TEST_CASE("both blocks, and keys given twice") {
  const Result apart = yaml("profiler: {log_file: /p}\ntracer: {time_metric: NS}\n");
  CHECK(apart.lines.empty());
  CHECK(apart.config.log_file == "/p");
  CHECK(apart.config.time_metric == TimeMetric::kNs);
  CHECK(yaml("profiler: {log_file: /p}\ntracer: {log_file: /p}\n").lines.empty());
  const Result differ = yaml("profiler: {log_file: /p}\ntracer: {log_file: /t}\n");
  CHECK(differ.config.log_file == "/t");
  check_one_line(differ, {"tracer.log_file has been given before", "/t"});
}

TEST_CASE("anchors and aliases are refused") {
  const Result anchor = yaml("enable: &on true\ncompression: *on\nprofiler: {time_metric: NS}\n");
  CHECK_FALSE(anchor.config.enable);
  CHECK(anchor.config.time_metric == TimeMetric::kNs);
  CHECK(anchor.lines.size() == 2);
  for (const std::string& line : anchor.lines) CHECK(contains(line, "anchors and aliases"));
  check_one_line(yaml("&x {enable: true}\n"), {"anchors and aliases"});
  check_one_line(yaml("profiler: &x {log_file: /y, data_dirs: [a, b]}\n"), {"profiler", "anchors"});
  check_one_line(yaml("&k enable: true\n"), {"anchors"});
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + ", *" +
              static_cast<char>(c - 1) + "]\n";
  }
  CHECK(yaml(laughs).lines.size() == 26);
}

TEST_CASE("depth is limited") {
  const Result flow = yaml("a: " + std::string(500000, '['));
  REQUIRE(flow.lines.size() == 2);
  CHECK(contains(flow.lines[1], "nested too deeply"));
  std::string deep = "a:";
  for (std::size_t i = 1; i <= 300; ++i) deep += "\n" + std::string(i, ' ') + "a:";
  CHECK(yaml(deep).lines.size() <= 2);
}

TEST_CASE("documents, tags, styles") {
  const Result two = yaml("enable: true\n---\nenable: false\n");
  CHECK(two.config.enable);
  check_one_line(two, {"c.yaml:2", "first document"});
  CHECK(yaml("enable: !!bool true\n").config.enable);
  CHECK(yaml("enable: \"true\"\n").config.enable);
  CHECK(yaml("'enable': 'ON'\n").config.enable);
  CHECK(yaml("profiler: {log_file: |-\n    /a/b\n  }\n").lines.size() <= 2);
  CHECK(yaml("profiler:\n  log_file: >-\n    /a\n    /b\n").config.log_file == "/a /b");
  CHECK(yaml("enable: true\r\nprofiler:\r\n  time_metric: NS\r\n").config.time_metric ==
        TimeMetric::kNs);
}

TEST_CASE("bytes that are not YAML") {
  for (std::string_view text :
       {std::string_view("\xff\xfe"), std::string_view("a\0b", 3),
        std::string_view("enable: \xc3\x28"), std::string_view("\t\t:\t"), std::string_view("{"),
        std::string_view("*"), std::string_view("%YAML 9.9\n---\n"), std::string_view("- - - ?")}) {
    const Result result = yaml(text);
    for (const std::string& line : result.lines) CHECK(line.starts_with("dftracer: c.yaml:"));
    CHECK(result.config == Config{});
  }
  check_one_line(yaml("enable: true\nx: \x01\n"), {"not YAML"});
}

TEST_CASE("a file name with a newline stays on one line") {
  Result result;
  apply_yaml(result.config, "foo: 1", "a\nb.yaml", collect, &result.lines);
  check_one_line(result, {"a\\x0ab.yaml:1: foo"});
}
