#include "reader/stats/stats.hpp"

#include <doctest/doctest.h>

#include "reader/input/block.hpp"

namespace {

using namespace dft::reader;

void add_text(Stats& stats, std::string_view text, std::uint64_t ordinal, std::uint32_t index = 0) {
  auto file = std::make_shared<InFile>();
  file->index = index;
  Block block;
  block.take(file, text);
  block.records(
      [&](const Event& event, std::uint64_t line) { stats.add(event, index, {ordinal, line}); });
}

std::string call(const std::string& name, int ts, int dur, const std::string& args, int pid = 5,
                 const std::string& host = R"("hhash":"h1",)") {
  return R"({"id":1,"name":")" + name + R"(","cat":"POSIX","pid":)" + std::to_string(pid) +
         R"(,"tid":)" + std::to_string(pid + ts % 2) + R"(,"ts":)" + std::to_string(ts) +
         R"(,"dur":)" + std::to_string(dur) + R"(,"ph":"X","args":{)" + host + R"("p_idx":-1)" +
         args + "}}\n";
}

std::string meta(const std::string& name, const std::string& args) {
  return R"({"id":0,"name":")" + name +
         R"(","cat":"dftracer","pid":5,"tid":5,"ts":50,"ph":"M","args":{"hhash":"h1",)" + args +
         "}}\n";
}

// Two files, a pipe, a map, a failed call, hashes that are explained early, late and never.
std::vector<std::string> blocks() {
  return {
      meta("start",
           R"("cmd_hash":"c1","exec_hash":"e1","cwd":"w1","ppid":1,"run":"r","proc":"k")") +
          meta("HH", R"("name":"node1","value":"h1")") +
          call("open64", 100, 5, R"(,"fhash":"f1","ret":3)") +
          call("read", 110, 10, R"(,"fhash":"f1","ret":4096)") +
          call("read", 130, 20, R"(,"fhash":"f1","ret":-1,"errno":5)"),
      call("write", 160, 7, R"(,"fhash":"f2","ret":100)") +
          call("read", 170, 3, R"(,"fhash":"p1","ret":11)") +
          meta("FH", R"("name":"/data/a","value":"f1")") +
          meta("FH", R"("name":"pipe:[4711]","value":"p1")"),
      call("read", 400, 40, R"(,"fhash":"f1","ret":512)", 6) +
          call("sum", 200, 1, R"(,"x":1)", 5, "") + meta("PR", R"("name":"rank","value":"3")") +
          meta("SH", R"("name":"python train.py","value":"c1")") +
          meta("end", R"("num_events":8,"cpu_us":12,"cpu_wait_us":3)") +
          meta("lost", R"("events":2)"),
  };
}

std::string show(const Bytes& bytes) {
  return std::to_string(bytes.read) + "/" + std::to_string(bytes.written) + "/" +
         std::to_string(bytes.read_unknown) + "/" + std::to_string(bytes.write_unknown);
}

// All that statistics hold after finish(), as text.
std::string show(const Stats& stats) {
  std::string out;
  for (const Stats::NameRow& row : stats.names) {
    out += row.category + ":" + row.name + " " + std::to_string(row.row.count) + " " +
           std::to_string(row.row.total) + " " + std::to_string(row.row.least) + " " +
           std::to_string(row.row.most) + " " + show(row.row.bytes) + " " +
           std::to_string(row.row.durations.percentile(0.5)) + "\n";
  }
  for (const ProcessRow& row : stats.processes) {
    out += std::to_string(row.pid) + "@" + row.host + " " + std::to_string(row.events) + " " +
           std::to_string(row.records) + " " + std::to_string(row.total) + " " + show(row.bytes) +
           " " + std::to_string(row.threads.size()) + " " + std::to_string(row.first) + "-" +
           std::to_string(row.last) + " " + std::to_string(row.starts) + std::to_string(row.ends) +
           " " + std::to_string(row.lost) + " " + std::to_string(row.promised) + " " +
           std::to_string(row.cpu) + " " + row.texts().command + " " + row.texts().rank + " " +
           row.texts().run + "\n";
  }
  for (const auto& [path, row] : stats.by_path) {
    out += path + " " + std::to_string(row.count) + " " + std::to_string(row.total) + " " +
           std::to_string(row.reads) + " " + std::to_string(row.writes) + " " + show(row.bytes) +
           "\n";
  }
  for (const auto& [file, facts] : stats.files) {
    out += std::to_string(facts.first) + "-" + std::to_string(facts.last);
    for (const auto& [name, count] : facts.metadata) out += " " + name + std::to_string(count);
    for (const auto& [position, line] : facts.sample) out += " " + line;
    out += "\n";
  }
  return out + "pipes " + show(stats.pipes) + " unknown " + std::to_string(stats.paths_unknown);
}

}  // namespace

