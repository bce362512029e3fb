// What the environment says, how it and the YAML file are weighed, and what is reported.

#include "session/config.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "session/config_fixture.hpp"

using namespace dft::session;
using namespace config_fixture;

TEST_CASE("defaults") {
  const Result nothing = read({});
  CHECK(nothing.lines.empty());
  CHECK(nothing.config == Config{});
  const Config& config = nothing.config;
  CHECK_FALSE(config.enable);
  CHECK(config.init == InitMode::kFunction);
  CHECK(config.log_file == "./trace");
  CHECK(config.data_dirs.empty());
  CHECK(config.compression);
  CHECK(config.compression_level == 1);
  CHECK(config.write_buffer_size == 524288);
  CHECK(config.inc_metadata);
  CHECK(config.time_metric == TimeMetric::kUs);
  CHECK(config.log_level == LogLevel::kError);
  CHECK_FALSE(config.disable_io);
  CHECK_FALSE(config.disable_tids);
  CHECK(config.spool_dir.empty());
  CHECK(config.log_path.empty());
  CHECK(config.run_id.empty());
}

TEST_CASE("no environment at all") {
  Strings lines;
  CHECK(read_config({nullptr, false}, collect, &lines) == Config{});
  CHECK(rank_from_environment({nullptr, false}) == -1);
  CHECK(job_from_environment({nullptr, false}).empty());
  CHECK(lines.empty());
}

TEST_CASE("a switch in every spelling") {
  for (const char* on : {"1", "true", "TRUE", "True", "yes", "YES", "on", "On", "oN"}) {
    CAPTURE(on);
    const Result result = read({std::string("DFTRACER_ENABLE=") + on});
    CHECK(result.config.enable);
    CHECK(result.lines.empty());
  }
  for (const char* off : {"0", "false", "FALSE", "no", "No", "off", "OFF", ""}) {
    CAPTURE(off);
    const Result result = read_on({std::string("DFTRACER_TRACE_COMPRESSION=") + off});
    CHECK_FALSE(result.config.compression);
    CHECK(result.lines.empty());
  }
}

TEST_CASE("a switch that is neither keeps its default and is named") {
  const Result compression = read_on({"DFTRACER_TRACE_COMPRESSION=maybe"});
  CHECK(compression.config.compression);
  check_one_line(compression, {"DFTRACER_TRACE_COMPRESSION", "\"maybe\"", "switch", "using 1"});
  for (const char* wrong : {"2", " 1", "1 ", "tru", "truee", "-", "01"}) {
    CAPTURE(wrong);
    check_one_line(read_on({std::string("DFTRACER_DISABLE_IO=") + wrong}), {wrong, "using 0"});
  }
}

TEST_CASE("an enable that is not understood is reported although tracing stays off") {
  const Result result = read({"DFTRACER_ENABLE=enabled", "DFTRACER_TIME_METRIC=x", "DFTRACER_X=1"});
  CHECK_FALSE(result.config.enable);
  check_one_line(result, {"DFTRACER_ENABLE=\"enabled\"", "using 0"});
}

TEST_CASE("an untraced program is silent") {
  const Strings wrong = {"DFTRACER_TIME_METRIC=x", "DFTRACER_LOGFILE=x", "DFTRACER_BIND_SIGNALS=1",
                         "DFTRACER_CONFIGURATION=/no/such/file"};
  check_one_line(read(wrong), {"/no/such/file"});  // which may be why it is untraced
  Strings off = wrong;
  off.push_back("DFTRACER_ENABLE=0");
  CHECK(read(off).lines.empty());
  Strings on = wrong;
  on.push_back("DFTRACER_ENABLE=1");
  CHECK(read(on).lines.size() == 4);
}

