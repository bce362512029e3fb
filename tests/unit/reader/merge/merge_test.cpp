#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>

#include "reader/input/scan.hpp"
#include "reader/merge/plan.hpp"
#include "reader/merge/rewrite.hpp"
#include "reader/write/write.hpp"

namespace {

using namespace dft::reader;

// A survey, a plan and the rewritten lines of texts that stand for files.
struct Merged {
  explicit Merged(const std::vector<std::string>& texts, Align align = Align::kProven) {
    std::vector<std::shared_ptr<InFile>> files;
    for (const std::string& given : texts) {
      auto file = std::make_shared<InFile>();
      file->index = static_cast<std::uint32_t>(files.size());
      file->merged = given.find("\"MP\"") != std::string::npos;
      files.push_back(file);
    }
    Survey survey;
    const auto each = [&](const auto& visit) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        Block block;
        block.take(files[i], texts[i]);
        block.records([&](const Event& event, std::uint64_t) { visit(event, *files[i]); });
      }
    };
    each([&](const Event& event, const InFile& file) { survey.add(event, file); });
    const Plan plan(survey, files, align);
    clocks = plan.clocks();
    std::uint32_t count = 0;
    text = plan.head(count);
    Rewriter rewriter(plan);
    each([&](const Event& event, const InFile& file) {
      if (made_by_merge(event) || absorbed(event)) return;
      std::string line;
      rewriter.write(event, file, rewriter.treatment(event, file), line);
      lines.push_back(line);
      text += line;
    });
    for (const MergedProcess* process : plan.processes()) {
      pids.push_back(process->pid);
      names.push_back(process->name);
    }
  }
  std::string text;
  std::vector<std::string> lines;
  std::vector<std::int64_t> pids;
  std::vector<std::string> names;
  std::vector<HostClock> clocks;
};

std::string start(int pid, const std::string& key, const std::string& host = "h") {
  return R"({"id":1,"name":"start","cat":"dftracer","pid":)" + std::to_string(pid) + R"(,"tid":)" +
         std::to_string(pid) + R"(,"ts":1000,"dur":0,"ph":"X","args":{"hhash":")" + host +
         R"(","proc":")" + key + "\"}}\n";
}
std::string event(int pid, const std::string& more = "", const std::string& host = "h") {
  return R"({"id":2,"name":"read","cat":"POSIX","pid":)" + std::to_string(pid) + R"(,"tid":)" +
         std::to_string(pid + 1) + R"(,"ts":2000,"dur":3,"ph":"X","args":{"hhash":")" + host +
         "\"" + more + "}}\n";
}
std::string rank(int pid, int number, const std::string& host = "h") {
  return R"({"id":3,"name":"PR","cat":"dftracer","pid":)" + std::to_string(pid) + R"(,"tid":)" +
         std::to_string(pid) + R"(,"ph":"M","args":{"hhash":")" + host +
         R"(","name":"rank","value":")" + std::to_string(number) + "\"}}\n";
}
std::string barrier(int pid, int begin, int end, const std::string& host,
                    const char* name = "barrier") {
  return R"({"id":4,"name":")" + std::string(name) + R"(","cat":"comm","pid":)" +
         std::to_string(pid) + R"(,"tid":1,"ts":)" + std::to_string(begin) + R"(,"dur":)" +
         std::to_string(end - begin) + R"(,"ph":"X","args":{"hhash":")" + host + "\"}}\n";
}

}  // namespace

TEST_CASE("merge: a record that needs no change is copied as it stands") {
  const Merged one({start(7, "a") + event(7, R"(,"x":[1, 2],"y":-0.5e3)")});
  CHECK(one.lines[0] == start(7, "a"));
  CHECK(one.lines[1] == event(7, R"(,"x":[1,2],"y":-0.5e3)"));
}

TEST_CASE("merge: equal numbers are told apart by what the processes are, not by their order") {
  const std::string a = start(7, "a") + rank(7, 1) + event(7);
  const std::string b = start(7, "b") + rank(7, 0) + event(7);
  const Merged ab({a, b});
  const Merged ba({b, a});
  CHECK(ab.pids == std::vector<std::int64_t>{7, 10000001});
  CHECK(ab.names == std::vector<std::string>{"rank 0", "rank 1"});
  CHECK(ba.pids == ab.pids);
  CHECK(ab.lines[2] == R"({"id":2,"name":"read","cat":"POSIX","pid":10000001,"tid":10000002,)"
                       R"("ts":2000,"dur":3,"ph":"X","args":{"hhash":"h","pid":7,"tid":8}})"
                       "\n");
}

TEST_CASE("merge: what was merged is undone before it is merged again") {
  const std::string a = start(7, "a") + rank(7, 1) + event(7, R"(,"pid":1,"tid":2)");
  const std::string b = start(7, "b") + rank(7, 0) + event(7);
  const std::string c = start(7, "c") + event(7);
  const Merged once({a, b, c});
  const Merged twice({Merged({Merged({c, a}).text, b}).text});
  CHECK(std::set<std::string>(once.lines.begin(), once.lines.end()) ==
        std::set<std::string>(twice.lines.begin(), twice.lines.end()));
  CHECK(once.pids == twice.pids);
}

