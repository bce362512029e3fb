#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "reader/input/scan.hpp"
#include "reader/parse/parser.hpp"

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
    const JsonField& x = a.args[i];
    const JsonField& y = b.args[i];
    if (x.key != y.key || x.value != y.value || x.kind != y.kind || x.number != y.number ||
        x.key_escaped != y.key_escaped) {
      return false;
    }
  }
  return true;
}

std::int64_t argument(std::span<const JsonField> args, std::string_view key) {
  std::int64_t value = -999;
  for (const JsonField& field : args) {
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
  std::vector<JsonField> room;
  const std::span<const JsonField> found = brief.args;
  if (found.empty() || found[0].key != "hhash" || found[0].value != whole.args[0].value)
    return false;
  if (found.size() == 2 && argument(found, "ret") != argument(whole, "ret")) return false;
  brief.args = members_of(brief.args_text, room);
  return found.size() <= 2 && same(brief, whole);
}

// A line as the library writes it, of which tests change a part.
struct Line {
  std::string id = "7";
  std::string name = "read";
  std::string category = "POSIX";
  std::string pid = "5";
  std::string tid = "6";
  std::string ts = "1794820249958655";
  std::string dur = ",\"dur\":20";
  std::string host = "0123456789abcdef";
  std::string args = ",\"fhash\":\"f\",\"ret\":9";
  std::string end = "}}\n";
  [[nodiscard]] std::string text() const {
    return R"({"id":)" + id + R"(,"name":")" + name + R"(","cat":")" + category + R"(","pid":)" +
           pid + R"(,"tid":)" + tid + R"(,"ts":)" + ts + dur + R"(,"ph":"X","args":{"hhash":")" +
           host + '"' + args + end;
  }
};

// Whether the line is taken for a repeat. If it is, all that a repeat says is what the line says.
bool repeats(const Parser& parser, const Line& line, FileClock clock = {}) {
  const std::string text = line.text();
  const Padded padded(text);
  Repeat repeat;
  const char* stop = parser.repeat(padded.data(), padded.data() + text.size(), repeat);
  if (stop == nullptr) return false;
  Parser other(clock);
  Event event;
  CHECK(other.brief(padded.data(), padded.data() + text.size(), event) == stop);
  CHECK(repeat.alike != 0);
  CHECK(repeat.ts == event.ts);
  CHECK(repeat.dur == event.dur);
  CHECK((event.has & kHasDur) != 0);
  CHECK(event.is_event());
  if (repeat.has_result) CHECK(repeat.result == argument(event, "ret"));
  return true;
}

// The number that the brief path gives the line.
std::uint64_t alike(Parser& parser, const Line& line) {
  const std::string text = line.text();
  const Padded padded(text);
  Event event;
  REQUIRE(parser.brief(padded.data(), padded.data() + text.size(), event) != nullptr);
  CHECK(event.pid == std::stoll(line.pid));
  CHECK(event.tid == std::stoll(line.tid));
  CHECK(event.name.raw == line.name);
  CHECK(event.category.raw == line.category);
  return event.alike;
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
  std::size_t by_repeat = 0;
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
      // The same line once more is a repeat, and says the same.
      Repeat repeat;
      if (two.repeat(closed.data(), eol + 1, repeat) == nullptr) return;
      ++by_repeat;
      CHECK(repeat.alike == brief.alike);
      CHECK(repeat.ts == whole.ts);
      CHECK(repeat.dur == whole.dur);
      CHECK(repeat.has_result == (brief.args.size() == 2));
      if (repeat.has_result) CHECK(repeat.result == argument(whole, "ret"));
    });
  });
  CHECK(lines > 700);
  // All of ours, and of the releases that write the same shape.
  CHECK(by_fast > 300);
  CHECK(by_brief > 100);
  CHECK(by_repeat > 100);
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

