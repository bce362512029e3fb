// The header of a gzip member of a trace file: it holds the size of the member and its lines, so
// that readers split a file without an index (docs/design/file-format.md). Written by the sink and
// by the reader's writers, read by the reader. No state, any thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dft::format {

// 10 bytes of gzip, and FEXTRA with one subfield "DF" of two little-endian 32-bit numbers: the size
// of the whole member, and the lines in it.
inline constexpr std::size_t kMemberHeader = 24;
// CRC-32 and the size of the text, as gzip has them.
inline constexpr std::size_t kMemberTrailer = 8;

struct MemberHeader {
  std::uint32_t size = 0;    // of the whole member
  std::uint32_t lines = 0;   // in it, without `[`
  std::uint32_t length = 0;  // of the header itself
};

// `to` has room for kMemberHeader bytes.
inline void write_member_header(char* to, std::uint32_t size, std::uint32_t lines) noexcept {
  std::memcpy(to, "\x1f\x8b\x08\x04\0\0\0\0\0\x03\x0c\0DF\x08\0", 16);
  std::memcpy(to + 16, &size, sizeof size);
  std::memcpy(to + 20, &lines, sizeof lines);
}

// Whether these bytes, at least three, begin a gzip member of any writer.
[[nodiscard]] inline bool is_gzip(std::string_view bytes) noexcept {
  return bytes.size() >= 3 && bytes[0] == '\x1f' && bytes[1] == '\x8b' && bytes[2] == '\x08';
}

// False if the header has no subfield "DF". Needs the header up to its extra field, which are the
// first kMemberHeader bytes where there is no other subfield.
[[nodiscard]] inline bool read_member_header(std::string_view bytes, MemberHeader& out) noexcept {
  constexpr char kExtraField = 4;
  if (bytes.size() < kMemberHeader || !is_gzip(bytes)) return false;
  // No other flag: a name or a comment would stand between the extra field and the data.
  if (bytes[3] != kExtraField) return false;
  const auto get16 = [&bytes](std::size_t position) {
    std::uint16_t value;
    std::memcpy(&value, bytes.data() + position, sizeof value);
    return value;
  };
  const auto get32 = [&bytes](std::size_t position) {
    std::uint32_t value;
    std::memcpy(&value, bytes.data() + position, sizeof value);
    return value;
  };
  const std::size_t length = get16(10);
  const std::size_t end = std::min(bytes.size(), 12 + length);
  for (std::size_t position = 12; position + 4 <= end;) {
    const std::size_t size = get16(position + 2);
    if (bytes[position] == 'D' && bytes[position + 1] == 'F' && size >= 8 && position + 12 <= end) {
      out.size = get32(position + 4);
      out.lines = get32(position + 8);
      out.length = static_cast<std::uint32_t>(12 + length);
      return out.size > out.length + kMemberTrailer;
    }
    position += 4 + size;
  }
  return false;
}

}  // namespace dft::format