TEST_CASE("merge: a trace without a key joins the one process that it can be") {
  const std::string keyed = start(7, "a") + event(7);
  const std::string other =
      R"({"ph":"X","name":"op","pid":7,"tid":9,"ts":1500,"dur":1.75,"args":{"s": "a b"}})"
      "\n";
  const Merged both({keyed, other});
  CHECK(both.pids == std::vector<std::int64_t>{7});
  const std::string& line = both.lines.back();
  CHECK(line.find(R"("ts":1500,"dur":1,"ph":"X","args":{"s":"a b","ts_ns":1500000,"dur_ns":1750,)"
                  R"("pid":7,"tid":9,"trace":")") != std::string::npos);
  // Its thread has a row beside the process's own, and its number again when it is alone.
  CHECK(line.find(R"("pid":7,"tid":9,)") > line.find("args"));
  const Merged again({both.text});
  CHECK(again.lines.back() == line);
  // Two that it can be: it is a row of its own.
  CHECK(Merged({keyed, start(7, "b") + event(7), other}).pids.size() == 3);
}

TEST_CASE("merge: barriers bound the offset between clocks") {
  std::string near = start(1, "a", "near") + rank(1, 0, "near");
  std::string far = start(2, "b", "far") + rank(2, 1, "far");
  for (int i = 0; i < 5; ++i) {
    near += barrier(1, 1000 * i + 100, 1000 * i + 202, "near");
    far += barrier(2, 5000 + 1000 * i + 195, 5000 + 1000 * i + 205, "far");
  }
  const Merged both({near, far});
  REQUIRE(both.clocks.size() == 1);
  const HostClock& clock = both.clocks[0];
  CHECK(clock.host == "far");
  CHECK(clock.least_ns <= 5'000'000);
  CHECK(clock.most_ns >= 5'000'000);
  CHECK(clock.proven);
  CHECK(clock.applied);
  CHECK_FALSE(Merged({near, far}, Align::kNever).clocks[0].applied);
}

TEST_CASE("merge: an operation that does not wait proves nothing") {
  std::string near = start(1, "a", "near");
  std::string far = start(2, "b", "far");
  for (int i = 0; i < 5; ++i) {
    near += barrier(1, 1000 * i + 100, 1000 * i + 101, "near", "c10d::allreduce_");
    far += barrier(2, 1000 * i + 100 + 70 * i, 1000 * i + 101 + 70 * i, "far", "c10d::allreduce_");
  }
  CHECK(Merged({near, far}).clocks.empty());
}

TEST_CASE("write: text of numbers, blanks and bytes") {
  std::string out;
  append_compact(out, "{ \"a b\" : [ 1 , \"\\\" x\" ] }");
  CHECK(out == R"({"a b":[1,"\" x"]})");
  out.clear();
  append_visible(out, "a\xff\xc3\xa9\xc3");
  CHECK(out == "a\\uefff\xc3\xa9\\uefc3");
  OutputKind kind;
  CHECK(output_kind("d/x.json.gz", kind));
  CHECK(kind.document);
  CHECK(kind.compressed);
  CHECK_FALSE(output_kind("x.gz", kind));
  CHECK_FALSE(output_kind(".pfw", kind));
}

TEST_CASE("scan: of a file that has grown no more is read than the first time") {
  const std::string path = "/tmp/dftracer-grown-" + std::to_string(::getpid()) + ".pfw";
  const std::string before = "[\n" + event(1) + event(1) + event(1).substr(0, 20);
  for (const bool packed : {false, true}) {
    std::string data = before;
    std::string more = event(1).substr(20) + event(1);
    if (packed) {
      Deflater deflater(1);
      data.clear();
      deflater.member("[\n" + event(1) + event(1), 2, data);
      more.clear();
      deflater.member(event(1), 1, more);
    }
    std::ofstream(path, std::ios::binary) << data;
    const auto events = [&](const std::vector<std::uint64_t>& most) {
      std::uint64_t found = 0;
      OrderedScan<std::uint64_t> all(
          {path}, 2,
          [](unsigned, Block& block) {
            std::uint64_t count = 0;
            block.records([&](const Event&, std::uint64_t) { ++count; });
            return count;
          },
          nullptr, most);
      while (const auto count = all.next()) found += *count;
      CHECK(all.result().total.bytes_read == all.files()[0]->size);
      return found;
    };
    CHECK(events({}) == 2);
    std::ofstream(path, std::ios::binary | std::ios::app) << more;
    CHECK(events({data.size()}) == 2);
    CHECK(events({}) == (packed ? 3 : 4));
  }
  ::unlink(path.c_str());
}
