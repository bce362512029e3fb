#include "session/preamble.hpp"

#include <time.h>

#include <random>

#include "format/hash.hpp"
#include "support/fixture.hpp"
#include "support/strict_json.hpp"

using dft::session::Preamble;
using dft::session::ProcessFacts;

namespace {

std::string hex(std::string_view text) {
  char digits[17] = {};
  dft::format::write_hex16(digits, dft::format::hash16(text));
  return digits;
}

struct Bench {
  Bench() {
    facts.command.append("prog;a\"b;\xff");
    std::strcpy(facts.exec, "prog");
    std::strcpy(facts.label, "prog");
    std::strcpy(owner.host, "tuolumne1004");
    owner.pid = 4242;
    what = {
        &facts, &owner, 0xf9ff883caaf21863, 0xaa, 0xbb, 1794766880123456789, 1, 300, 3, -1, true,
        true,   false};
  }
  std::string text() {
    dft::sink::MmapBuffer out;
    lines = dft::session::write_preamble(what, out);
    return std::string(out.view());
  }
  ProcessFacts facts{};
  dft::buffer::Owner owner{};
  Preamble what{};
  std::uint64_t lines = 0;
};

std::string string_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  REQUIRE_MESSAGE(at != text.npos, text);
  return text.substr(at + key.size(), text.find('"', at + key.size()) - at - key.size());
}

}  // namespace

TEST_CASE("the date is strftime's, for every time") {
  std::mt19937_64 random(17);
  std::vector<std::int64_t> times = {0,          1,          86399,      86400,      951782399,
                                     951782400,  951868799,  951868800,  1078012800, 1709164800,
                                     1709251199, 1709251200, 1735689599, 1735689600, 1794766880,
                                     4107542399, 4107542400, 4102444800, 2147483647, 2147483648};
  for (int i = 0; i < 400; ++i) {
    times.push_back(static_cast<std::int64_t>(random() % 18000000000u));  // to the year 2540
  }
  Bench bench;
  for (const std::int64_t seconds : times) {
    for (const long zone : {0L, 3600L, -8 * 3600L, 19800L}) {
      if (seconds < 100000 && zone < 0) continue;
      bench.what.start_ns = static_cast<std::uint64_t>(seconds) * 1000000000u + 999999999u;
      bench.facts.zone_offset_seconds = zone;
      const time_t local = seconds + zone;
      tm parts{};
      REQUIRE(::gmtime_r(&local, &parts) != nullptr);
      char wanted[64];
      ::strftime(wanted, sizeof wanted, "%a %b %e %H:%M:%S %Y", &parts);
      REQUIRE(string_after(bench.text(), "\"date\":\"") == wanted);
    }
  }
}

TEST_CASE("a date before 1970 by its zone alone is right too") {
  Bench bench;
  bench.what.start_ns = 3600 * std::uint64_t{1000000000};
  bench.facts.zone_offset_seconds = -7200;
  CHECK(string_after(bench.text(), "\"date\":\"") == "Wed Dec 31 23:00:00 1969");
}