TEST_CASE("a line repeats another if they agree in all but number, times and arguments") {
  Parser parser;
  CHECK_FALSE(repeats(parser, {}));
  const std::uint64_t number = alike(parser, {});
  REQUIRE(number != 0);
  CHECK(alike(parser, {}) == number);
  const Line like[] = {{},
                       {.id = "0"},
                       {.id = "1234567"},
                       {.id = "12345678"},
                       {.id = "123456789"},
                       {.id = "1234567890123456"},
                       {.id = "123456789012345678"},
                       {.ts = "1794820200000000"},
                       {.ts = "1794820299999999"},
                       {.dur = ",\"dur\":0"},
                       {.dur = ",\"dur\":1234567"},
                       {.dur = ",\"dur\":12345678"},
                       {.dur = ",\"dur\":123456789012"},
                       {.args = ""},
                       {.args = ",\"ret\":-1"},
                       {.args = ",\"ret\":0"},
                       {.args = ",\"ret\":12345678"},
                       {.args = ",\"ret\":123456789"},
                       {.args = ",\"ret\":05"},
                       {.args = ",\"ret\":-1,\"errno\":2"},
                       {.args = ",\"s\":\"" + std::string(1000, 'x') + "\",\"ret\":3"}};
  for (const Line& line : like) {
    CAPTURE(line.text());
    CHECK(repeats(parser, line));
  }
  const Line unlike[] = {{.id = ""},
                         {.id = "x"},
                         {.id = "07"},
                         {.id = "-7"},
                         {.id = "1234567890123456789"},
                         {.name = "rea"},
                         {.name = "reads"},
                         {.category = "POSIY"},
                         {.pid = "55"},
                         {.tid = "66"},
                         {.tid = "7"},
                         {.ts = "1794820349958655"},
                         {.ts = "179482024995865"},
                         {.ts = "17948202499586551"},
                         {.ts = "179482024995865x"},
                         {.ts = "1794820249958655.5"},
                         {.dur = ""},
                         {.dur = ",\"dur\":"},
                         {.dur = ",\"dur\":00"},
                         {.dur = ",\"dur\":-1"},
                         {.dur = ",\"dur\":1.5"},
                         {.dur = ",\"dur\":999999999999999999"},
                         {.host = "0123456789abcdee"},
                         {.host = "0123456789abcde"},
                         {.host = "0123456789abcdef0"},
                         {.args = "x"},
                         {.args = ",\"s\":\"gr\u00fcn\""},
                         {.end = "}}"},
                         {.end = "}\n"},
                         {.end = "}} \n"},
                         {.end = "\n"}};
  for (const Line& line : unlike) {
    CAPTURE(line.text());
    CHECK_FALSE(repeats(parser, line));
  }
  CHECK(repeats(parser, {}));
  // Numbers mean one block, and one host.
  const Line elsewhere{.host = "fedcba9876543210"};
  CHECK(alike(parser, elsewhere) != number);
  CHECK_FALSE(repeats(parser, {}));
  CHECK(repeats(parser, elsewhere));
  CHECK(alike(parser, {}) != number);
  parser.begin({});
  CHECK_FALSE(repeats(parser, {}));
  Parser another;
  CHECK(alike(another, {}) != alike(parser, {}));
}

TEST_CASE("a repeat: names of any length, and what cannot be kept of them") {
  for (const std::size_t size : {0U, 1U, 7U, 15U, 16U, 17U, 31U, 32U, 60U, 96U, 97U, 200U}) {
    CAPTURE(size);
    Parser parser;
    Line line{.name = std::string(size, 'n')};
    alike(parser, line);
    const bool kept = repeats(parser, line);
    CHECK(kept == (size <= 80));
    line.name += 'n';
    CHECK_FALSE(repeats(parser, line));
    const std::uint64_t longer = alike(parser, line);
    CHECK((longer == 0 || longer != alike(parser, {.name = std::string(size, 'n')})));
    line = {.name = std::string(size, 'n'), .tid = "7"};
    CHECK_FALSE(repeats(parser, line));
  }
  Parser parser;
  const std::string text = Line{.name = "a\\n"}.text();
  const Padded escaped(text);
  Event event;
  REQUIRE(parser.brief(escaped.data(), escaped.data() + text.size(), event) != nullptr);
  CHECK(event.alike == 0);
  CHECK_FALSE(repeats(parser, {.name = "a\\n"}));
  // The tracer's own records are never brief.
  CHECK(alike(parser, {.name = "start", .category = "dftracer"}) == 0);
  CHECK_FALSE(repeats(parser, {.name = "start", .category = "dftracer"}));
}

TEST_CASE("a repeat: the clock of the file") {
  for (const FileClock clock : {FileClock{0, 0}, FileClock{3, 0}, FileClock{6, 0}}) {
    CAPTURE(clock.digits);
    Parser parser(clock);
    const std::string text = Line().text();
    const Padded padded(text);
    Event event;
    // A time that does not fit is none of the fast paths'.
    const bool fits = clock.digits < 6;
    CHECK((parser.brief(padded.data(), padded.data() + text.size(), event) != nullptr) == fits);
    CHECK(repeats(parser, {}, clock) == fits);
  }
  // Some of the times that begin alike do not fit: none of them is a repeat.
  Parser parser;
  const Line last{.ts = "9223372036854775"};
  alike(parser, last);
  CHECK_FALSE(repeats(parser, last));
  CHECK_FALSE(repeats(parser, {.ts = "9223372036854776"}));
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
