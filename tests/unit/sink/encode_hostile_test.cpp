// The encoder and the name table on records from a hostile or damaged spool.
#include <memory>
#include <random>

#include "sink/encode.hpp"
#include "support/fixture.hpp"
#include "support/strict_json.hpp"

using dft::record::ArgType;
using dft::record::Head;
using dft::record::Kind;
using dft::sink::Encoder;
using dft::sink::MmapBuffer;
using dft::sink::NameTable;
using fixture::make_arg;
using fixture::make_bytes;
using fixture::make_call;
using fixture::make_name;
using fixture::make_record;
using Result = Encoder::Result;

namespace {

struct Bench {
  Bench()
      : line(std::make_unique<dft::record::ClockMap>()), encoder({1, 2, 3, true}, *line, next_id) {
    line->count = 1;
    line->knots[0] = {0, 0, std::uint64_t{1} << 32};
  }
  Result encode(const std::string& bytes) {
    // On the heap with its exact size, so that the sanitizer reports a read past its end.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const auto* from = reinterpret_cast<const std::byte*>(exact.data());
    return encoder.encode(from, from + exact.size(), 7, out);
  }
  std::unique_ptr<dft::record::ClockMap> line;
  std::atomic<std::uint64_t> next_id{1};
  Encoder encoder;
  MmapBuffer out;
};

std::string with_size(std::string record, std::uint32_t size) {
  std::memcpy(record.data(), &size, sizeof size);
  return record;
}

bool read(NameTable& table, const std::string& bytes) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return table.read(reinterpret_cast<const std::byte*>(exact.data()), exact.size());
}

}  // namespace

TEST_CASE("an invalid record ends the chunk, and the lines before it stay") {
  const std::string good = fixture::make_span(1) + fixture::make_span(2);
  const std::string span = fixture::make_span(3);
  const std::string bad[] = {
      with_size(span, 0),
      with_size(span, 47),
      with_size(span, 40),
      with_size(span, 49),
      with_size(span, ~0u),
      make_record({0, static_cast<Kind>(0), 0, 0, 0, 0, 0, 0, 0, 0}),
      make_record({0, static_cast<Kind>(12), 0, 0, 0, 0, 0, 0, 0, 0},
                  make_bytes(0, ArgType::kString, "x")),
      with_size(make_call({}), 24),
      make_call({0, {}, dft::record::kInlineName, 0, 0, 0, 0, 0}, {1, 1, 1, 1}),
      make_call({0, {}, dft::record::kNested, 0, 0, 0, 0, 0}),  // without the parent's word
      make_record({0, static_cast<Kind>(255), 0, 0, 0, 0, 0, 0, 0, 0},
                  make_bytes(0, ArgType::kString, "x")),
      make_record({0, Kind::kMetadata, 0, 0, 0, 0, 0, 0, 0, 0}),  // no value
      make_record({0, Kind::kMetadata, dft::record::kInlineName, 0, 0, 0, 0, 0, 0, 0},
                  make_bytes(0, ArgType::kString, "only the key")),
      make_record({0, Kind::kThread, 0, 0, 0, 0, 0, 0, 0, 0},
                  make_arg(0, ArgType::kString, 1000)),  // longer than the record
      make_record({0, Kind::kSpan, dft::record::kInlineName, 1, 0, 0, 1, 0, 0, 0}),
      make_record({0, Kind::kSpan, dft::record::kInlineName, 1, 0, 0, 1, 0, 0, 0},
                  make_arg(0, ArgType::kInt, 5)),  // not a string
      make_record({0, Kind::kSpan, dft::record::kInlineCategory, 1, 0, 0, 1, 0, 0, 0},
                  make_arg(0, ArgType::kString, ~0ULL)),
  };
  for (const std::string& record : bad) {
    Bench bench;
    CHECK(bench.encode(good + record + fixture::make_span(4)) == Result::kBadRecord);
    const std::string text(bench.out.view());
    CAPTURE(text);
    const auto lines = fixture::lines_of(text);
    CHECK(lines.size() == 2);
    CHECK(bench.encoder.lines() == 2);
    for (const std::string& line : lines) CHECK(json::valid(line));
  }
}

