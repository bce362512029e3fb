#include "format/hash.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace dft::format {
namespace {

// MD5, RFC 1321. kSines[i] is floor(2^32 * |sin(i + 1)|).
constexpr std::array<std::uint32_t, 64> kSines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

using Md5State = std::array<std::uint32_t, 4>;

void absorb(Md5State& state, const unsigned char* block) {
  std::uint32_t words[16];
  std::memcpy(words, block, sizeof words);
  auto [a, b, c, d] = state;
  for (unsigned i = 0; i < 64; ++i) {
    std::uint32_t mix = 0;
    unsigned word = 0;
    switch (i / 16) {
      case 0:
        mix = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mix = (d & b) | (~d & c), word = (5 * i + 1) % 16;
        break;
      case 2:
        mix = b ^ c ^ d, word = (3 * i + 5) % 16;
        break;
      default:
        mix = c ^ (b | ~d), word = (7 * i) % 16;
        break;
    }
    const std::uint32_t turned =
        std::rotl(a + mix + kSines[i] + words[word], kTurns[i / 16][i % 4]);
    a = d, d = c, c = b, b += turned;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

}  // namespace

std::uint64_t hash16(std::string_view bytes) noexcept {
  static_assert(std::endian::native == std::endian::little);
  Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 64; left -= 64, p += 64) absorb(state, p);
  unsigned char tail[128] = {};
  if (left > 0) std::memcpy(tail, p, left);
  tail[left] = 0x80;
  const std::size_t blocks = left < 56 ? 1 : 2;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  std::memcpy(tail + blocks * 64 - 8, &bits, 8);
  for (std::size_t i = 0; i < blocks; ++i) absorb(state, tail + 64 * i);
  unsigned char digest[16];
  std::memcpy(digest, state.data(), sizeof digest);
  std::uint64_t out = 0;
  for (int i = 0; i < 16; i += 2) out = out << 8 | digest[i];
  return out;
}

}  // namespace dft::format
