#include "sink/encode.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "support/fixture.hpp"
#include "support/strict_json.hpp"

using dft::record::ArgType;
using dft::record::Head;
using dft::record::Kind;
using dft::sink::Encoder;
using dft::sink::MmapBuffer;
using fixture::make_arg;
using fixture::make_bytes;
using fixture::make_call;
using fixture::make_name;
using fixture::make_record;
using Result = Encoder::Result;

namespace {

constexpr std::uint8_t kGiven = dft::record::kTimesGiven;

// An encoder with names 1 to 6, a clock whose ticks are nanoseconds of the epoch, and its output.
struct Bench {
  explicit Bench(std::uint32_t divisor = 3, bool thread_ids = true)
      : line(std::make_unique<dft::record::ClockMap>()),
        encoder({4242, 0xf9ff883caaf21863, divisor, thread_ids}, *line, next_id) {
    line->count = 1;
    line->knots[0] = {0, 0, std::uint64_t{1} << 32};
    const std::string names = make_name(1, "work") + make_name(2, "APP") + make_name(3, "key") +
                              make_name(4, "hhash") + make_name(5, "p_idx") +
                              make_name(6, "level") + make_name(7, "odd\"\xff");
    REQUIRE(encoder.names().read(reinterpret_cast<const std::byte*>(names.data()), names.size()));
  }
  Result encode(const std::string& bytes, std::uint32_t thread = 77) {
    const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
    return encoder.encode(from, from + bytes.size(), thread, out);
  }
  // The line of one record, without the newline.
  std::string line_of(const std::string& bytes, std::uint32_t thread = 77) {
    out.resize(0);
    REQUIRE(encode(bytes, thread) == Result::kDone);
    std::string text(out.view());
    REQUIRE(text.ends_with('\n'));
    text.pop_back();
    CHECK(text.find('\n') == text.npos);
    CHECK_MESSAGE(json::valid(text), text);
    return text;
  }
  // The arguments as a span with these has them.
  std::string args_of(const std::string& args) {
    const std::string text =
        line_of(make_record({0, Kind::kSpan, kGiven, 1, 1, 2, 9, 0, 10, 5}, args));
    const std::size_t at = text.find("\"level\":1") + 9;
    return text.substr(at, text.size() - 2 - at);
  }

  std::unique_ptr<dft::record::ClockMap> line;
  std::atomic<std::uint64_t> next_id{500};
  Encoder encoder;
  MmapBuffer out;
};

std::uint64_t bits(double value) {
  std::uint64_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

}  // namespace

TEST_CASE("each kind of record gives one line") {
  Bench bench;
  CHECK(bench.line_of(make_record({0, Kind::kSpan, 0, 2, 1, 2, 9, 8, 5000000, 2500999})) ==
        R"({"id":9,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"dur":2500,"ph":"X",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":8,"level":2}})");
  CHECK(bench.line_of(make_record({0, Kind::kInstant, 0, 1, 1, 2, 10, 0, 5000000, 99},
                                  make_arg(3, ArgType::kInt, 7))) ==
        R"({"id":10,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"ph":"i",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"key":7}})");
  CHECK(bench.line_of(make_record({0, Kind::kCounter, 0, 1, 1, 2, 11, 3, 5000000, 0},
                                  make_arg(3, ArgType::kFloat, bits(2.5)))) ==
        R"({"id":11,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"ph":"C",)"
        R"("args":{"key":2.5}})");
  CHECK(bench.line_of(make_record({0, Kind::kCounter, 0, 1, 1, 2, 11, 0, 5000000, 0})) ==
        R"({"id":11,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"ph":"C","args":{}})");
  CHECK(bench.line_of(make_record({0, Kind::kMetadata, 0, 0, 3, 0, 12, 0, 0, 0},
                                  make_bytes(0, ArgType::kString, "va\"lue"))) ==
        R"({"id":12,"name":"CM","cat":"dftracer","pid":4242,"tid":77,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"key","value":"va\"lue"}})");
  CHECK(bench.line_of(make_record({0, Kind::kThread, 0, 0, 0, 0, 0, 0, 0, 0},
                                  make_bytes(0, ArgType::kString, "io\n"))) ==
        R"({"id":500,"name":"thread_name","cat":"dftracer","pid":4242,"tid":77,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"io\n","value":"thread_name"}})");
  CHECK(bench.line_of(make_record({0, Kind::kFile, 0, 0, 0, 0, 0xabc, 0, 0, 0},
                                  make_bytes(0, ArgType::kString, "/f"))) ==
        R"({"id":501,"name":"FH","cat":"dftracer","pid":4242,"tid":77,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"/f","value":"0000000000000abc"}})");
  CHECK(bench.line_of(make_record({0, Kind::kString, 0, 0, 0, 0, 0xdef, 0, 0, 0},
                                  make_bytes(0, ArgType::kString, "s"))) ==
        R"({"id":502,"name":"SH","cat":"dftracer","pid":4242,"tid":77,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"s","value":"0000000000000def"}})");
  CHECK(bench.encoder.lines() == 8);
}