TEST_CASE("a record truncated by the chunk's end is not encoded") {
  const std::string span = fixture::make_span(3);
  for (const std::string& cut : {span.substr(0, 1), span.substr(0, 8), span.substr(0, 47),
                                 with_size(span, 56), with_size(span, 1 << 20)}) {
    Bench bench;
    CHECK(bench.encode(fixture::make_span(1) + cut) == Result::kBadRecord);
    CHECK(fixture::lines_of(std::string(bench.out.view())).size() == 1);
  }
}

TEST_CASE("a string longer than its record ends the arguments, and the line is whole") {
  for (const std::uint64_t length : {std::uint64_t{9}, std::uint64_t{1} << 32, ~std::uint64_t{0},
                                     ~std::uint64_t{6}, ~std::uint64_t{7}}) {
    CAPTURE(length);
    Bench bench;
    const std::string record = make_record(
        {0, Kind::kSpan, 1, 1, 1, 2, 5, 0, 1, 1},
        make_arg(3, ArgType::kInt, 8) + make_arg(3, ArgType::kString, length) + "01234567");
    CHECK(bench.encode(record) == Result::kDone);
    const auto lines = fixture::lines_of(std::string(bench.out.view()));
    REQUIRE(lines.size() == 1);
    CHECK(json::valid(lines[0]));
    CHECK(lines[0].find("01234567") == lines[0].npos);
  }
}

TEST_CASE("text that is not a shape has no words") {
  using dft::sink::parse_shape;
  const auto words = [](std::string_view text) { return parse_shape(text).words; };
  CHECK(words("read|POSIX|#fhash|+count|+ret") == 3);
  CHECK(parse_shape("read|POSIX|#fhash").name == "read");
  CHECK(parse_shape("read|POSIX|#fhash").category == "POSIX");
  CHECK(parse_shape("").name.empty());
  CHECK(parse_shape("read").category == "?");
  CHECK(parse_shape("read|").category.empty());
  CHECK(words("||+a|+b") == 2);
  for (const std::string_view bad :
       {"", "n", "n|", "n|POSIX", "n|POSIX|", "n|POSIX|+", "n|POSIX|count", "n|POSIX|+a|",
        "n|POSIX||+a", "n|POSIX|+a|?b", "n|POSIX|+a|#", "|", "||", "|||"}) {
    CAPTURE(bad);
    CHECK(words(bad) == 0);
  }
  const std::string longest(dft::record::kLongestShapeKey, 'k');
  CHECK(words("n|C|#" + longest) == 1);
  CHECK(words("n|C|#" + longest + "k") == 0);
  std::string many = "n|C";
  for (std::size_t i = 0; i < dft::record::kMostShapeWords; ++i) many += "|+" + longest;
  CHECK(words(many) == dft::record::kMostShapeWords);
  CHECK(words(many + "|+a") == 0);
}

TEST_CASE("random calls give whole lines or none") {
  std::mt19937_64 random(7);
  const std::string_view shapes[] = {"n|P|#f|+c",
                                     "n|P|+a|+b|+c|+d|+e|+f|+g|#h",
                                     "n|P",
                                     "n",
                                     "",
                                     "|",
                                     "||",
                                     "n|P|+",
                                     "a\"|b\"|+k\"\xff|#x",
                                     "n|P|+a|+a|+hhash"};
  for (int round = 0; round < 2000; ++round) {
    Bench bench;
    std::string names;
    for (std::uint32_t id = 1; id <= 4; ++id) {
      std::string text(shapes[random() % std::size(shapes)]);
      if (random() % 4 == 0) text.insert(random() % (text.size() + 1), random() % 300, 'n');
      names += make_name(id, text);
    }
    REQUIRE(
        bench.encoder.names().read(reinterpret_cast<const std::byte*>(names.data()), names.size()));
    std::string bytes;
    std::uint64_t start = 1000;
    for (std::size_t i = random() % 20; i > 0; --i, start += 2000) {
      std::vector<std::uint64_t> words;
      for (std::size_t n = random() % 10; n > 0; --n) words.push_back(random() >> random() % 64);
      const bool nested = !words.empty() && random() % 2 == 0;
      const std::uint8_t flags = nested ? dft::record::kNested : 0;
      bytes += make_call({0, {}, flags, 1, static_cast<std::uint32_t>(random() % 6), 900, i, start},
                         words);
    }
    REQUIRE(bench.encode(bytes) == Result::kDone);
    std::uint64_t lines = 0;
    for (const std::string& line : fixture::lines_of(std::string(bench.out.view()))) {
      REQUIRE_MESSAGE(json::valid(line), line);
      ++lines;
    }
    REQUIRE(lines == bench.encoder.lines());
  }
}

