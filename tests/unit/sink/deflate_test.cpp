#include "sink/deflate.hpp"

#include <random>

#include "format/member.hpp"
#include "support/fixture.hpp"
#include "support/gunzip.hpp"

using dft::sink::Gzip;
constexpr std::size_t kMemberHead = dft::format::kMemberHeader;
using dft::sink::MmapBuffer;

namespace {

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string member(unsigned level, std::string_view text, std::uint32_t lines = 1) {
  Gzip gzip(level);
  MmapBuffer out;
  REQUIRE(gzip.member(text, lines, out));
  return std::string(out.view());
}

std::string noise(std::size_t n) {
  std::mt19937_64 random(n);
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

}  // namespace

TEST_CASE("a member's header holds its size and its number of lines") {
  const std::string bytes = member(1, "a\nb\nc\n", 3);
  CHECK(bytes.substr(0, 4) == "\x1f\x8b\x08\x04");                // gzip, deflate, FEXTRA
  CHECK(bytes.substr(4, 6) == std::string("\0\0\0\0\0\x03", 6));  // no time, Unix
  CHECK(bytes.substr(10, 2) == std::string("\x0c\0", 2));         // 12 bytes of FEXTRA
  CHECK(bytes.substr(12, 4) == std::string("DF\x08\0", 4));
  CHECK(word(bytes, 16) == bytes.size());
  CHECK(word(bytes, 20) == 3);
  CHECK(word(bytes, bytes.size() - 4) == 6);  // gzip's own: length before compression
}

TEST_CASE("every text round-trips at every level") {
  std::string repeated;
  for (int i = 0; i < 20000; ++i) repeated += "{\"id\":" + std::to_string(i) + ",\"name\":\"x\"}\n";
  const std::string texts[] = {"",
                               "x",
                               "\n",
                               std::string(1 << 20, 'a'),
                               noise(1),
                               noise(65535),
                               noise(65536),
                               noise(65537),
                               noise(1 << 20),
                               noise(3 << 20),
                               repeated};
  for (unsigned level = 0; level <= 4; ++level) {
    for (const std::string& text : texts) {
      CAPTURE(level);
      CAPTURE(text.size());
      const std::string bytes = member(level, text);
      CHECK(word(bytes, 16) == bytes.size());
      const auto back = fixture::gunzip(bytes);
      REQUIRE(back.size() == 1);
      CHECK((back[0] == text));  // not shown on failure: it may be long
      if (text.size() > 100000 && &text == &texts[10]) CHECK(bytes.size() < text.size() / 4);
    }
  }
}

TEST_CASE("concatenated members are one gzip file") {
  Gzip gzip(1);
  MmapBuffer out;
  std::string file;
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i) * 37, static_cast<char>('a' + i % 26)) +
                    "\n");
    REQUIRE(gzip.member(texts.back(), 1, out));  // replaces the contents of `out`
    file += out.view();
  }
  CHECK(fixture::gunzip(file) == texts);
  // And the sizes in the headers suffice to find each one.
  std::size_t at = 0;
  for (const std::string& text : texts) {
    const std::size_t size = word(file, at + 16);
    CHECK(fixture::gunzip(file.substr(at, size)) == std::vector<std::string>{text});
    at += size;
  }
  CHECK(at == file.size());
}

TEST_CASE("members are independent of each other") {
  Gzip gzip(2);
  MmapBuffer first;
  MmapBuffer second;
  REQUIRE(gzip.member("the same text\n", 1, first));
  REQUIRE(gzip.member(noise(100000), 1, second));
  REQUIRE(gzip.member("the same text\n", 1, second));
  CHECK(first.view() == second.view());
}