TEST_CASE("a call's shape determines its words") {
  Bench bench;
  const auto add = [&](std::uint32_t id, std::string_view text) {
    const std::string name = make_name(id, text);
    REQUIRE(
        bench.encoder.names().read(reinterpret_cast<const std::byte*>(name.data()), name.size()));
  };
  std::uint64_t start = 0;
  const auto call = [&](std::uint32_t shape, std::vector<std::uint64_t> words,
                        std::uint32_t thread = 77) {
    start += 1000000;
    words.insert(words.begin(), 7);
    const std::string text = bench.line_of(
        make_call({0, Kind::kCall, dft::record::kNested, 3, shape, 2999, 9, start}, words), thread);
    const std::size_t from = text.find("\"name\"");
    const std::size_t ts = text.find("\"ts\"");
    const std::size_t dur = text.find("\"dur\"");
    return text.substr(from, ts - from) + text.substr(dur);
  };
  const auto line = [](std::string_view name, std::string_view category, std::string_view args,
                       int thread = 77) {
    return std::string("\"name\":\"") + std::string(name) + "\",\"cat\":\"" +
           std::string(category) + "\",\"pid\":4242,\"tid\":" + std::to_string(thread) +
           R"(,"dur":2,"ph":"X","args":{"hhash":"f9ff883caaf21863","p_idx":7,"level":3)" +
           std::string(args) + "}}";
  };
  CHECK(call(8, {1, 2}) == line("?", "?", ""));     // unknown shape
  CHECK(call(1, {1, 2}) == line("work", "?", ""));  // not a shape
  add(8, "work|POSIX|#fhash|+count|+ret");
  const std::string expected =
      line("work", "POSIX", R"(,"fhash":"00000000000000ab","count":4096,"ret":-1)");
  CHECK(call(8, {0xab, 4096, ~std::uint64_t{0}}) == expected);
  CHECK(call(8, {0xab, 4096, ~std::uint64_t{0}}) == expected);
  CHECK(call(8, {0xac, 0, 1}) ==
        line("work", "POSIX", R"(,"fhash":"00000000000000ac","count":0,"ret":1)"));
  CHECK(call(8, {0, 0, 0}, 78) ==
        line("work", "POSIX", R"(,"fhash":"0000000000000000","count":0,"ret":0)", 78));
  CHECK(call(8, {0xab}) == line("work", "POSIX", R"(,"fhash":"00000000000000ab")"));
  CHECK(call(8, {0xab, 1, 2, 3}) ==
        line("work", "POSIX", R"(,"fhash":"00000000000000ab","count":1,"ret":2)"));
  const std::string longest(300, 'n');
  add(9, longest + "|POSIX|#fhash|+count");
  CHECK(call(9, {1, 2, 3}) == line(longest, "POSIX", R"(,"fhash":"0000000000000001","count":2)"));
  add(8, "work|STDIO|+size");
  CHECK(call(8, {5}) == line("work", "STDIO", R"(,"size":5)"));
  const std::string outermost = bench.line_of(make_call({0, Kind::kCall, 0, 1, 8, 0, 9, 1}, {6}));
  CHECK(outermost.find(R"("p_idx":-1,"level":1,"size":6}})") != std::string::npos);
}