TEST_CASE("numbers") {
  CHECK(read_on({"DFTRACER_COMPRESSION_LEVEL=0"}).config.compression_level == 0);
  CHECK(read_on({"DFTRACER_COMPRESSION_LEVEL=3"}).config.compression_level == 3);
  CHECK(read_on({"DFTRACER_WRITE_BUFFER_SIZE=0"}).config.write_buffer_size == 0);
  CHECK(read_on({"DFTRACER_WRITE_BUFFER_SIZE=67108864"}).config.write_buffer_size == 67108864);
  for (const char* wrong : {"4", "-1", "+1", "1.0", "1x", "0x1", " 1", "99999999999999999999999"}) {
    CAPTURE(wrong);
    const Result result = read_on({std::string("DFTRACER_COMPRESSION_LEVEL=") + wrong});
    CHECK(result.config.compression_level == 1);
    check_one_line(result, {"DFTRACER_COMPRESSION_LEVEL", wrong, "from 0 to 3", "using 1"});
  }
  const Result large = read_on({"DFTRACER_WRITE_BUFFER_SIZE=67108865"});
  CHECK(large.config.write_buffer_size == 524288);
  check_one_line(large, {"67108864", "using 524288"});
}

TEST_CASE("enumerations in any case") {
  CHECK(read_on({"DFTRACER_TIME_METRIC=ns"}).config.time_metric == TimeMetric::kNs);
  CHECK(read_on({"DFTRACER_TIME_METRIC=US"}).config.time_metric == TimeMetric::kUs);
  CHECK(read_on({"DFTRACER_TIME_METRIC=Ms"}).config.time_metric == TimeMetric::kMs);
  CHECK(read_on({"DFTRACER_TIME_METRIC=sEC"}).config.time_metric == TimeMetric::kSec);
  CHECK(read_on({"DFTRACER_INIT=preload"}).config.init == InitMode::kPreload);
  CHECK(read_on({"DFTRACER_INIT=FUNCTION"}).config.init == InitMode::kFunction);
  CHECK(read_on({"DFTRACER_LOG_LEVEL=debug"}).config.log_level == LogLevel::kDebug);
  CHECK(read_on({"DFTRACER_LOG_LEVEL=Info"}).config.log_level == LogLevel::kInfo);
  CHECK(read_on({"DFTRACER_LOG_LEVEL=WARN"}).config.log_level == LogLevel::kWarn);
  CHECK(read_on({"DFTRACER_AGGREGATION_TYPE=selective"}).config.aggregation_type ==
        AggregationType::kSelective);
  const Result wrong = read_on({"DFTRACER_TIME_METRIC=minutes"});
  CHECK(wrong.config.time_metric == TimeMetric::kUs);
  check_one_line(wrong, {"\"minutes\"", "NS, US, MS, SEC", "using US"});
}

TEST_CASE("an empty value stands for the default, and for off in a switch") {
  const Result result =
      read_on({"DFTRACER_LOG_FILE=", "DFTRACER_TIME_METRIC=", "DFTRACER_DATA_DIR=",
               "DFTRACER_COMPRESSION_LEVEL=", "DFTRACER_CONFIGURATION=", "DFTRACER_RUN_ID=",
               "DFTRACER_INC_METADATA="});
  CHECK(result.lines.empty());
  Config expected;
  expected.enable = true;
  expected.inc_metadata = false;
  CHECK(result.config == expected);
}

