#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "reader/parser.hpp"
#include "reader/scan.hpp"

namespace {

using namespace dft::reader;

// A line with the padding that the scanner asks for.
class Padded {
 public:
  explicit Padded(std::string_view text) : text_(text) { text_.append(kPadding, '\0'); }
  [[nodiscard]] const char* data() const { return text_.data(); }

 private:
  std::string text_;
};

bool same(const Event& a, const Event& b) {
  if (a.name.raw != b.name.raw || a.category.raw != b.category.raw) return false;
  if (a.name.escaped != b.name.escaped || a.category.escaped != b.category.escaped) return false;
  if (a.id != b.id || a.pid != b.pid || a.tid != b.tid || a.ts != b.ts || a.dur != b.dur)
    return false;
  if (a.has != b.has || a.phase != b.phase || a.args_text != b.args_text || a.line != b.line)
    return false;
  if (a.args.size() != b.args.size() || a.extra.size() != b.extra.size()) return false;
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    const Field& x = a.args[i];
    const Field& y = b.args[i];
    if (x.key != y.key || x.value != y.value || x.kind != y.kind || x.number != y.number ||
        x.key_escaped != y.key_escaped) {
      return false;
    }
  }
  return true;
}

std::int64_t argument(std::span<const Field> args, std::string_view key) {
  std::int64_t value = -999;
  for (const Field& field : args) {
    if (field.key == key) integer_of(field, value);
  }
  return value;
}

std::int64_t argument(const Event& event, std::string_view key) {
  return argument(event.args, key);
}

// What the brief path leaves out can be had afterwards, and what it gives is right.
bool completes_to(Event brief, const Event& whole) {
  if (!brief.brief) return same(brief, whole);
  std::vector<Field> room;
  const std::span<const Field> found = brief.args;
  if (found.empty() || found[0].key != "hhash" || found[0].value != whole.args[0].value)
    return false;
  if (found.size() == 2 && argument(found, "ret") != argument(whole, "ret")) return false;
  brief.args = members_of(brief.args_text, room);
  return found.size() <= 2 && same(brief, whole);
}

}  // namespace

TEST_CASE("the fast path reads what the general path reads, on every golden line") {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(DFTRACER_TEST_DATA)) {
    if (entry.path().extension() != ".py") paths.push_back(entry.path().string());
  }
  REQUIRE(paths.size() >= 8);
  std::size_t lines = 0;
  std::size_t by_fast = 0;
  std::size_t by_brief = 0;
  scan(paths, 1, [&](unsigned, Block& block) {
    const std::string path = block.file().path;
    const FileClock clock = block.file().clock;
    block.records([&](const Event& event, std::uint64_t) {
      ++lines;
      const Padded line(event.line);
      Parser one(clock);
      Parser two(clock);
      Event fast;
      Event general;
      const char* end = two.general(line.data(), general);
      REQUIRE(end == line.data() + event.line.size());
      if (one.fast(line.data(), fast) == nullptr) return;
      ++by_fast;
      CHECK_MESSAGE(same(fast, general), path << ": " << event.line);
      const Padded closed(std::string(event.line) + "\n");
      const char* eol = closed.data() + event.line.size();
      Event whole;
      Event brief;
      REQUIRE(one.fast(closed.data(), whole) == eol);
      REQUIRE(two.brief(closed.data(), eol + 1, brief) == eol);
      by_brief += brief.brief ? 1 : 0;
      CHECK_MESSAGE(completes_to(brief, whole), path << ": " << event.line);
    });
  });
  CHECK(lines > 700);
  // All of ours, and of the releases that write the same shape.
  CHECK(by_fast > 300);
  CHECK(by_brief > 100);
}