TEST_CASE("times are in the trace's unit, rounded down so that spans still nest") {
  const auto times = [](std::uint32_t divisor, std::uint8_t flags) {
    Bench bench(divisor);
    const std::string text =
        bench.line_of(make_record({0, Kind::kSpan, flags, 1, 1, 2, 9, 0, 1999999999, 2000000002}));
    return std::pair{fixture::number_after(text, "\"ts\":"),
                     fixture::number_after(text, "\"dur\":")};
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(times(0, 0) == Pair{1999999999, 2000000002});
  CHECK(times(3, 0) == Pair{1999999, 4000000 - 1999999});
  CHECK(times(6, 0) == Pair{1999, 4000 - 1999});
  CHECK(times(9, 0) == Pair{1, 3});
  CHECK(times(3, kGiven) == Pair{1999999999, 2000000002});
}

TEST_CASE("times that overflow give no negative duration") {
  Bench bench;
  const std::string text = bench.line_of(
      make_record({0, Kind::kSpan, kGiven, 1, 1, 2, 9, 0, ~std::uint64_t{0}, ~std::uint64_t{0}}));
  CHECK(text.find("\"ts\":18446744073709551615,\"dur\":0,") != text.npos);
}

TEST_CASE("without thread ids every event is on the process") {
  Bench bench(3, false);
  CHECK(bench.line_of(fixture::make_span(9), 77).find("\"pid\":4242,\"tid\":4242,") !=
        std::string::npos);
}

TEST_CASE("arguments keep their types") {
  Bench bench;
  const auto one = [&](ArgType type, std::uint64_t word) {
    return bench.args_of(make_arg(3, type, word));
  };
  CHECK(one(ArgType::kInt, 0) == ",\"key\":0");
  CHECK(one(ArgType::kInt, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::min())) ==
        ",\"key\":-9223372036854775808");
  CHECK(one(ArgType::kInt, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) ==
        ",\"key\":9223372036854775807");
  CHECK(one(ArgType::kUint, ~std::uint64_t{0}) == ",\"key\":18446744073709551615");
  CHECK(one(ArgType::kBool, 1) == ",\"key\":true");
  CHECK(one(ArgType::kBool, 0) == ",\"key\":false");
  CHECK(one(ArgType::kHash, 0xabcdef) == ",\"key\":\"0000000000abcdef\"");
  CHECK(one(static_cast<ArgType>(0), 5) == ",\"key\":null");
  CHECK(one(static_cast<ArgType>(200), 5) == ",\"key\":null");
  CHECK(bench.args_of(make_bytes(3, ArgType::kString, "")) == ",\"key\":\"\"");
  CHECK(bench.args_of(make_bytes(3, ArgType::kString, "a\xff\n")) == ",\"key\":\"a\\uefff\\n\"");
  CHECK(bench.args_of(make_arg(7, ArgType::kInt, 1)) == ",\"odd\\\"\\uefff\":1");
  CHECK(bench.args_of(make_arg(99, ArgType::kInt, 1)) == ",\"?\":1");
}

