#include "sink/json_check.hpp"

#include <random>
#include <string>

#include "support/fixture.hpp"
#include "support/strict_json.hpp"

using dft::sink::is_json;

TEST_CASE("JSON that can be copied into a line is recognised") {
  for (const char* text :
       {"0", "-0", "12", "-1.5e+10", "1E5", "0.25", "true", "false", "null", "\"\"", "\"a b~\"",
        "\"\xc3\xa9\xf0\x9f\x98\x80\"", R"("\"\\\/\b\f\n\r\t\u00ff\uDCFF")", "[]", "{}",
        "[1,2,[3,[]],{}]", R"({"a":1,"b":[true,null],"c":{"d":"e"}})", "[[],[]]",
        R"([{},{"x":[]}])"}) {
    CAPTURE(text);
    CHECK(is_json(text));
  }
}

TEST_CASE("anything else is not") {
  for (const char* text : {"",
                           " ",
                           "1 ",
                           " 1",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "tru",
                           "nul",
                           "truee",
                           "\"",
                           "\"\\\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"a\nb\"",
                           "\"\x7f\"",
                           "\"\xc3\"",
                           "\"\xff\"",
                           "\"\xee\xbe\x80\"",
                           "[",
                           "]",
                           "[1",
                           "[1,]",
                           "[,1]",
                           "[1 ,2]",
                           "{",
                           "}",
                           "{1:2}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{\"a\":1]",
                           "[1}",
                           "1,2",
                           "[]1",
                           "{}{}",
                           "NaN",
                           "Infinity",
                           "'a'"}) {
    CAPTURE(text);
    CHECK_FALSE(is_json(text));
  }
  CHECK_FALSE(is_json(std::string_view("\"\0\"", 3)));
}

TEST_CASE("nesting is bounded") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  CHECK(is_json(nested(64)));
  CHECK_FALSE(is_json(nested(65)));
  CHECK_FALSE(is_json(std::string(1 << 20, '[')));
}

TEST_CASE("it agrees with a strict parser on random texts of JSON's characters") {
  std::mt19937 random(7);
  const std::string_view alphabet = "[]{},:\"\\0123456789.eE+-truefalsn u";
  int valid = 0;
  for (int i = 0; i < 300000; ++i) {
    std::string text;
    const auto length = 1 + random() % 7;
    for (unsigned k = 0; k < length; ++k) text += alphabet[random() % alphabet.size()];
    const bool ours = is_json(text);
    CAPTURE(text);
    // A trace line is an object; whitespace between tokens is the only thing not accepted.
    if (ours) {
      REQUIRE(json::valid("{\"a\":" + text + "}"));
    } else if (text.find(' ') == text.npos) {
      REQUIRE_FALSE(json::valid("{\"a\":" + text + "}"));
    }
    valid += ours;
  }
  CHECK(valid > 1000);
}

TEST_CASE("the strict parser itself: what JSON allows and our traces do not") {
  using json::Dialect;
  for (const char* text :
       {" { \"a\" : [ 1 , \"\" ] }\r\n", "\"\\uD83D\"", "\"\\u00Ff\"", "\"\xff\"", "\t1"}) {
    CAPTURE(text);
    CHECK(json::valid(text, Dialect::kAny));
    CHECK_FALSE(json::valid(text));
  }
  for (const char* text :
       {"", " ", "1 2", "- 1", "1 .5", "\"\\u12g4\"", "\"\\u12\"", "\"\\x\"", "\"\\\"", "\"a\nb\"",
        "[1,]", "{\"a\"}", "{1:2}", "NaN", "01", "tr ue"}) {
    CAPTURE(text);
    CHECK_FALSE(json::valid(text, Dialect::kAny));
    CHECK_FALSE(json::valid(text));
  }
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  CHECK(json::valid(deep, Dialect::kAny));
  CHECK_FALSE(json::valid(deep));
}
