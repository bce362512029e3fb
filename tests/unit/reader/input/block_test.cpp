#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "reader/input/scan.hpp"
#include "reader/stats/stats.hpp"
#include "sink/deflate.hpp"
#include "sink/mmap_buffer.hpp"

namespace {

using namespace dft::reader;

class TempFile {
 public:
  explicit TempFile(const std::string& bytes, const char* ending = ".pfw") {
    static int number = 0;
    path_ =
        "/tmp/dft_reader_" + std::to_string(::getpid()) + "_" + std::to_string(number++) + ending;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string line(int id, const std::string& more = "") {
  return R"({"id":)" + std::to_string(id) + R"(,"name":"n)" + std::to_string(id % 7) +
         R"(","cat":"c","pid":5,"tid":6,"ts":)" + std::to_string(1000 + id) + R"(,"dur":)" +
         std::to_string(id % 100) + R"(,"ph":"X","args":{"hhash":"ab","p_idx":-1,"level":1)" +
         more + "}}\n";
}

// A member as the library writes it.
std::string member(const std::string& text, std::uint32_t lines) {
  dft::sink::Gzip gzip(1);
  dft::sink::MmapBuffer out;
  REQUIRE(gzip.member(text, lines, out));
  return std::string(out.view());
}

struct Result {
  std::set<std::int64_t> ids;
  std::uint64_t times = 0;
  ScanResult scan_result;
};

Result read(const std::vector<std::string>& paths, unsigned threads = 2) {
  Result result;
  std::mutex mutex;
  result.scan_result = scan(paths, threads, [&](unsigned, Block& block) {
    block.records([&](const Event& event, std::uint64_t) {
      const std::lock_guard lock(mutex);
      result.ids.insert(event.id);
      ++result.times;
    });
  });
  return result;
}

std::string many(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += line(i);
  return text;
}

}  // namespace

TEST_CASE("a plain file in pieces: every line once, at every place of the seams") {
  // Lines of many lengths, so that pieces end inside, before and after line ends.
  std::string text = "[\n";
  int count = 0;
  while (text.size() < 3 * kItemText + 1234) {
    ++count;
    const auto pad = static_cast<std::size_t>(count * 37 % 400);
    text += line(count, ",\"pad\":\"" + std::string(pad, 'x') + '"');
  }
  const TempFile file(text);
  for (const unsigned threads : {1U, 3U}) {
    const Result result = read({file.path()}, threads);
    CHECK(result.times == static_cast<std::uint64_t>(count));
    CHECK(result.ids.size() == static_cast<std::size_t>(count));
    CHECK(result.scan_result.total.lines == static_cast<std::uint64_t>(count) + 1);
    CHECK(result.scan_result.total.bytes_read == text.size());
    CHECK_FALSE(result.scan_result.total.is_damaged());
  }
}

TEST_CASE("a line longer than several pieces belongs to one of them") {
  const std::string text =
      many(0, 10) + line(10, ",\"s\":\"" + std::string(3 * kItemText, 'y') + '"') + many(11, 20);
  const TempFile file(text);
  const Result result = read({file.path()});
  CHECK(result.times == 20);
  CHECK(result.ids.size() == 20);
  CHECK_FALSE(result.scan_result.total.is_damaged());
}

TEST_CASE("members of ours are split, others are streamed, both in one file") {
  const std::string ours = member("[\n" + many(0, 100), 100) + member(many(100, 200), 100);
  const std::string late = member(many(300, 400), 100);
  std::string foreign = member(many(200, 300), 100);
  foreign.replace(12, 2, "XX");  // another extra field: a member of somebody else
  const TempFile file(ours + foreign + late, ".pfw.gz");
  const Result result = read({file.path()});
  CHECK(result.ids.size() == 400);
  CHECK(result.times == 400);
  CHECK(result.scan_result.total.members == 4);
  CHECK(result.scan_result.total.bytes_read == result.scan_result.files[0]->size);
  CHECK_FALSE(result.scan_result.total.is_damaged());
}