TEST_CASE("null, JSON and durations are arguments as well") {
  Bench bench;
  CHECK(bench.args_of(make_arg(3, ArgType::kNull, 0)) == ",\"key\":null");
  const auto json_of = [&](std::string_view text) {
    return bench.args_of(make_bytes(3, ArgType::kJson, text));
  };
  CHECK(json_of(R"({"a":[1,2.5,null]})") == R"(,"key":{"a":[1,2.5,null]})");
  // Invalid JSON is shown as a string.
  CHECK(json_of("{\"a\":1}}\n{") == R"(,"key":"{\"a\":1}}\n{")");
  // Ticks are nanoseconds here: 2,500 of them, from 1,999 to 4,499, cross a microsecond 3 times.
  const std::string line = bench.line_of(make_record({0, Kind::kSpan, 0, 1, 1, 2, 9, 0, 1999, 9000},
                                                     make_arg(3, ArgType::kTicks, 2500)));
  CHECK_MESSAGE(line.find("\"key\":3}") != line.npos, line);
}

TEST_CASE("floats round-trip, and look like floats") {
  Bench bench;
  const auto shown = [&](double value) {
    return bench.args_of(make_arg(3, ArgType::kFloat, bits(value))).substr(7);
  };
  CHECK(shown(0.0) == "0.0");
  CHECK(shown(-0.0) == "-0.0");
  CHECK(shown(1.0) == "1.0");
  CHECK(shown(-3.0) == "-3.0");
  CHECK(shown(0.1) == "0.1");
  CHECK(shown(std::nan("")) == "null");
  CHECK(shown(std::numeric_limits<double>::infinity()) == "null");
  CHECK(shown(-std::numeric_limits<double>::infinity()) == "null");
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    double value;
    const std::uint64_t word =
        i < 2000 ? random() : bits(static_cast<double>(random() >> (i % 60)));
    std::memcpy(&value, &word, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = shown(value);
    REQUIRE_MESSAGE(bits(std::strtod(text.c_str(), nullptr)) == word, text);
    REQUIRE((text.find('.') != text.npos || text.find('e') != text.npos));
  }
}

TEST_CASE("an argument cannot shadow the reserved ones") {
  Bench bench;
  CHECK(bench.args_of(make_arg(4, ArgType::kInt, 1) + make_arg(5, ArgType::kInt, 2) +
                      make_arg(6, ArgType::kInt, 3)) == ",\"hhash_\":1,\"p_idx_\":2,\"level_\":3");
  CHECK(bench.args_of(make_bytes(0, ArgType::kInlineKey, "hhash") +
                      make_arg(0, ArgType::kInt, 1)) == ",\"hhash_\":1");
}

TEST_CASE("the last value of a key wins") {
  Bench bench;
  CHECK(bench.args_of(make_arg(3, ArgType::kInt, 1) + make_arg(1, ArgType::kInt, 2) +
                      make_bytes(3, ArgType::kString, "last")) == ",\"work\":2,\"key\":\"last\"");
  std::string many;
  for (std::uint64_t i = 0; i < 1000; ++i) many += make_arg(3, ArgType::kInt, i);
  CHECK(bench.args_of(many) == ",\"key\":999");
}

TEST_CASE("names and keys beyond the table's limits are stored in the record") {
  Bench bench;
  const std::string args = make_bytes(0, ArgType::kString, "na\"me") +
                           make_bytes(0, ArgType::kString, "cat\n") +
                           make_bytes(0, ArgType::kInlineKey, "a key") +
                           make_arg(0, ArgType::kInt, 5) + make_arg(3, ArgType::kInt, 6);
  constexpr std::uint8_t kBoth = kGiven | dft::record::kInlineName | dft::record::kInlineCategory;
  CHECK(bench.line_of(make_record({0, Kind::kSpan, kBoth, 1, 0, 0, 9, 0, 10, 5}, args)) ==
        R"({"id":9,"name":"na\"me","cat":"cat\n","pid":4242,"tid":77,"ts":10,"dur":5,"ph":"X",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"a key":5,"key":6}})");
  constexpr std::uint8_t kCategory = kGiven | dft::record::kInlineCategory;
  const std::string text = bench.line_of(make_record(
      {0, Kind::kInstant, kCategory, 1, 1, 0, 9, 0, 10, 0}, make_bytes(0, ArgType::kString, "c")));
  CHECK(text.find("\"name\":\"work\",\"cat\":\"c\"") != text.npos);
  CHECK(bench.line_of(make_record(
            {0, Kind::kMetadata, dft::record::kInlineName, 0, 0, 0, 9, 0, 0, 0},
            make_bytes(0, ArgType::kString, "k\"") + make_bytes(0, ArgType::kString, "v\\"))) ==
        R"({"id":9,"name":"CM","cat":"dftracer","pid":4242,"tid":77,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"k\"","value":"v\\"}})");
}

TEST_CASE("a string of a megabyte of the worst bytes is one valid line") {
  Bench bench;
  const std::string worst(1 << 20, '\x01');
  const std::string text = bench.args_of(make_bytes(3, ArgType::kString, worst));
  CHECK(text.size() == 6 * worst.size() + std::string_view(",\"key\":\"\"").size());
}

