#include "format/escape.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "support/strict_json.hpp"

namespace {

std::string escape(std::string_view bytes) {
  // Exactly the documented size, and a guard byte after it.
  std::vector<char> room(bytes.size() * dft::format::kEscapeGrowth + 1, '#');
  char* end = dft::format::escape(room.data(), bytes);
  const auto size = static_cast<std::size_t>(end - room.data());
  REQUIRE(size < room.size());
  CHECK(room.back() == '#');
  return {room.data(), size};
}

void check_comes_back(std::string_view bytes) {
  const std::string escaped = escape(bytes);
  CAPTURE(escaped);
  const auto back = json::decode(escaped);
  REQUIRE(back.has_value());
  CHECK(*back == bytes);
  CHECK(json::valid("\"" + escaped + "\""));
}

}  // namespace

TEST_CASE("plain text is unchanged") {
  std::string plain;
  for (char c = 0x20; c < 0x7f; ++c) {
    if (c != '"' && c != '\\') plain += c;
  }
  CHECK(escape(plain) == plain);
  CHECK(escape("") == "");
}

TEST_CASE("quotes, backslashes and control characters are escaped") {
  CHECK(escape("\"") == "\\\"");
  CHECK(escape("\\") == "\\\\");
  CHECK(escape("\n\t\r\b\f") == "\\n\\t\\r\\b\\f");
  CHECK(escape(std::string_view("\0", 1)) == "\\u0000");
  CHECK(escape("\x01\x1f\x7f") == "\\u0001\\u001f\\u007f");
  CHECK(escape("/") == "/");
}

TEST_CASE("each single byte round-trips") {
  for (int i = 0; i < 256; ++i) {
    const char byte = static_cast<char>(i);
    CAPTURE(i);
    check_comes_back({&byte, 1});
    const char framed[] = {'a', byte, 'b'};
    check_comes_back({framed, 3});
  }
}

TEST_CASE("every pair of bytes round-trips") {
  for (int i = 0; i < 65536; ++i) {
    const char pair[] = {static_cast<char>(i >> 8), static_cast<char>(i)};
    const std::string escaped = escape({pair, 2});
    const auto back = json::decode(escaped);
    REQUIRE_MESSAGE(back.has_value(), escaped);
    REQUIRE(*back == std::string_view(pair, 2));
  }
}

TEST_CASE("valid UTF-8 is unchanged") {
  for (const char* text :
       {"\xc2\x80", "\xc3\xa9", "\xdf\xbf", "\xe0\xa0\x80", "\xe2\x82\xac", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xee\xbd\xbf", "\xef\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80",
        "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(text);
    CHECK(escape(text) == text);
  }
}

TEST_CASE("invalid UTF-8 is escaped byte by byte") {
  CHECK(escape("\xff") == "\\uefff");
  CHECK(escape("\x80") == "\\uef80");
  CHECK(escape("\xc3") == "\\uefc3");  // truncated at the end
  CHECK(escape("\xe2\x82") == "\\uefe2\\uef82");
  CHECK(escape("\xf0\x9f\x98") == "\\ueff0\\uef9f\\uef98");
  CHECK(escape("\xe2\x82"
               "A") == "\\uefe2\\uef82A");        // truncated in the middle
  CHECK(escape("\xc0\xaf") == "\\uefc0\\uefaf");  // overlong
  CHECK(escape("\xc1\xbf") == "\\uefc1\\uefbf");
  CHECK(escape("\xe0\x9f\xbf") == "\\uefe0\\uef9f\\uefbf");
  CHECK(escape("\xf0\x8f\xbf\xbf") == "\\ueff0\\uef8f\\uefbf\\uefbf");
  CHECK(escape("\xed\xa0\x80") == "\\uefed\\uefa0\\uef80");  // surrogates
  CHECK(escape("\xed\xbf\xbf") == "\\uefed\\uefbf\\uefbf");
  CHECK(escape("\xf4\x90\x80\x80") == "\\ueff4\\uef90\\uef80\\uef80");  // beyond U+10FFFF
  CHECK(escape("\xf5\x80\x80\x80") == "\\ueff5\\uef80\\uef80\\uef80");
}

TEST_CASE("the private characters in the input are distinguished from our escapes") {
  CHECK(escape("\xee\xbe\x80") == "\\uefee\\uefbe\\uef80");  // U+EF80
  CHECK(escape("\xee\xbf\xbf") == "\\uefee\\uefbf\\uefbf");  // U+EFFF
  for (unsigned code = 0xef00; code <= 0xf010; ++code) {
    const char text[] = {static_cast<char>(0xe0 | code >> 12),
                         static_cast<char>(0x80 | (code >> 6 & 0x3f)),
                         static_cast<char>(0x80 | (code & 0x3f))};
    check_comes_back({text, 3});
  }
}

TEST_CASE("random bytes round-trip") {
  std::mt19937_64 random(20261115);
  // Bytes with a meaning in UTF-8 or JSON, so that sequences form and break.
  constexpr unsigned char kPieces[] = {0x00, 0x1f, '"',  '\\', 'u',  'e',  'f',  '8',  0x7f, 0x80,
                                       0x8f, 0x90, 0x9f, 0xa0, 0xbd, 0xbe, 0xbf, 0xc0, 0xc2, 0xdf,
                                       0xe0, 0xed, 0xee, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 24, '\0');
    for (char& c : bytes) {
      c = static_cast<char>(round % 2 == 0 ? kPieces[random() % sizeof kPieces] : random());
    }
    const std::string escaped = escape(bytes);
    const auto back = json::decode(escaped);
    REQUIRE_MESSAGE(back.has_value(), escaped);
    REQUIRE(*back == bytes);
  }
}

TEST_CASE("different inputs never give the same text") {
  // Text that looks like one of our escapes is not one.
  CHECK(escape("\\uefff") == "\\\\uefff");
  CHECK(escape("\\uefff") != escape("\xff"));
}
