// Reads a Perfetto file that was just written, far enough to count its events.
#include <cstdio>
#include <string>

#include "reader/export/export.hpp"

namespace dft::reader {
namespace {

class Input {
 public:
  explicit Input(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {}
  ~Input() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const int byte = file_ == nullptr ? EOF : std::getc(file_);
      if (byte == EOF) return false;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool bytes(std::string& out, std::uint64_t size) {
    out.resize(size);
    return std::fread(out.data(), 1, size, file_) == size;
  }

 private:
  std::FILE* file_;
};

struct Member {
  unsigned id;
  unsigned wire;
  std::uint64_t number;
  std::string_view bytes;
};

bool next(std::string_view& text, Member& out) {
  const auto varint = [&](std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  std::uint64_t tag = 0;
  if (!varint(tag)) return false;
  out = {static_cast<unsigned>(tag >> 3), static_cast<unsigned>(tag & 7), 0, {}};
  if (out.wire == 0) return varint(out.number);
  std::uint64_t size = 8;
  if (out.wire == 2 && !varint(size)) return false;
  if (size > text.size()) return false;
  out.bytes = text.substr(0, size);
  text.remove_prefix(size);
  return true;
}

}  // namespace

std::uint64_t count_perfetto(const std::string& path) {
  constexpr unsigned kTrackEvent = 11;
  constexpr unsigned kType = 9;
  constexpr unsigned kCategory = 22;
  Input input(path);
  std::uint64_t count = 0;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::string packet;
  while (input.varint(tag) && input.varint(size) && input.bytes(packet, size)) {
    std::string_view rest = packet;
    Member member{};
    while (next(rest, member)) {
      if (member.id != kTrackEvent) continue;
      std::uint64_t type = 0;
      bool named = false;
      std::string_view inner = member.bytes;
      Member field{};
      while (next(inner, field)) {
        if (field.id == kType) type = field.number;
        if (field.id == kCategory && field.bytes == "event") named = true;
      }
      // A span begins, an instant, the first series of a counter.
      if (type == 1 || type == 3 || (type == 4 && named)) ++count;
    }
  }
  return count;
}

}  // namespace dft::reader