TEST_CASE("crossing spans are put on lanes beside their thread, without a record for the lane") {
  Bench bench;
  const auto crossing = [](std::uint64_t id, std::uint64_t start, std::uint64_t duration) {
    return make_record({0, Kind::kSpan, static_cast<std::uint8_t>(kGiven | dft::record::kOwnLane),
                        1, 1, 2, id, 0, start, duration});
  };
  REQUIRE(bench.encode(crossing(1, 10, 10) + crossing(2, 15, 10) + crossing(3, 20, 3) +
                       crossing(4, 19, 2) + fixture::make_span(5)) == Result::kDone);
  REQUIRE(bench.encode(crossing(6, 100, 1), 78) == Result::kDone);
  const std::string text(bench.out.view());
  for (const std::string& line : fixture::lines_of(text)) CHECK_MESSAGE(json::valid(line), line);
  const auto lane = [&](int id) {
    const std::string line =
        fixture::line_with(text, "{\"id\":" + std::to_string(id) + ",\"name\":\"work\"");
    return fixture::number_after(line, "\"tid\":");
  };
  constexpr std::uint64_t kLane = 1u << 22;
  CHECK(lane(1) == 77 + kLane);
  CHECK(lane(2) == 77 + 2 * kLane);  // begins before 1 ends
  CHECK(lane(3) == 77 + kLane);      // begins as 1 ends
  CHECK(lane(4) == 77 + 3 * kLane);
  CHECK(lane(5) == 77);  // back on the thread itself
  CHECK(lane(6) == 78 + kLane);
  CHECK(fixture::lines_of(text).size() == 6);
  CHECK(bench.encoder.lines() == 6);
}

TEST_CASE("more crossing spans than lanes share the last one") {
  Bench bench;
  std::string all;
  for (std::uint64_t id = 1; id <= 1100; ++id) {
    all += make_record({0, Kind::kSpan, static_cast<std::uint8_t>(kGiven | dft::record::kOwnLane),
                        1, 1, 2, id, 0, 10, 1000});
  }
  REQUIRE(bench.encode(all) == Result::kDone);
  const auto lines = fixture::lines_of(std::string(bench.out.view()));
  CHECK(lines.size() == 1100);
  CHECK(fixture::number_after(lines.back(), "\"tid\":") == 77 + (std::uint64_t{959} << 22));
}

TEST_CASE("another tracer's event is shown on the thread it names, rounded down") {
  constexpr std::uint8_t kForeign = dft::record::kForeign;
  const auto on = [](std::uint64_t thread) { return make_arg(0, ArgType::kUint, thread); };
  Bench bench;
  const Head head{0, Kind::kSpan, kForeign, 3, 1, 2, 9, 4, 5'000'999, 1'002};
  REQUIRE(bench.encode(make_record(head, on(88) + make_arg(3, ArgType::kInt, 6)) +
                       fixture::make_span(5)) == Result::kDone);
  Head name{};
  name.kind = Kind::kThread;
  name.flags = kForeign;
  name.id = 10;
  REQUIRE(bench.encode(make_record(name, on(88) + make_bytes(0, ArgType::kString, "beside"))) ==
          Result::kDone);
  const auto lines = fixture::lines_of(std::string(bench.out.view()));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        R"({"id":9,"name":"work","cat":"APP","pid":4242,"tid":88,"ts":5000,"dur":2,"ph":"X",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":4,"level":3,"key":6}})");
  CHECK(fixture::number_after(lines[1], "\"tid\":") == 77);
  CHECK(lines[2] ==
        R"({"id":10,"name":"thread_name","cat":"dftracer","pid":4242,"tid":88,"ph":"M",)"
        R"("args":{"hhash":"f9ff883caaf21863","name":"beside","value":"thread_name"}})");
  for (const std::string& bad :
       {std::string(), on(0), on(std::uint64_t{1} << 32), make_arg(0, ArgType::kInt, 5)}) {
    Bench other;
    CHECK(other.encode(make_record(head, bad)) == Result::kBadRecord);
    CHECK(other.out.view().empty());
  }
}

