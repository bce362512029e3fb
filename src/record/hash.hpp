// The 16-digit hashes that stand for hosts, files and strings in a trace (hhash, fhash, cmd_hash,
// ...). Called at start-up, when a path is first seen, and by readers; any thread, no allocation.
#pragma once
#include <cstdint>
#include <string_view>

namespace dft::record {

// Every second byte of the MD5 of the bytes, first one most significant: what existing traces hold.
std::uint64_t hash16(std::string_view bytes) noexcept;

// 16 lower-case hex digits, no terminator.
inline char* write_hex16(char* to, std::uint64_t value) noexcept {
  for (int shift = 60; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[(value >> shift) & 15];
  return to;
}

}  // namespace dft::record
