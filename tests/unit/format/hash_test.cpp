#include "format/hash.hpp"

#include <doctest/doctest.h>

#include <string>

using dft::format::hash16;

namespace {

// The bytes (7 i + n) mod 256 for i below n; the values come from Python's hashlib.
std::string sample(std::size_t n) {
  std::string bytes(n, '\0');
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>((7 * i + n) % 256);
  return bytes;
}

}  // namespace

TEST_CASE("hash16 gives the hashes of existing traces") {
  CHECK(hash16("tuolumne1004") == 0xf9ff883caaf21863);
  CHECK(hash16("DEFAULT-spawn") == 0x8a4eff4d79020d73);
  CHECK(hash16("/usr/WS2/sinurat1/pydftracer") == 0x457466652c169c22);
}

TEST_CASE("hash16 of the empty string") {
  CHECK(hash16("") == 0xd48c8fb2e909ec42);
  CHECK(hash16({}) == 0xd48c8fb2e909ec42);  // a null pointer with no length
}

TEST_CASE("hash16 around the edges of MD5's blocks") {
  // 55 is the last length whose padding fits into the block, 64 the first that fills one.
  CHECK(hash16(sample(55)) == 0xf19725180eb65717);
  CHECK(hash16(sample(56)) == 0x173ba2a22a32e154);
  CHECK(hash16(sample(63)) == 0xdd59d1b8ca27bb56);
  CHECK(hash16(sample(64)) == 0xe339e47d207d2414);
  CHECK(hash16(sample(65)) == 0x28b018ae3e9a57d0);
  CHECK(hash16(sample(119)) == 0xd4200a6a91c084d1);
  CHECK(hash16(sample(120)) == 0x8a00b52842225cc5);
  CHECK(hash16(sample(1000)) == 0xc39634385dc871e1);
}

TEST_CASE("hash16 reads bytes at any alignment") {
  const std::string bytes = "xyz" + sample(65);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, '-') + sample(65);
    CHECK(hash16(std::string_view(moved).substr(shift)) == 0x28b018ae3e9a57d0);
  }
}

TEST_CASE("write_hex16 writes sixteen lower-case digits and no more") {
  char text[18];
  text[16] = '#';
  text[17] = '\0';
  CHECK(dft::format::write_hex16(text, 0x0123456789abcdef) == text + 16);
  CHECK(std::string(text) == "0123456789abcdef#");
  dft::format::write_hex16(text, 0);
  CHECK(std::string(text) == "0000000000000000#");
  dft::format::write_hex16(text, ~std::uint64_t{0});
  CHECK(std::string(text) == "ffffffffffffffff#");
  for (int digit = 0; digit < 16; ++digit) {
    for (int at = 0; at < 16; ++at) {
      dft::format::write_hex16(text, static_cast<std::uint64_t>(digit) << 4 * (15 - at));
      std::string expected(16, '0');
      expected[static_cast<std::size_t>(at)] = "0123456789abcdef"[digit];
      CHECK(std::string(text) == expected + "#");
    }
  }
}