TEST_CASE("damage costs its own member and no other") {
  const std::vector<std::string> members = {
      member("[\n" + many(0, 100), 100), member(many(100, 200), 100), member(many(200, 300), 100),
      member(many(300, 400), 100)};
  const auto joined = [&](std::size_t index, const std::string& other) {
    std::string out;
    for (std::size_t i = 0; i < members.size(); ++i) out += i == index ? other : members[i];
    return out;
  };
  SUBCASE("a byte of the data") {
    std::string bad = members[1];
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
    const TempFile file(joined(1, bad), ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() == 300);
    CHECK(result.scan_result.total.count(Trouble::kBadMember) == 1);
    CHECK(result.scan_result.total.problems[0].offset == members[0].size());
  }
  SUBCASE("the size in the header") {
    std::string bad = members[1];
    bad[16] = static_cast<char>(bad[16] + 5);
    const TempFile file(joined(1, bad), ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() == 400);
  }
  SUBCASE("the magic") {
    std::string bad = members[1];
    bad[0] = 'x';
    const TempFile file(joined(1, bad), ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() == 300);
    CHECK(result.scan_result.total.count(Trouble::kRubbish) == 1);
  }
  SUBCASE("the count of lines") {
    const TempFile file(joined(1, member(many(100, 200), 99)), ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() == 400);
    CHECK(result.scan_result.total.count(Trouble::kWrongCount) == 1);
  }
  SUBCASE("the end") {
    std::string whole = joined(9, "");
    whole.resize(whole.size() - 30);
    const TempFile file(whole, ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() >= 300);
    CHECK(result.scan_result.total.count(Trouble::kCutMember) == 1);
    CHECK(result.scan_result.total.count(Trouble::kCutLine) == 0);
  }
  SUBCASE("rubbish behind the last") {
    const TempFile file(joined(9, "") + std::string(512, '\0'), ".pfw.gz");
    const Result result = read({file.path()});
    CHECK(result.ids.size() == 400);
    CHECK(result.scan_result.total.count(Trouble::kRubbish) == 1);
  }
}

TEST_CASE("lines that are damaged are told with their place; the others are read") {
  std::string half = line(50);
  half.resize(half.size() / 2);
  const std::string before = "[\n" + many(0, 5);
  const TempFile file(before + "nonsense\n" + many(5, 8) + std::string(3, '\0') + "\n" +
                      "{\"x\":1}\n" + many(8, 9) + half);
  const Result result = read({file.path()}, 1);
  CHECK(result.ids.size() == 9);
  const Damage& total = result.scan_result.total;
  CHECK(total.count(Trouble::kBadLine) == 2);
  CHECK(total.count(Trouble::kNotARecord) == 1);
  CHECK(total.count(Trouble::kCutLine) == 1);
  REQUIRE(total.problems.size() == 4);
  CHECK(total.problems[0].line == 7);
  CHECK(total.problems[0].offset == before.size());
}

TEST_CASE("a record behind one that was cut without a line end is read") {
  std::string half = line(1, ",\"s\":\"" + std::string(100, 'z'));
  half.resize(half.size() - 20);
  const TempFile file("[\n" + half + line(2) + line(3));
  const Result result = read({file.path()});
  CHECK(result.ids == std::set<std::int64_t>{2, 3});
  CHECK(result.scan_result.total.count(Trouble::kBadLine) == 1);
}

TEST_CASE("brackets, commas, blanks, arrays on one line") {
  std::string no_end = line(4);
  no_end.pop_back();
  std::string comma = line(3);
  comma.insert(comma.size() - 1, ",");
  const TempFile file("  " + line(1) + "\n[\n" + line(2) + comma + "]\n[" + no_end + "," + no_end +
                      "]");
  const Result result = read({file.path()});
  CHECK(result.times == 5);
  CHECK_FALSE(result.scan_result.total.is_damaged());
}

