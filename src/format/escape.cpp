#include "format/escape.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "format/visible_byte.hpp"

namespace dft::format {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// 0: copied as is. Otherwise the letter after the backslash, 'u' for \u00XX, or 1: not ASCII.
constexpr std::array<char, 256> make_table() {
  std::array<char, 256> table{};
  for (std::size_t i = 0; i < 0x20; ++i) table[i] = 'u';
  for (std::size_t i = 0x80; i < 256; ++i) table[i] = 1;
  table['"'] = '"', table['\\'] = '\\', table[0x7f] = 'u';
  table['\n'] = 'n', table['\t'] = 't', table['\r'] = 'r', table['\b'] = 'b', table['\f'] = 'f';
  return table;
}
constexpr auto kTable = make_table();

bool follows(unsigned char c) { return (c & 0xc0) == 0x80; }

}  // namespace

std::size_t utf8_sequence(const unsigned char* p, std::size_t left) noexcept {
  const unsigned char a = p[0];
  if (a >= 0xc2 && a <= 0xdf) return left >= 2 && follows(p[1]) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    if (left < 3 || !follows(p[1]) || !follows(p[2])) return 0;
    if (a == 0xe0 && p[1] < 0xa0) return 0;                     // overlong
    if (a == 0xed && p[1] > 0x9f) return 0;                     // surrogate
    if (a == 0xee && (p[1] == 0xbe || p[1] == 0xbf)) return 0;  // U+EF80 to U+EFFF
    return 3;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    if (left < 4 || !follows(p[1]) || !follows(p[2]) || !follows(p[3])) return 0;
    if (a == 0xf0 && p[1] < 0x90) return 0;
    if (a == 0xf4 && p[1] > 0x8f) return 0;  // past U+10FFFF
    return 4;
  }
  return 0;
}

char* escape(char* to, std::string_view bytes) noexcept {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto* end = p + bytes.size();
  while (p != end) {
    const char action = kTable[*p];
    if (action == 0) [[likely]] {
      *to++ = static_cast<char>(*p++);
    } else if (action == 1) {
      const std::size_t n = utf8_sequence(p, static_cast<std::size_t>(end - p));
      if (n == 0) {
        to = write_visible_byte(to, *p++);
      } else {
        std::memcpy(to, p, n);
        to += n;
        p += n;
      }
    } else if (action == 'u') {
      std::memcpy(to, "\\u00", 4);
      to[4] = kHex[*p >> 4];
      to[5] = kHex[*p & 15];
      to += 6;
      ++p;
    } else {
      *to++ = '\\';
      *to++ = action;
      ++p;
    }
  }
  return to;
}

}  // namespace dft::format
