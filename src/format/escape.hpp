// The only place where external bytes become JSON text. No allocation.
// Called by the encoder and the preamble, on the thread that drains or opens the session.
#pragma once
#include <cstddef>
#include <string_view>

namespace dft::format {

// Escaping grows a string by at most this factor.
inline constexpr std::size_t kEscapeGrowth = 6;

// Writes the body of a JSON string (without quotes) and returns its end. Valid UTF-8 is copied;
// quotes, backslashes and control characters are escaped. A byte B outside valid UTF-8 becomes
// the private-use character U+EF00+B, written \uefXX, so that it is visible and reversible. Input
// that already contains U+EF80 to U+EFFF has the bytes of those characters escaped in the same
// way, so the mapping is unambiguous.
char* escape(char* to, std::string_view bytes) noexcept;

// Length of the valid UTF-8 sequence that starts with a non-ASCII byte; 0 if there is none, or if
// it encodes one of the characters that stand for a byte.
std::size_t utf8_sequence(const unsigned char* p, std::size_t left) noexcept;

}  // namespace dft::format
