#include "session/secrets.hpp"

#include <fstream>
#include <sstream>

#include "support/fixture.hpp"
#include "support/strict_json.hpp"

namespace {

std::string mask(std::string_view text) {
  dft::sink::MmapBuffer out;
  REQUIRE(dft::session::mask_secrets(text, out));
  return std::string(out.view());
}

// The strings of the file, in its order: "text", its value, "masked", its value, and so on.
std::vector<std::string> strings_of(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at)) {
    std::size_t end = at + 1;
    while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    const auto one = json::decode(std::string_view(text).substr(at + 1, end - at - 1));
    REQUIRE(one.has_value());
    found.push_back(*one);
    at = end + 1;
  }
  return found;
}

}  // namespace

TEST_CASE("secrets are masked as the commands mask them") {
  std::ifstream file(DFTRACER_TEST_DATA "/secrets.json");
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<std::string> words = strings_of(text.str());
  REQUIRE(words.size() > 100);
  REQUIRE(words.size() % 4 == 0);
  for (std::size_t i = 0; i < words.size(); i += 4) {
    CAPTURE(words[i + 1]);
    REQUIRE(words[i] == "text");
    REQUIRE(words[i + 2] == "masked");
    CHECK(mask(words[i + 1]) == words[i + 3]);
    CHECK(mask(words[i + 3]) == words[i + 3]);
  }
}

TEST_CASE("with more secrets than there is room for, the rest is hidden") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "--password=abc ";
  const std::string masked = mask(text);
  CHECK(masked.find("abc") == std::string::npos);
  CHECK(masked.starts_with("--password=*** --password=***"));
}

TEST_CASE("masking takes time that grows with the length of the text") {
  for (const char* part : {"--password=\"", "http://a:b@", "token: ", "AKIA", "-", "://"}) {
    std::string text;
    while (text.size() < (std::size_t{4} << 20)) text += part;
    CHECK(mask(text).size() <= text.size() + 256);
  }
}