TEST_CASE("order: results come in the order of the files and their blocks") {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += line(i);
  const TempFile first(text);
  const TempFile second(member(many(20000, 20100), 100) + member(many(20100, 20200), 100),
                        ".pfw.gz");
  OrderedScan<std::vector<std::int64_t>> ordered(
      {first.path(), second.path()}, 3, [](unsigned, Block& block) {
        std::vector<std::int64_t> ids;
        block.records([&](const Event& event, std::uint64_t) { ids.push_back(event.id); });
        return ids;
      });
  std::int64_t wanted = 0;
  while (auto ids = ordered.next()) {
    for (const std::int64_t id : *ids) CHECK(id == wanted++);
  }
  CHECK(wanted == 20200);
  CHECK(ordered.result().total.events == 20200);
}

TEST_CASE("a scan that nobody finishes ends") {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += line(i);
  const TempFile file(text);
  OrderedScan<int> ordered({file.path()}, 2, [](unsigned, Block& block) {
    block.records([](const Event&, std::uint64_t) {});
    return 1;
  });
  CHECK(ordered.next().has_value());
}

TEST_CASE("statistics are the same for every cut of the trace") {
  std::string text = "[\n";
  for (int i = 0; i < 30000; ++i) {
    text +=
        line(i, R"(,"fhash":"f)" + std::to_string(i % 11) + R"(","ret":)" + std::to_string(i % 5));
  }
  const TempFile plain(text);
  const auto partial_of = [&](unsigned threads) {
    std::vector<Stats> parts(threads);
    scan({plain.path()}, threads, [&](unsigned worker, Block& block) {
      block.records([&](const Event& event, std::uint64_t at) {
        parts[worker].add(event, block.file().index, {block.ordinal(), at});
      });
    });
    for (unsigned i = 1; i < threads; ++i) parts[0].add(std::move(parts[i]));
    parts[0].finish();
    return std::move(parts[0]);
  };
  const Stats one = partial_of(1);
  const Stats four = partial_of(4);
  REQUIRE(one.names.size() == 7);
  REQUIRE(four.names.size() == 7);
  for (std::size_t i = 0; i < one.names.size(); ++i) {
    const CallTotals& a = one.names[i].row;
    const CallTotals& b = four.names[i].row;
    CHECK(one.names[i].name == four.names[i].name);
    CHECK(a.count == b.count);
    CHECK(a.total == b.total);
    CHECK(a.least == b.least);
    CHECK(a.most == b.most);
    for (const double share : {0.1, 0.5, 0.9, 0.99}) {
      CHECK(a.durations.percentile(share) == b.durations.percentile(share));
    }
  }
  CHECK(one.by_path.size() == 11);
  CHECK(four.by_path.size() == 11);
}

namespace {

// Of one process on one host, as the library writes it.
std::string call(int id, const std::string& name, int tid, const std::string& host,
                 const std::string& args) {
  return R"({"id":)" + std::to_string(id) + R"(,"name":")" + name +
         R"(","cat":"POSIX","pid":5,"tid":)" + std::to_string(tid) + R"(,"ts":17948202)" +
         std::to_string(10000000 + id * 7919L % 80000000) + R"(,"dur":)" +
         std::to_string(id % 3 == 0 ? 0 : id * 37 % 1500) + R"(,"ph":"X","args":{"hhash":")" +
         host + R"(","p_idx":-1)" + args + "}}\n";
}

