// The 16-digit hashes that identify hosts, files and strings in a trace (hhash, fhash, cmd_hash,
// ...). Called at start-up, when a path is first seen, and by readers; any thread, no allocation.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dft::format {

// Every second byte of the MD5 digest, most significant first, as in existing traces.
std::uint64_t hash16(std::string_view bytes) noexcept;

// Eight lower-case hex digits in memory order: spreads the nibbles to one byte each, then moves
// those above 9 to the letters.
inline std::uint64_t hex8(std::uint32_t value) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t digits = __builtin_bswap32(value);
  digits = (digits | digits << 16) & 0x0000ffff0000ffff;
  digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
  digits = (digits >> 4 | digits << 8) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
  return digits + 0x3030303030303030 + letters * ('a' - '0' - 10);
}

// Writes 16 lower-case hex digits, no terminator.
inline char* write_hex16(char* to, std::uint64_t value) noexcept {
  const std::uint64_t digits[2] = {hex8(static_cast<std::uint32_t>(value >> 32)),
                                   hex8(static_cast<std::uint32_t>(value))};
  std::memcpy(to, digits, sizeof digits);
  return to + sizeof digits;
}

}  // namespace dft::format
