// Writes pieces of JSON text at a pointer; the caller has made room.
// Called by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dft::sink {

template <std::size_t N>
inline char* put(char* to, const char (&literal)[N]) {
  std::memcpy(to, literal, N - 1);
  return to + N - 1;
}
inline char* put(char* to, std::string_view text) {
  if (text.empty()) return to;  // an empty view may be null, which memcpy does not allow
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}
// Copies a fixed kBytes (usually all of it), then any tail. Both buffers need kBytes of slack.
inline constexpr std::size_t kStep = 32;
template <std::size_t kBytes = kStep>
inline char* put_in_steps(char* to, const char* text, std::size_t size) {
  std::memcpy(to, text, kBytes);
  if (size > kBytes) [[unlikely]]
    std::memcpy(to + kBytes, text + kBytes, size - kBytes);
  return to + size;
}

inline constexpr std::uint32_t kEightDigits = 100'000'000;
// The eight digits of a number below kEightDigits, one per byte, the first one lowest: splits all
// parts in half, three times.
inline std::uint64_t digits8(std::uint32_t value) {
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t fours = value / 10000 | static_cast<std::uint64_t>(value % 10000) << 32;
  const std::uint64_t hundreds = (fours * 5243 >> 19) & 0x0000007f0000007f;
  const std::uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  const std::uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
  return tens | (twos - tens * 10) << 8;
}
inline char* put_digits8(char* to, std::uint32_t value) {
  const std::uint64_t text = digits8(value) | 0x3030303030303030;
  std::memcpy(to, &text, sizeof text);
  return to + sizeof text;
}

// Numbers take at most 20 bytes, but may write up to 24.
template <std::unsigned_integral T>
inline char* number(char* to, T value) {
  if (value < 10) {
    *to = static_cast<char>('0' + value);
    return to + 1;
  }
  if (value >= kEightDigits) {
    to = number(to, static_cast<T>(value / kEightDigits));
    return put_digits8(to, static_cast<std::uint32_t>(value % kEightDigits));
  }
  const std::uint64_t digits = digits8(static_cast<std::uint32_t>(value));
  const auto zeros = static_cast<unsigned>(std::countr_zero(digits | std::uint64_t{1} << 56)) & ~7u;
  const std::uint64_t text = (digits | 0x3030303030303030) >> zeros;
  std::memcpy(to, &text, sizeof text);
  return to + (8 - zeros / 8);
}
template <std::signed_integral T>
inline char* number(char* to, T value) {
  auto size = static_cast<std::make_unsigned_t<T>>(value);
  if (value < 0) {
    *to++ = '-';
    size = static_cast<std::make_unsigned_t<T>>(0) - size;
  }
  return number(to, size);
}

// JSON has no NaN and no infinity. A whole number keeps its ".0", so that readers see its type.
inline char* real(char* to, double value) {
  if (!std::isfinite(value)) return put(to, "null");
  char* end = std::to_chars(to, to + 32, value).ptr;
  for (const char* p = to; p != end; ++p) {
    if (*p == '.' || *p == 'e') return end;
  }
  return put(end, ".0");
}

}  // namespace dft::sink