// A trace in which neighbours are alike, and differ, in all that a repeat is known by.
std::string mixed(int from, int to) {
  const std::string names[] = {"read",     "pread",     "write", "lseek", "fread",
                               "sendfile", "gr\u00fcn", "a\\n",  "fgetc", std::string(90, 'n')};
  const std::string args[] = {R"(,"ret":4096)",
                              R"(,"ret":-1,"errno":2)",
                              R"(,"size":8,"ret":3)",
                              R"(,"note":"gr\u00fcn","ret":7)",
                              "",
                              R"(,"ret":123456789)",
                              ",\"note\":\"\xff\",\"ret\":5",
                              R"(,"ret":-5)"};
  std::string text;
  for (int i = from; i < to; ++i) {
    const int pick = i * 31 / 7;
    text += call(i, names[pick % 10], 6 + pick / 5 % 3,
                 pick / 50 % 4 == 0 ? "fedcba9876543210" : "0123456789abcdef", args[pick / 3 % 8]);
    if (i % 97 == 0) {
      text += R"({"id":1,"name":"FH","cat":"dftracer","pid":5,"tid":6,"ph":"M","args":)"
              R"({"hhash":"0123456789abcdef","name":"/x","value":"f"}})"
              "\n";
    }
  }
  return text;
}

std::string described(const CallTotals& row) {
  std::string out;
  for (const std::uint64_t value : {row.count, row.total, row.least, row.most, row.bytes.read,
                                    row.bytes.written, row.durations.count()}) {
    out += std::to_string(value) + ' ';
  }
  for (const double share : {0.1, 0.5, 0.9, 0.99}) {
    out += std::to_string(row.durations.percentile(share)) + ' ';
  }
  return out;
}

// All that a partial found, as text.
std::string described(const Stats& stats) {
  std::string out;
  for (const Stats::NameRow& name : stats.names) {
    out += name.category + ' ' + name.name + ' ' + std::to_string(name.file) + ": " +
           described(name.row) + '\n';
  }
  for (const ProcessRow& process : stats.processes) {
    out += process.host + ' ' + std::to_string(process.pid) + ": ";
    for (const std::uint64_t value :
         {process.seen.block, process.seen.line, process.events, process.records, process.total,
          process.bytes.read, process.bytes.written, std::uint64_t{process.threads.size()}}) {
      out += std::to_string(value) + ' ';
    }
    out += std::to_string(process.first) + ' ' + std::to_string(process.last) + '\n';
  }
  for (const auto& [file, facts] : stats.files) {
    out += std::to_string(file) + ": " + std::to_string(facts.first) + ' ' +
           std::to_string(facts.last) + '\n';
    for (const auto& [name, count] : facts.metadata) {
      out += name + ' ' + std::to_string(count) + '\n';
    }
    for (const auto& [place, line] : facts.sample) out += line + '\n';
  }
  return out;
}

// Without and with the short ways.
std::pair<std::string, Damage> summary(const std::vector<std::string>& paths, unsigned threads,
                                       StatsOptions options, bool brief) {
  std::vector<Stats> parts(threads, Stats(options));
  ScanResult scan_result = scan(paths, threads, [&](unsigned worker, Block& block) {
    const StatsAdder add(parts[worker], block.file().index, block.ordinal());
    if (brief) {
      block.brief_records(add);
    } else {
      block.records(add);
    }
  });
  for (unsigned i = 1; i < threads; ++i) parts[0].add(std::move(parts[i]));
  parts[0].finish();
  return {described(parts[0]), std::move(scan_result.total)};
}

}  // namespace

TEST_CASE("statistics of repeats are those of the events") {
  const auto lines = [](const std::string& text) {
    return static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
  };
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(mixed(i * 1000, (i + 1) * 1000));
  std::string bytes;
  for (const std::string& text : texts) bytes += member(text, lines(text));
  const TempFile one(bytes, ".pfw.gz");
  const TempFile two(member(texts[3], lines(texts[3])) + member(texts[5], 1), ".pfw.gz");
  const TempFile plain(texts[0] + texts[7]);
  const std::vector<std::string> paths = {one.path(), two.path(), plain.path()};
  for (const bool by_file : {false, true}) {
    for (const std::size_t samples : {0U, 5U}) {
      const StatsOptions options{by_file, false, samples};
      const auto [wanted, damage] = summary(paths, 1, options, false);
      CHECK(damage.events == 24000);
      CHECK(damage.count(Trouble::kWrongCount) == 1);
      CHECK(damage.count(Trouble::kBadText) > 1000);
      for (const unsigned threads : {1U, 3U}) {
        const auto [found, other] = summary(paths, threads, options, true);
        CHECK(found == wanted);
        CHECK(other.records == damage.records);
        CHECK(other.events == damage.events);
        CHECK(other.metadata == damage.metadata);
        CHECK(other.lines == damage.lines);
        CHECK(other.problems.size() == damage.problems.size());
        CHECK(other.count(Trouble::kBadText) == damage.count(Trouble::kBadText));
        CHECK(other.count(Trouble::kWrongCount) == 1);
      }
    }
  }
}