TEST_CASE("the brief path takes nothing for a result that is none") {
  const std::string head =
      R"({"id":7,"name":"read","cat":"POSIX","pid":5,"tid":6,"ts":100,"dur":20,"ph":"X","args":{)";
  const std::string host = R"("hhash":"0123456789abcdef")";
  const struct {
    std::string args;
    std::size_t given;  // 0: not brief
    std::int64_t ret;
  } cases[] = {
      {host, 1, -999},
      {host + R"(,"ret":9)", 2, 9},
      {host + R"(,"ret":-1)", 2, -1},
      {host + R"(,"ret":1,"ret":2)", 2, 2},
      {host + R"(,"ret":-1,"errno":2)", 1, -999},
      {host + R"(,"ret":1234567890123456789)", 1, -999},
      {host + R"(,"ret":1.5)", 1, -999},
      {host + R"(,"ret":05)", 1, -999},
      {host + R"(,"offset":5)", 1, -999},
      {host + R"(,"x\",\"ret":5)", 1, -999},
      {host + R"(,"x":",\"ret\":5")", 1, -999},
      {host + R"(,"x":{"ret":5}})", 1, -999},
      {R"("hhash":"0123456789abcde\"","ret":9)", 0, 9},
      {R"("hhash":"0123","ret":9)", 0, 9},
      {R"("hhash":12,"ret":9)", 0, 9},
      {R"("ret":9)", 0, 9},
      {"", 0, -999},
  };
  for (const auto& one : cases) {
    CAPTURE(one.args);
    const std::string line = head + one.args + "}}\n";
    const Padded text(line);
    Parser parser;
    Event event;
    REQUIRE(parser.brief(text.data(), text.data() + line.size(), event) != nullptr);
    CHECK(event.brief == (one.given != 0));
    if (one.given != 0) CHECK(event.args.size() == one.given);
    CHECK(argument(event, "ret") == one.ret);
  }
  // Half a line: not even the brief path can say where it ends.
  const Padded half(head + host + R"(,"ret":9)");
  Parser parser;
  Event event;
  CHECK(parser.brief(half.data(), half.data() + head.size() + host.size() + 8, event) == nullptr);
}

TEST_CASE("a process and a thread are those of the line, whatever the line before said") {
  Parser parser;
  const std::pair<const char*, const char*> numbers[] = {
      {"5", "6"},       {"5", "6"},
      {"5", "67"},      {"5", "6"},
      {"55", "6"},      {"123456", "78"},
      {"123456", "78"}, {"123456", "7"},
      {"12", "3"},      {"123456789012", "123456789012"},
      {"5", "6"},       {"123456", "789"}};
  for (const auto& [pid, tid] : numbers) {
    const Padded text(R"({"id":7,"name":"n","cat":"c","pid":)" + std::string(pid) + R"(,"tid":)" +
                      tid + R"(,"ts":100,"dur":20,"ph":"X","args":{}})");
    Event event;
    REQUIRE(parser.fast(text.data(), event) != nullptr);
    CHECK(event.pid == std::stoll(pid));
    CHECK(event.tid == std::stoll(tid));
  }
}

TEST_CASE("dialects mean the same event") {
  const char* lines[] = {
      R"({"id":7,"name":"read","cat":"POSIX","pid":5,"tid":6,"ts":100,"dur":20,"ph":"X","args":{"ret":9,"epoch":3}})",
      R"({"id":7,"name":"read","cat":"POSIX","type":3,"pid":5,"tid":6,"ts":100,"dur":20,"ph":1,"args":{"ret":9,"epoch":3}})",
      R"({"id":"7","name":"read","cat":"POSIX","pid":"5","tid":"6","ts":"100","dur":"20","ph":"X","args":{"ret":"9","epoch":"3"}})",
      R"({ "ph" : "X", "name" : "read", "cat" : "POSIX", "args" : { "epoch" : 3, "ret" : 9 }, "tid" : 6, "pid" : 5, "id" : 7, "dur" : 20.0, "ts" : 100.0009 })",
      R"({"id":7,"name":"read","cat":"POSIX","pid":5,"tid":6,"ts":1e2,"dur":2E1,"ph":"1","args":{"ret":9,"epoch":3}})",
  };
  for (const char* line : lines) {
    const Padded text(line);
    Parser parser;
    Event event;
    CHECK(parser.general(text.data(), event) == text.data() + std::strlen(line));
    CHECK(event.name.raw == "read");
    CHECK(event.category.raw == "POSIX");
    CHECK(event.id == 7);
    CHECK(event.pid == 5);
    CHECK(event.tid == 6);
    CHECK(event.ts / 1000 == 100);
    CHECK(event.dur == 20000);
    CHECK(event.phase == 'X');
    CHECK(argument(event, "ret") == 9);
    CHECK(argument(event, "epoch") == 3);
  }
}

