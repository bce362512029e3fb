// How a trace shows a byte that is not part of valid UTF-8, as in the name of a file: byte XX is
// the private character U+EFXX, written as \uefXX (docs/design/file-format.md). Used by the
// escaper of the sink and by the reader's repair. No state, any thread.
#pragma once
#include <cstddef>
#include <cstring>

namespace dft::format {

inline constexpr std::size_t kVisibleByte = 6;  // characters

// `to` has room for kVisibleByte characters. Returns their end.
inline char* write_visible_byte(char* to, unsigned char byte) noexcept {
  constexpr char kHex[] = "0123456789abcdef";
  std::memcpy(to, "\\uef", 4);
  to[4] = kHex[byte >> 4];
  to[5] = kHex[byte & 15];
  return to + kVisibleByte;
}

}  // namespace dft::format
