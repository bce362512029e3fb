// Pieces of JSON text, written where a pointer stands; the caller has made room.
// Called by the encoder, on whatever thread drains.
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace dft::sink {

template <std::size_t N>
inline char* put(char* to, const char (&literal)[N]) {
  std::memcpy(to, literal, N - 1);
  return to + N - 1;
}
inline char* put(char* to, std::string_view text) {
  if (text.empty()) return to;  // an empty view may have no address, which memcpy must not be given
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}
template <class T>
inline char* number(char* to, T value) {
  return std::to_chars(to, to + 24, value).ptr;
}

// JSON knows no NaN and no infinity; a whole float keeps its point, so that a reader sees its type.
inline char* real(char* to, double value) {
  if (!std::isfinite(value)) return put(to, "null");
  char* end = std::to_chars(to, to + 32, value).ptr;
  for (const char* p = to; p != end; ++p) {
    if (*p == '.' || *p == 'e') return end;
  }
  return put(end, ".0");
}

}  // namespace dft::sink