TEST_CASE("random records give whole lines or none") {
  std::mt19937_64 random(99);
  for (int round = 0; round < 3000; ++round) {
    Bench bench;
    std::string bytes;
    const std::size_t count = 1 + random() % 4;
    for (std::size_t i = 0; i < count; ++i) {
      std::string args;
      for (std::size_t n = random() % 5; n > 0; --n) {
        const auto type = static_cast<ArgType>(random() % 9);
        const auto key = static_cast<std::uint32_t>(random() % 3);
        if (dft::record::has_bytes(type) && random() % 4 != 0) {
          std::string text(random() % 20, '\0');
          for (char& c : text) c = static_cast<char>(random());
          args += make_bytes(key, type, text);
        } else {
          args += make_arg(key, type, random() % 2 == 0 ? random() : random() % 40);
        }
      }
      bytes += make_record(
          {0, static_cast<Kind>(random() % 10), static_cast<std::uint8_t>(random() % 16),
           static_cast<std::uint16_t>(random()), static_cast<std::uint32_t>(random()),
           static_cast<std::uint32_t>(random()), random(), random(), random(), random()},
          args);
    }
    if (random() % 3 == 0) bytes[random() % bytes.size()] = static_cast<char>(random());
    bench.encode(bytes);
    std::uint64_t lines = 0;
    for (const std::string& line : fixture::lines_of(std::string(bench.out.view()))) {
      REQUIRE_MESSAGE(json::valid(line), line);
      ++lines;
    }
    REQUIRE(lines == bench.encoder.lines());
  }
}

TEST_CASE("names are escaped, and missing ones are shown as such") {
  NameTable table;
  CHECK(table.text(1) == "?");
  REQUIRE(read(table, make_name(3, "c") + make_name(1, "a\"\n") + make_name(2, "")));
  CHECK(table.text(1) == "a\\\"\\n");
  CHECK(table.text(2) == "");
  CHECK(table.text(3) == "c");
  CHECK(table.text(4) == "?");
  CHECK(table.text(0) == "?");
  CHECK(table.text(~0u) == "?");
  REQUIRE(read(table, make_name(3, "again")));
  CHECK(table.text(3) == "again");
  REQUIRE(read(table, make_name(5000, "far")));
  CHECK(table.text(5000) == "far");
  CHECK(table.text(4999).size() <= 1);  // unknown id: empty, or "?"
}

TEST_CASE("empty names are empty in the line") {
  Bench bench;
  const std::string names = make_name(1, "") + make_name(2, "");
  REQUIRE(
      bench.encoder.names().read(reinterpret_cast<const std::byte*>(names.data()), names.size()));
  REQUIRE(bench.encode(fixture::make_span(1)) == Result::kDone);
  CHECK(bench.out.view().find("\"name\":\"\",\"cat\":\"\"") != std::string_view::npos);
}

TEST_CASE("a damaged name table is rejected, and the names before the damage stay") {
  const std::string good = make_name(1, "one");
  const std::string bad[] = {
      make_name(0, "none"),
      make_name((1u << 20) + 1, "too many"),
      make_name(~0u, "too many"),
      make_name(2, "cut to nothing").substr(0, 16),
      std::string("\x02\0\0\0\xff\xff\xff\xff", 8),
      std::string("\x02\0\0\0\xf8\xff\xff\xff", 8),
      std::string("\x02\0\0\0\x01\0\0\0", 8),
  };
  for (const std::string& bytes : bad) {
    NameTable table;
    CHECK_FALSE(read(table, good + bytes));
    CHECK(table.text(1) == "one");
    CHECK(table.text(2) == "?");
  }
  NameTable table;
  CHECK(read(table, good + "1234567"));  // shorter than a head: the unused rest of the chunk
}
