#include "reader/parse/json_scan.hpp"

#include <doctest/doctest.h>

#include <optional>

namespace {

using namespace dft::reader;

// With the padding that the scanner needs.
class Padded {
 public:
  explicit Padded(std::string_view text) : text_(text), size_(text.size()) {
    text_.append(kPadding, '\0');
  }
  [[nodiscard]] const char* begin() const { return text_.data(); }
  [[nodiscard]] const char* end() const { return text_.data() + size_; }
  [[nodiscard]] std::ptrdiff_t offset(const char* p) const {
    return p == nullptr ? -1 : p - text_.data();
  }

 private:
  std::string text_;
  std::size_t size_;
};

// The kind of a value that takes all of the text.
std::optional<JsonKind> kind_of(std::string_view text) {
  const Padded padded(text);
  JsonField field;
  if (scan_value(padded.begin(), field) != padded.end()) return std::nullopt;
  return field.kind;
}

JsonField number_field(std::string_view text) {
  JsonField field;
  field.kind = JsonKind::kNumber;
  field.value = text;
  return field;
}

std::string plain(std::string_view raw, bool valid_utf8 = true) {
  std::string scratch;
  return std::string(
      plain_text(raw, raw.find('\\') != std::string_view::npos, valid_utf8, scratch));
}

}  // namespace

TEST_CASE("a value has the kind that JSON gives it") {
  CHECK(kind_of(R"("plain")") == JsonKind::kString);
  CHECK(kind_of(R"("a\"b")") == JsonKind::kEscaped);
  CHECK(kind_of("-12") == JsonKind::kInt);
  CHECK(kind_of("9223372036854775807") == JsonKind::kInt);
  CHECK(kind_of("9223372036854775808") == JsonKind::kNumber);
  CHECK(kind_of("1.5e3") == JsonKind::kNumber);
  CHECK(kind_of("true") == JsonKind::kTrue);
  CHECK(kind_of("false") == JsonKind::kFalse);
  CHECK(kind_of("null") == JsonKind::kNull);
  CHECK(kind_of(R"({"a":[1,{"b":"}"}]})") == JsonKind::kObject);
  CHECK(kind_of("[]") == JsonKind::kArray);
}

TEST_CASE("what is not JSON is no value") {
  for (const char* text :
       {"", "tru", "\"open", "{\"a\":}", "[1,", "{a:1}", "\"\x01\"", "\"\\x\"", "-", "1.", "]"}) {
    INFO(text);
    CHECK_FALSE(kind_of(text).has_value());
  }
}

TEST_CASE("nesting is followed to a depth of 64") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(kind_of(nested(60)) == JsonKind::kArray);
  CHECK_FALSE(kind_of(nested(200)).has_value());
}

TEST_CASE("digits of every length are read, eight at a time or one by one") {
  std::string digits;
  std::int64_t expected = 0;
  for (int length = 1; length <= 18; ++length) {
    digits += static_cast<char>('0' + length % 9 + 1);
    expected = expected * 10 + length % 9 + 1;
    for (const char* behind : {",", "}", "\n"}) {
      const Padded padded(digits + behind);
      std::int64_t number = -1;
      CHECK(padded.offset(whole_number(padded.begin(), number)) == length);
      CHECK(number == expected);
      number = -1;
      CHECK(padded.offset(time_number(padded.begin(), number)) == length);
      CHECK(number == expected);
      CHECK(padded.offset(whole_number_end(padded.begin())) == length);
    }
  }
}

TEST_CASE("leading zeros and other characters are no whole number") {
  for (const char* text : {"01", "x", "-1", "", "012345678", "0123456789012345"}) {
    const Padded padded(text);
    std::int64_t number = 0;
    INFO(text);
    CHECK(whole_number(padded.begin(), number) == nullptr);
  }
  const Padded zero("0,");
  std::int64_t number = 1;
  CHECK(zero.offset(whole_number(zero.begin(), number)) == 1);
  CHECK(number == 0);
}