TEST_CASE("the opening lines are those of existing traces") {
  Bench bench;
  const std::string text = bench.text();
  const auto lines = fixture::lines_of(text);
  REQUIRE(lines.size() == 8);
  CHECK(bench.lines == 7);  // the bracket is no record
  CHECK(lines[0] == "[");
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK_MESSAGE(json::valid(lines[i]), lines[i]);
  CHECK(lines[1] ==
        R"({"id":1,"name":"HH","cat":"dftracer","pid":4242,"tid":4242,"ph":"M","args":)"
        R"({"hhash":"f9ff883caaf21863","name":"tuolumne1004","value":"f9ff883caaf21863"}})");
  CHECK(lines[2] ==
        R"({"id":2,"name":"thread_name","cat":"dftracer","pid":4242,"tid":4242,"ph":"M","args":)"
        R"({"hhash":"f9ff883caaf21863","name":"4242","value":"thread_name"}})");
  char cwd[4096];
  REQUIRE(::getcwd(cwd, sizeof cwd) != nullptr);
  CHECK(lines[3].find("\"id\":3,\"name\":\"FH\"") != std::string::npos);
  CHECK(lines[3].find("\"value\":\"" + hex(cwd) + "\"") != std::string::npos);
  CHECK(lines[4].find("\"id\":4,\"name\":\"SH\"") != std::string::npos);
  CHECK(lines[4].find("\"name\":\"prog;a\\\"b;\\uefff\"") != std::string::npos);
  CHECK(lines[4].find("\"value\":\"" + hex("prog;a\"b;\xff") + "\"") != std::string::npos);
  CHECK(lines[5].find("\"id\":5,\"name\":\"SH\"") != std::string::npos);
  const std::string& start = lines[6];
  CHECK(start.starts_with(
      R"({"id":6,"name":"start","cat":"dftracer","pid":4242,"tid":4242,"ts":1794766880123456,)"
      R"("dur":0,"ph":"X","args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"ppid":)"));
  CHECK(string_after(start, "\"cmd_hash\":\"") == hex("prog;a\"b;\xff"));
  CHECK(string_after(start, "\"exec_hash\":\"") == hex("prog"));
  CHECK(string_after(start, "\"version\":\"") == std::string("v") + DFTRACER_VERSION);
  CHECK(string_after(start, "\"cwd\":\"") == hex(cwd));
  CHECK(start.ends_with(R"(,"run":"00000000000000aa","proc":"00000000000000bb"}})"));
  CHECK(lines[7].find("\"id\":300,\"name\":\"process_name\"") != std::string::npos);
}

TEST_CASE("without details there is what readers need, and no more") {
  Bench bench;
  bench.what.details = false;
  bench.what.opens_file = false;
  const auto lines = fixture::lines_of(bench.text());
  REQUIRE(lines.size() == 4);
  CHECK(bench.lines == 4);
  CHECK(lines[0].find("\"name\":\"HH\"") != std::string::npos);
  CHECK(lines[2].find("cmd_hash") == std::string::npos);
  CHECK(lines[2].find("\"run\":\"00000000000000aa\"") != std::string::npos);
}

TEST_CASE("a rank, the affinity and another unit of time have lines of their own") {
  Bench bench;
  bench.what.rank = 12;
  bench.what.affinity = true;
  bench.what.time_divisor_log10 = 6;
  const std::string text = bench.text();
  CHECK(bench.lines == fixture::lines_of(text).size() - 1);
  for (const std::string& line : fixture::lines_of(text)) {
    CHECK_MESSAGE((line == "[" || json::valid(line)), line);
  }
  CHECK(fixture::line_with(text, "\"name\":\"rank\"").find("\"value\":\"12\"") !=
        std::string::npos);
  CHECK(text.find("\"name\":\"rank 12\",\"value\":\"process_name\"") != std::string::npos);
  CHECK(text.find("\"name\":\"core_affinity\",\"value\":\"[") != std::string::npos);
  CHECK(text.find("\"name\":\"time_metric\",\"value\":\"MS\"") != std::string::npos);
  CHECK(text.find("\"ts\":1794766880123,") != std::string::npos);
}

TEST_CASE("hostile facts are only text") {
  Bench bench;
  std::memset(bench.owner.host, '"', sizeof bench.owner.host - 1);
  std::memset(bench.facts.label, '\n', sizeof bench.facts.label - 1);
  std::memset(bench.facts.exec, '\\', sizeof bench.facts.exec - 1);
  bench.facts.command.append(std::string(1 << 20, '\0'));
  const auto lines = fixture::lines_of(bench.text());
  CHECK(bench.lines == lines.size() - 1);
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK(json::valid(lines[i]));
}

TEST_CASE("the facts of this process") {
  ProcessFacts facts{};
  dft::session::gather(facts, true);
  const std::string command(facts.command.view());
  CHECK(command.find('\0') == command.npos);
  CHECK(command.find("dftracer_unit") != command.npos);
  CHECK(std::string(facts.label) == "dftracer_unit");
  CHECK(std::string(facts.exec).size() > 0);
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  CHECK(facts.zone_offset_seconds == local.tm_gmtoff);
}