TEST_CASE("texts") {
  CHECK(read_on({"DFTRACER_LOG_FILE=/a b/t=x"}).config.log_file == "/a b/t=x");
  CHECK(read_on({"DFTRACER_LOG_FILE=/a\nb\xff"}).config.log_file == "/a\nb\xff");
  CHECK(read_on({"DFTRACER_SPOOL_DIR=/dev/shm"}).config.spool_dir == "/dev/shm");
  CHECK(read_on({"DFTRACER_LOG_PATH=/tmp/d.log"}).config.log_path == "/tmp/d.log");
  CHECK(read_on({"DFTRACER_RUN_ID=0123456789abcdef"}).config.run_id == "0123456789abcdef");
  for (const char* wrong : {"0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "zz"}) {
    const Result result = read_on({std::string("DFTRACER_RUN_ID=") + wrong});
    CHECK(result.config.run_id.empty());
    check_one_line(result, {wrong, "16 lower-case hexadecimal digits", "using the default"});
  }
}

TEST_CASE("data directories") {
  using Case = std::pair<const char*, Strings>;
  for (const auto& [value, expected] :
       {Case{"/a", {"/a"}}, Case{"/a:/b", {"/a", "/b"}}, Case{":/a::/b:", {"/a", "/b"}},
        Case{"/a:/a:/b:/a", {"/a", "/b"}}, Case{":::", {}}, Case{"all", {"all"}},
        Case{"/with space:rel", {"/with space", "rel"}}}) {
    CAPTURE(value);
    const Result result = read_on({std::string("DFTRACER_DATA_DIR=") + value});
    CHECK(result.config.data_dirs == expected);
    CHECK(result.lines.empty());
  }
}

TEST_CASE("too many or too long directories") {
  std::string many = "DFTRACER_DATA_DIR=";
  for (int i = 0; i < 2000; ++i) many += "/d" + std::to_string(i) + ":";
  const Result result = read_on({many});
  CHECK(result.config.data_dirs.size() == 1024);
  check_one_line(result, {"DFTRACER_DATA_DIR", "at most 1024 directories"});
  const Result length = read_on({"DFTRACER_DATA_DIR=/a:" + std::string(5000, 'x') + ":/b"});
  CHECK(length.config.data_dirs == Strings{"/a", "/b"});
  check_one_line(length, {"at most 4095 bytes"});
}

TEST_CASE("hostile values are shortened and made visible") {
  const std::string huge(1 << 20, 'x');
  const Result path = read_on({"DFTRACER_LOG_FILE=" + huge});
  CHECK(path.config.log_file == "./trace");
  check_one_line(path, {"xxx...", "4095 bytes", "using ./trace"});
  CHECK(path.lines[0].size() < 250);

  for (const char* variable : {"DFTRACER_DISABLE_IO", "DFTRACER_TIME_METRIC",
                               "DFTRACER_COMPRESSION_LEVEL", "DFTRACER_DATA_DIR"}) {
    const Result result = read_on({std::string(variable) + "=" + huge});
    check_one_line(result, {variable, "xxx..."});
    CHECK(result.lines[0].size() < 250);
  }
  check_one_line(read_on({"DFTRACER_DISABLE_IO=a\nb\tc\x1b[31m\x7f"}),
                 {"a\\x0ab\\x09c\\x1b[31m\\x7f"});
  check_one_line(read_on({"DFTRACER_DISABLE_IO=\xff\xc3\xa9\xc0\xaf\xed\xa0\x80\xf0\x9f"}),
                 {"\\xff\xc3\xa9\\xc0\\xaf\\xed\\xa0\\x80\\xf0\\x9f"});
  check_one_line(read_on({"DFTRACER_DISABLE_IO=\xc2\x9b"
                          "1m"}),
                 {"\\xc2\\x9b1m"});
  check_one_line(read_on({"DFTRACER_\n\x01=1"}), {"DFTRACER_\\x0a\\x01 is not a setting"});
  const Result name = read_on({"DFTRACER_" + huge + "=1"});
  check_one_line(name, {"xxx... is not a setting"});
}

TEST_CASE("a variable that is no setting") {
  check_one_line(read_on({"DFTRACER_COLOUR=1"}), {"DFTRACER_COLOUR is not a setting"});
  CHECK_FALSE(contains(read_on({"DFTRACER_COLOUR=1"}).lines[0], "did you mean"));
  using Case = std::pair<const char*, const char*>;
  for (const auto& [wrong, right] :
       {Case{"DFTRACER_LOGFILE", "DFTRACER_LOG_FILE"}, Case{"DFTRACER_ENABLED", "DFTRACER_ENABLE"},
        Case{"DFTRACER_DATA_DIRS", "DFTRACER_DATA_DIR"}, Case{"DFTRACER_INT", "DFTRACER_INIT"},
        Case{"DFTRACER_log_file", ""}, Case{"DFTRACER_INC_METDATA", "DFTRACER_INC_METADATA"}}) {
    CAPTURE(wrong);
    const Result result = read_on({std::string(wrong) + "=x"});
    if (*right == '\0') {
      check_one_line(result, {wrong});
    } else {
      check_one_line(result, {wrong, std::string("did you mean ") + right + "?"});
    }
  }
  check_one_line(read_on({"DFTRACER_=1"}), {"DFTRACER_ is not a setting"});
}

TEST_CASE("names of other tools, and entries that are not ours, are passed over") {
  const Result result = read_on(
      {"DFTRACER_UTILS_HW_CONCURRENCY=4", "DFTRACER_UTILS_SPILL_DIR=/tmp", "DFTRACER_UTILS_ANY=x",
       "DFTRACER_DUQL_PATH=/x", "DFTRACER_BUILD_TYPE=Debug", "DFTRACER_ENABLE_MPI=ON",
       "DFTRACER_ENABLE_HDF5=ON", "DFTRACER_ENABLE_FTRACING=ON", "DFTRACER_MPI_IMPL=x",
       "DFTRACER_ENABLE_DYNAMIC_DETECTION=ON", "DFTRACER_DISABLE_HWLOC=ON", "PATH=/bin",
       "DFTRACE=1", "DFTRACERX=1", "dftracer_enable=0", "DFTRACER_DISABLE_IO", "=DFTRACER_X", ""});
  CHECK(result.lines.empty());
  CHECK_FALSE(result.config.disable_io);
}

TEST_CASE("what has no effect says so once it is asked for") {
  check_one_line(read_on({"DFTRACER_BIND_SIGNALS=1"}),
                 {"DFTRACER_BIND_SIGNALS=1", "has no effect", "signals"});
  using Case = std::pair<const char*, const char*>;
  for (const auto& [nothing, something] :
       {Case{"DFTRACER_BIND_SIGNALS=0", "DFTRACER_BIND_SIGNALS=yes"},
        Case{"DFTRACER_ERROR=0", "DFTRACER_ERROR=1"},
        Case{"DFTRACER_GOTCHA_PRIORITY=1", "DFTRACER_GOTCHA_PRIORITY=2"},
        Case{"DFTRACER_DEBUG_REGION_TRACK=", "DFTRACER_DEBUG_REGION_TRACK=1"},
        Case{"DFTRACER_ENABLE_AGGREGATION=0", "DFTRACER_ENABLE_AGGREGATION=1"},
        Case{"DFTRACER_AGGREGATION_TYPE=full", "DFTRACER_AGGREGATION_TYPE=SELECTIVE"},
        Case{"DFTRACER_AGGREGATION_FILE=", "DFTRACER_AGGREGATION_FILE=r.yaml"},
        Case{"DFTRACER_TRACE_INTERVAL_MS=1000", "DFTRACER_TRACE_INTERVAL_MS=10"},
        Case{"DFTRACER_LIBUV_THREADS=1", "DFTRACER_LIBUV_THREADS=4"},
        Case{"DFTRACER_ENABLE_PAPI_TRACING=0", "DFTRACER_ENABLE_PAPI_TRACING=1"},
        Case{"DFTRACER_PAPI_EVENTS=", "DFTRACER_PAPI_EVENTS=PAPI_TOT_INS"},
        Case{"DFTRACER_PAPI_MULTIPLEX=0", "DFTRACER_PAPI_MULTIPLEX=1"},
        Case{"DFTRACER_PAPI_SAMPLE_INTERVAL_MS=0", "DFTRACER_PAPI_SAMPLE_INTERVAL_MS=5"},
        Case{"DFTRACER_ENABLE_HIP_TRACING=OFF", "DFTRACER_ENABLE_HIP_TRACING=ON"},
        Case{"DFTRACER_DISABLE_VARIORUM_POWER=1", "DFTRACER_DISABLE_VARIORUM_POWER=0"}}) {
    CAPTURE(something);
    CHECK(read_on({nothing}).lines.empty());
    const std::string name = something;
    check_one_line(read_on({something}), {name.substr(0, name.find('=')), "has no effect: "});
  }
  TemporaryFile file("internal: {bind_signals: true}\n");
  check_one_line(read_on({file.variable()}), {"internal.bind_signals=1 has no effect"});
  CHECK(read_on({file.variable(), "DFTRACER_BIND_SIGNALS=0"}).lines.empty());
}

TEST_CASE("of a variable that is there twice the first counts, as with getenv") {
  CHECK(read_on({"DFTRACER_LOG_FILE=a", "DFTRACER_LOG_FILE=b"}).config.log_file == "a");
  CHECK(read({"DFTRACER_ENABLE=0", "DFTRACER_ENABLE=1"}).config.enable == false);
}

TEST_CASE("a secure process ignores every variable") {
  TemporaryFile file("enable: true\n");
  const Result result = read(
      {"DFTRACER_ENABLE=1", "DFTRACER_LOG_FILE=/etc/x", "DFTRACER_X=1", file.variable()}, true);
  CHECK(result.config == Config{});
  CHECK(result.lines.empty());
  CHECK(read({"DFTRACER_ENABLE=nonsense"}, true).lines.empty());
  FakeEnvironment launcher({"RANK=3", "PMIX_NAMESPACE=x"});
  CHECK(rank_from_environment(launcher.get(true)) == -1);
  CHECK(job_from_environment(launcher.get(true)).empty());
}

TEST_CASE("the environment wins over the file, in both directions") {
  TemporaryFile on(
      "enable: true\n"
      "profiler: {log_file: /y, compression: false, time_metric: NS, init: PRELOAD}\n"
      "features: {metadata: false, io: {enable: false, posix: false}, tid: false}\n");
  const Config file = read({on.variable()}).config;
  CHECK(file.enable);
  CHECK(file.log_file == "/y");
  CHECK_FALSE(file.compression);
  CHECK(file.time_metric == TimeMetric::kNs);
  CHECK(file.init == InitMode::kPreload);
  CHECK_FALSE(file.inc_metadata);
  CHECK(file.disable_io);
  CHECK(file.disable_posix);
  CHECK_FALSE(file.disable_stdio);
  CHECK(file.disable_tids);
  CHECK(file.configuration == on.path());

  CHECK_FALSE(read({on.variable(), "DFTRACER_ENABLE=0"}).config.enable);
  CHECK_FALSE(read({on.variable(), "DFTRACER_ENABLE="}).config.enable);
  const Config both =
      read({"DFTRACER_LOG_FILE=/e", "DFTRACER_TRACE_COMPRESSION=1", "DFTRACER_TIME_METRIC=US",
            "DFTRACER_INIT=FUNCTION", on.variable(), "DFTRACER_INC_METADATA=1",
            "DFTRACER_DISABLE_IO=0", "DFTRACER_DISABLE_TIDS=0"})
          .config;
  CHECK(both.enable);
  CHECK(both.log_file == "/e");
  CHECK(both.compression);
  CHECK(both.time_metric == TimeMetric::kUs);
  CHECK(both.init == InitMode::kFunction);
  CHECK(both.inc_metadata);
  CHECK_FALSE(both.disable_io);
  CHECK(both.disable_posix);
  CHECK_FALSE(both.disable_tids);

  TemporaryFile off("enable: false\n");
  CHECK_FALSE(read({off.variable()}).config.enable);
  CHECK(read({off.variable(), "DFTRACER_ENABLE=1"}).config.enable);
}

TEST_CASE("a variable that is not understood leaves the value of the file") {
  TemporaryFile file("enable: yes\ntracer: {time_metric: MS}\n");
  const Result metric = read({file.variable(), "DFTRACER_TIME_METRIC=x"});
  CHECK(metric.config.time_metric == TimeMetric::kMs);
  check_one_line(metric, {"DFTRACER_TIME_METRIC", "using MS"});
  const Result enable = read({file.variable(), "DFTRACER_ENABLE=x"});
  CHECK(enable.config.enable);
  check_one_line(enable, {"DFTRACER_ENABLE", "using 1"});
}

TEST_CASE("directories of file and environment are united") {
  TemporaryFile file("profiler: {data_dirs: [/y, /both]}\n");
  const Result result = read_on({"DFTRACER_DATA_DIR=/both:/e", file.variable()});
  CHECK(result.config.data_dirs == Strings{"/y", "/both", "/e"});
  CHECK(result.lines.empty());
}

TEST_CASE("a file that cannot be used is named, and tracing goes on") {
  const auto with = [](const std::string& path) {
    return read_on({"DFTRACER_CONFIGURATION=" + path, "DFTRACER_LOG_FILE=/e"});
  };
  const Result missing = with("/no/such/file.yaml");
  check_one_line(missing, {"/no/such/file.yaml", "no such file"});
  CHECK(missing.config.enable);
  CHECK(missing.config.log_file == "/e");
  check_one_line(with("/tmp"), {"/tmp", "not a regular file"});
  check_one_line(with("/dev/zero"), {"/dev/zero", "not a regular file"});

  TemporaryFile malformed("profiler:\n  time_metric: NS\n  log_level: [\nfoo: }\n");
  const Result broken = with(malformed.path());
  CHECK(broken.config.time_metric == TimeMetric::kNs);
  CHECK(broken.config.enable);
  REQUIRE_FALSE(broken.lines.empty());
  CHECK(contains(broken.lines.back(), "not YAML from here on"));

  TemporaryFile large("profiler: {log_file: /y}\n#" + std::string(1 << 20, 'x'));
  check_one_line(with(large.path()), {"larger than 1 MiB"});

  TemporaryFile locked("enable: true\n");
  ::chmod(locked.path().c_str(), 0);
  if (::geteuid() != 0) check_one_line(with(locked.path()), {"permission denied"});

  const std::string fifo = malformed.path() + ".fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  check_one_line(with(fifo), {"not a regular file"});
  ::unlink(fifo.c_str());
}

TEST_CASE("a file of exactly 1 MiB is read") {
  std::string text = "profiler: {log_file: /y}\n#";
  text.resize(1 << 20, 'x');
  TemporaryFile file(text);
  const Result result = read_on({file.variable()});
  CHECK(result.lines.empty());
  CHECK(result.config.log_file == "/y");
}

TEST_CASE("errno is kept and no descriptor is left open") {
  const int before = ::dup(0);
  ::close(before);
  errno = EXDEV;
  read_on({"DFTRACER_CONFIGURATION=/no/such/file"});
  CHECK(errno == EXDEV);
  TemporaryFile file("enable: true\n");
  read({file.variable()});
  read_on({"DFTRACER_CONFIGURATION=/tmp"});
  const int after = ::dup(0);
  ::close(after);
  CHECK(before == after);
}

TEST_CASE("nobody listens") {
  FakeEnvironment environment({"DFTRACER_ENABLE=1", "DFTRACER_X=1", "DFTRACER_INIT=x"});
  CHECK(read_config(environment.get(), nullptr, nullptr).enable);
}

TEST_CASE("lines are limited") {
  Strings many;
  for (int i = 0; i < 500; ++i) many.push_back("DFTRACER_UNKNOWN_" + std::to_string(i) + "=1");
  const Result result = read_on(many);
  CHECK(result.lines.size() == 41);
  CHECK(contains(result.lines.back(), "further problems"));
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  CHECK(yaml(text).lines.size() == 41);
}