TEST_CASE("a member is whole, or what is wrong with it is seen") {
  const std::string text = many(0, 300);
  const std::string good = member(text, 300);
  Inflater inflater;
  std::size_t used = 0;
  const auto inflated = [&](const std::string& bytes, std::size_t most, std::string& out) {
    Buffer buffer;
    buffer.append("before");
    const Inflated result = inflater.member(bytes, most, buffer, used);
    REQUIRE(buffer.view().substr(0, 6) == "before");
    out = std::string(buffer.view().substr(6));
    return result;
  };
  std::string out;
  CHECK(inflated(good, kMaxMember, out) == Inflated::kWhole);
  CHECK(out == text);
  CHECK(used == good.size());
  CHECK(inflated(good + "rubbish", kMaxMember, out) == Inflated::kWhole);
  CHECK(out == text);
  CHECK(used == good.size());
  CHECK(inflated(good, text.size(), out) == Inflated::kWhole);
  CHECK(inflated(good, text.size() - 1, out) == Inflated::kBad);
  CHECK(out.empty());
  CHECK(inflated(good.substr(0, good.size() / 2), kMaxMember, out) == Inflated::kCut);
  CHECK(out == text.substr(0, out.size()));
  // No other byte gives another text that is called whole.
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    const Inflated result = inflated(bad, kMaxMember, out);
    if (result == Inflated::kWhole) CHECK(out == text);
    if (at + 8 >= good.size()) CHECK(result == Inflated::kBad);
  }
}

TEST_CASE("a histogram's percentiles are right to a sixty-fourth") {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 100000; ++i) histogram.add(i);
  for (const double share : {0.01, 0.5, 0.9, 0.99}) {
    const auto exact = share * 100000;
    const auto found = static_cast<double>(histogram.percentile(share));
    CHECK(found > exact * (1 - 1.0 / 63));
    CHECK(found < exact * (1 + 1.0 / 63));
  }
  // Whatever comes first: there is room below and above.
  for (const std::uint64_t value :
       {std::uint64_t{1000}, std::uint64_t{0}, std::uint64_t{15}, std::uint64_t{16},
        std::uint64_t{31}, std::uint64_t{32}, ~std::uint64_t{0}}) {
    Histogram single;
    single.add(500);
    single.add(value, 1000);
    CHECK(single.count() == 1001);
    const auto found = static_cast<double>(single.percentile(0.5));
    CHECK(found >= static_cast<double>(value) * (1 - 1.0 / 63));
    CHECK(found <= static_cast<double>(value) * (1 + 1.0 / 63));
  }
}

TEST_CASE("statistics end with an error where there are more processes than they keep") {
  const auto add = [](Stats& stats, std::int64_t pid) {
    Event event;
    event.pid = pid;
    stats.add(event, 0, {0, 0});
  };
  Stats stats({.processes = 3});
  for (std::int64_t pid = 1; pid <= 3; ++pid) add(stats, pid);
  add(stats, 2);
  CHECK_THROWS_AS(add(stats, 4), std::runtime_error);

  Stats one({.processes = 3});
  Stats two({.processes = 3});
  for (std::int64_t pid = 1; pid <= 2; ++pid) add(one, pid);
  for (std::int64_t pid = 2; pid <= 4; ++pid) add(two, pid);
  CHECK_THROWS_AS(one.add(std::move(two)), std::runtime_error);
}
