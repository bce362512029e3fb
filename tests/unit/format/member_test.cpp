#include "format/member.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace dft::format;

std::string header(std::uint32_t size, std::uint32_t lines) {
  std::string out(kMemberHeader, '\0');
  write_member_header(out.data(), size, lines);
  return out;
}

}  // namespace

TEST_CASE("a member header is read as it was written") {
  MemberHeader out;
  REQUIRE(read_member_header(header(0x01020304, 70000), out));
  CHECK(out.size == 0x01020304);
  CHECK(out.lines == 70000);
  CHECK(out.length == kMemberHeader);
}

TEST_CASE("a member header is the 24 bytes of docs/design/file-format.md") {
  const std::string expected("\x1f\x8b\x08\x04\0\0\0\0\0\x03\x0c\0DF\x08\0\x39\x30\0\0\x07\0\0\0",
                             24);
  CHECK(header(12345, 7) == expected);
}

TEST_CASE("another subfield before DF is stepped over") {
  std::string bytes = header(500, 3);
  bytes.insert(12, std::string("AB\x02\0xy", 6));
  bytes[10] = static_cast<char>(12 + 6);
  MemberHeader out;
  REQUIRE(read_member_header(bytes, out));
  CHECK(out.size == 500);
  CHECK(out.lines == 3);
  CHECK(out.length == kMemberHeader + 6);
}

TEST_CASE("headers that are not ours are refused") {
  MemberHeader out;
  const std::string good = header(500, 3);
  CHECK_FALSE(read_member_header(good.substr(0, kMemberHeader - 1), out));
  for (const std::size_t position : {0, 1, 2, 3, 12, 13}) {
    std::string bad = good;
    bad[position] = static_cast<char>(bad[position] ^ 0x20);
    INFO("byte " << position);
    CHECK_FALSE(read_member_header(bad, out));
  }
  // A size that leaves no room for data.
  CHECK_FALSE(read_member_header(header(kMemberHeader + kMemberTrailer, 1), out));
  CHECK(read_member_header(header(kMemberHeader + kMemberTrailer + 1, 1), out));
}

TEST_CASE("three bytes tell a gzip member") {
  CHECK(is_gzip("\x1f\x8b\x08"));
  CHECK_FALSE(is_gzip("\x1f\x8b"));
  CHECK_FALSE(is_gzip("\x1f\x8b\x09"));
  CHECK_FALSE(is_gzip("[{\""));
}
