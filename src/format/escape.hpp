// The one place where outside bytes become JSON text.
// Called by the encoder and by the preamble, on whatever thread drains; no allocation.
#pragma once
#include <cstddef>
#include <string_view>

namespace dft::sink {

// An escaped string takes at most this many times its bytes.
inline constexpr std::size_t kEscapeGrowth = 6;

// Writes the inside of a JSON string (no quotes) and returns its end. Valid UTF-8 stays as it is;
// quotes, backslashes and control characters are escaped. A byte B that is not part of valid UTF-8
// becomes the private character U+EF00+B, as \uefXX, so that it is visible and can be had back;
// where the input itself holds one of U+EF80 to U+EFFF, its bytes are treated the same way, so
// nothing is ambiguous.
char* escape(char* to, std::string_view bytes) noexcept;

// Length of the valid UTF-8 sequence that begins with a byte past ASCII; 0 if there is none, or if
// it is one that stands for a byte.
std::size_t utf8_sequence(const unsigned char* p, std::size_t left) noexcept;

}  // namespace dft::sink