TEST_CASE("numeric phases") {
  const char* phases[] = {"1", "2", "3", "4"};
  const char letters[] = {'X', 'C', 'A', 'M'};
  for (int i = 0; i < 4; ++i) {
    const Padded text(std::string(R"({"name":"n","ph":)") + phases[i] + "}");
    Parser parser;
    Event event;
    REQUIRE(parser.general(text.data(), event) != nullptr);
    CHECK(event.phase == letters[i]);
  }
}

TEST_CASE("what is not JSON is not read") {
  const char* bad[] = {
      "",
      "{",
      "{}}x" + 3,
      R"({"a")",
      R"({"a":})",
      R"({"a":1,})",
      R"({"a":01})",
      R"({"a":1.})",
      R"({"a":+1})",
      R"({"a":NaN})",
      R"({"a":tru})",
      R"({"a":"\x"})",
      R"({"a":"\u12g4"})",
      "{\"a\":\"tab\there\"}",
      R"({"a":[1,2})",
      R"({"a":{"b":1})",
      R"({"a" 1})",
      R"({a:1})",
      R"({"a":1e})",
      R"({"a":"b)",
      R"({,"a":1})",
      R"({"a":1 "b":2})",
      R"({"a":-})",
  };
  for (const char* line : bad) {
    const Padded text(line);
    Parser parser;
    Event event;
    CAPTURE(line);
    CHECK(parser.general(text.data(), event) == nullptr);
    CHECK(parser.fast(text.data(), event) == nullptr);
  }
}

TEST_CASE("deep nesting is refused, not followed") {
  std::string deep = R"({"a":)";
  deep += std::string(100000, '[');
  const Padded text(deep);
  Parser parser;
  Event event;
  CHECK(parser.general(text.data(), event) == nullptr);
}

TEST_CASE("times: fractions, bases, units, and what does not fit") {
  const Padded text(R"({"name":"n","ph":"X","ts":3941418456156.068,"dur":75213.843})");
  Event event;
  Parser torch({3, 1790857026000000000});
  REQUIRE(torch.general(text.data(), event) != nullptr);
  CHECK(event.ts == 1790857026000000000 + 3941418456156068);
  CHECK(event.dur == 75213843);
  Parser nanoseconds({0, 0});
  REQUIRE(nanoseconds.general(text.data(), event) != nullptr);
  CHECK(event.dur == 75213);
  const Padded large(
      R"({"name":"n","ph":"X","ts":99999999999999999999,"dur":9223372036854775807})");
  Parser parser;
  REQUIRE(parser.general(large.data(), event) != nullptr);
  CHECK((event.has & (kHasTs | kHasDur)) == 0);
  CHECK(event.extra.size() == 2);  // kept as they are written
}

TEST_CASE("text: escapes, surrogates and bytes that are no UTF-8") {
  std::string scratch;
  CHECK(plain_text(R"(a\"\\\/\n\u00e9)", true, true, scratch) == "a\"\\/\n\u00e9");
  CHECK(plain_text(R"(\ud83d\ude00)", true, true, scratch) == "\U0001F600");
  CHECK(plain_text(R"(\ud83dx)", true, true, scratch) == "\uFFFDx");
  CHECK(plain_text("a\xffz", false, false, scratch) == "a\uFFFDz");
  CHECK(is_utf8("gr\u00fc\u00dfe"));
  CHECK_FALSE(is_utf8("\xc3"));
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));
  CHECK_FALSE(is_ascii(std::string(100, 'a') + "\xc3\xa9"));
}