TEST_CASE("the statistics of parts add up to those of the whole, in any order") {
  const StatsOptions options{.samples = 3};
  const std::vector<std::string> texts = blocks();
  Stats whole(options);
  for (std::size_t i = 0; i < texts.size(); ++i) add_text(whole, texts[i], i);
  whole.finish();
  const std::string expected = show(whole);
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}) {
    std::vector<Stats> parts(texts.size(), Stats(options));
    for (std::size_t i = 0; i < texts.size(); ++i) add_text(parts[i], texts[i], i);
    Stats sum(options);
    for (const std::size_t i : order) sum.add(std::move(parts[i]));
    sum.finish();
    CHECK(show(sum) == expected);
  }
}

TEST_CASE("statistics are those of the records") {
  Stats stats;
  const std::vector<std::string> texts = blocks();
  for (std::size_t i = 0; i < texts.size(); ++i) add_text(stats, texts[i], i);
  stats.finish();
  const auto read = std::find_if(stats.names.begin(), stats.names.end(),
                                 [](const auto& row) { return row.name == "read"; });
  REQUIRE(read != stats.names.end());
  CHECK(read->row.count == 4);
  CHECK(read->row.total == 73000);  // microseconds in the trace, nanoseconds here
  CHECK(read->row.least == 3000);
  CHECK(read->row.most == 40000);
  CHECK(read->row.bytes.read == 4096 + 512);  // without the pipe
  CHECK(stats.pipes.read == 11);
  REQUIRE(stats.by_path.contains("/data/a"));
  CHECK(stats.by_path.at("/data/a").reads == 3);
  CHECK(stats.by_path.at("/data/a").bytes.read == 4096 + 512);
  CHECK(stats.by_path.at("#f2").bytes.written == 100);  // a hash without a record
  CHECK(stats.paths_unknown == 1);
  REQUIRE(stats.processes.size() == 2);
  const ProcessRow& first = stats.processes[0];
  CHECK(first.host == "node1");
  CHECK(first.events == 6);  // with the one that names no host
  CHECK(first.bytes.read == 4096);
  CHECK(first.bytes.written == 100);
  CHECK(first.texts().command == "python train.py");
  CHECK(first.texts().rank == "3");
  CHECK(first.promised == 8);
  CHECK(first.cpu == 12000);
  CHECK(first.cpu_wait == 3000);
  CHECK(first.lost == 2);
  CHECK(stats.processes[1].pid == 6);
}

TEST_CASE("sums saturate instead of wrapping around") {
  std::uint64_t sum = UINT64_MAX - 1;
  add_saturated(sum, 1);
  CHECK(sum == UINT64_MAX);
  add_saturated(sum, 1);
  CHECK(sum == UINT64_MAX);
}

TEST_CASE("more processes than the limit are refused") {
  Stats stats({.processes = 2});
  add_text(stats, call("read", 1, 1, "", 1) + call("read", 1, 1, "", 2), 0);
  CHECK_THROWS_AS(add_text(stats, call("read", 1, 1, "", 3), 1), std::runtime_error);
}