TEST_CASE("an end of a flow is a span with members after its arguments") {
  const auto flow = [](std::uint32_t ends) { return make_arg(ends, ArgType::kFlow, 0xfedc); };
  const Head head{0, Kind::kFlow, 0, 2, 1, 2, 9, 8, 5000000, 2500999};
  const std::string span =
      R"({"id":9,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"dur":2500,"ph":"X",)"
      R"("args":{"hhash":"f9ff883caaf21863","p_idx":8,"level":2,"key":7})";
  const std::string argument = make_arg(3, ArgType::kInt, 7);
  const std::string id = R"(,"bind_id":"0x000000000000fedc")";
  Bench bench;
  CHECK(bench.line_of(make_record(head, argument + flow(1))) == span + id + R"(,"flow_in":true})");
  CHECK(bench.line_of(make_record(head, argument + flow(2))) == span + id + R"(,"flow_out":true})");
  CHECK(bench.line_of(make_record(head, argument + flow(3))) ==
        span + id + R"(,"flow_in":true,"flow_out":true})");
  // The flow did not fit into memory.
  CHECK(bench.line_of(make_record(head, argument)) == span + "}");
  // The names of a full name table precede the arguments.
  Head unnamed = head;
  unnamed.name = 0;
  unnamed.flags = dft::record::kInlineName;
  CHECK(bench.line_of(make_record(unnamed, make_bytes(0, ArgType::kString, "work") + argument +
                                               flow(2))) == span + id + R"(,"flow_out":true})");
  CHECK(bench.line_of(make_record({0, Kind::kFlow, 0, 1, 1, 2, 9, 0, 5000000, 0})) ==
        R"({"id":9,"name":"work","cat":"APP","pid":4242,"tid":77,"ts":5000,"dur":0,"ph":"X",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1}})");
}

TEST_CASE("the lines about the trace itself") {
  Bench bench;
  REQUIRE(bench.encoder.lost(12, 5000000, bench.out));
  REQUIRE(bench.encoder.end({7, 12, 9000000, false, true}, bench.out));
  REQUIRE(bench.encoder.end({7, 0, 9000000, true, false}, bench.out));
  const auto lines = fixture::lines_of(std::string(bench.out.view()));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        R"({"id":500,"name":"lost","cat":"dftracer","pid":4242,"tid":4242,"ts":5000,"ph":"i",)"
        R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"events":12}})");
  CHECK(
      lines[1] ==
      R"({"id":501,"name":"end","cat":"dftracer","pid":4242,"tid":4242,"ts":9000,"dur":0,"ph":"X",)"
      R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"num_events":7,"lost":12}})");
  CHECK(
      lines[2] ==
      R"({"id":502,"name":"end","cat":"dftracer","pid":4242,"tid":4242,"ts":9000,"dur":0,"ph":"X",)"
      R"("args":{"hhash":"f9ff883caaf21863","p_idx":-1,"level":1,"recovered":true}})");
}

TEST_CASE("the end record holds the CPU time, and calls only if they were counted") {
  Bench bench;
  dft::sink::IoTotals totals{1234, -1, false, 1, 2, 3, 4, 5, 6, 7, 0, 0};
  REQUIRE(bench.encoder.end({7, 0, 9000000, false, true, &totals}, bench.out));
  totals.counted = true;
  totals.cpu_wait_us = 56;
  REQUIRE(bench.encoder.end({7, 0, 9000000, false, true, &totals}, bench.out));
  const auto lines = fixture::lines_of(std::string(bench.out.view()));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with(R"("num_events":7,"cpu_us":1234}})"));
  CHECK(lines[1].ends_with(R"("cpu_us":1234,"cpu_wait_us":56,"calls":1,"filtered":2,"read_seen":3,)"
                           R"("read_total":4,"write_seen":5,"write_total":6,"storage_read":7}})"));
}

TEST_CASE("an end record without a time has that of the last event") {
  Bench bench;
  REQUIRE(bench.encode(fixture::make_span(9) + fixture::make_span(3)) == Result::kDone);
  bench.out.resize(0);
  REQUIRE(bench.encoder.end({0, 0, 0, true, false}, bench.out));
  CHECK(fixture::number_after(std::string(bench.out.view()), "\"ts\":") == 1014);
}