TEST_CASE("a line end is found at every distance, and what is before it is judged") {
  for (std::size_t length = 0; length < 150; ++length) {
    const Padded plain_line(std::string(length, 'a') + "\nrest");
    bool ascii = false;
    CHECK(plain_line.offset(find_line_end(plain_line.begin(), plain_line.end(), ascii)) ==
          static_cast<std::ptrdiff_t>(length));
    CHECK(ascii);
    const Padded none(std::string(length, 'a'));
    CHECK(find_line_end(none.begin(), none.end(), ascii) == nullptr);
  }
  const Padded umlaut("caf\xc3\xa9\n");
  bool ascii = true;
  CHECK(umlaut.offset(find_line_end(umlaut.begin(), umlaut.end(), ascii)) == 5);
  CHECK_FALSE(ascii);
}

TEST_CASE("the end of a string is its first quote that is not escaped") {
  for (std::size_t length = 0; length < 40; ++length) {
    const Padded padded(std::string(length, 'x') + "\",");
    bool escaped = true;
    CHECK(padded.offset(string_end(padded.begin(), escaped)) ==
          static_cast<std::ptrdiff_t>(length));
    CHECK_FALSE(escaped);
  }
  const Padded quoted(R"(a\"b\\",)");
  bool escaped = false;
  CHECK(quoted.offset(string_end(quoted.begin(), escaped)) == 6);
  CHECK(escaped);
}

TEST_CASE("numbers are scaled exactly, and saturate") {
  std::int64_t out = 0;
  CHECK(scaled_number("1.5", 3, out));
  CHECK(out == 1500);
  CHECK(scaled_number("12", 3, out));
  CHECK(out == 12000);
  CHECK(scaled_number("0.0019", 3, out));
  CHECK(out == 1);
  CHECK(scaled_number("1e2", 0, out));
  CHECK(out == 100);
  CHECK(scaled_number("99999999999999999999", 3, out));
  CHECK(out == INT64_MAX);
  CHECK_FALSE(scaled_number("abc", 3, out));
}

TEST_CASE("integers are also read from strings") {
  JsonField field;
  field.kind = JsonKind::kString;
  field.value = "42";
  std::int64_t out = 0;
  CHECK(integer_of(field, out));
  CHECK(out == 42);
  field.value = "x42";
  CHECK_FALSE(integer_of(field, out));
  std::uint64_t large = 0;
  CHECK(unsigned_of(number_field("18446744073709551615"), large));
  CHECK(large == UINT64_MAX);
  CHECK_FALSE(unsigned_of(number_field("18446744073709551616"), large));
}

TEST_CASE("escapes become the text that they stand for") {
  CHECK(plain("abc") == "abc");
  CHECK(plain(R"(a\n\t\"\\\/b)") == "a\n\t\"\\/b");
  CHECK(plain(R"(\u00e9)") == "\xc3\xa9");
  CHECK(plain(R"(\ud83d\ude00)") == "\xf0\x9f\x98\x80");
  CHECK(plain(R"(\ud83dx)") == "\xef\xbf\xbdx");
  CHECK(plain("a\xff", false) == "a\xef\xbf\xbd");
}

TEST_CASE("escaping and reading again gives the text") {
  std::string text;
  for (char c = 1; c < 127; ++c) text += c;
  text += "\xc3\xa9";
  std::string escaped;
  append_escaped(escaped, text);
  CHECK(kind_of('"' + escaped + '"') == JsonKind::kEscaped);
  CHECK(plain(escaped) == text);
}

TEST_CASE("UTF-8 is judged as the standard does") {
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* bad : {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"}) {
    CHECK_FALSE(is_utf8(bad));
    std::string mended;
    append_mended(mended, bad);
    CHECK(is_utf8(mended));
    CHECK(mended.find("\xef\xbf\xbd") != std::string::npos);
  }
}

TEST_CASE("lone surrogates leave strict JSON") {
  std::string out;
  append_strict_json(out, R"({"a":"\ud800x","b":"\ud83d\ude00","c":"\\ud800"})");
  CHECK(out == R"({"a":"\ufffdx","b":"\ud83d\ude00","c":"\\ud800"})");
}
