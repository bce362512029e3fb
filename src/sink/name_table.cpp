#include "sink/name_table.hpp"

#include <cstring>

#include "buffer/layout.hpp"
#include "format/escape.hpp"
#include "sink/json_write.hpp"

namespace dft::sink {
namespace {

constexpr char kMissing[kStep + 1] = "?                               ";

}  // namespace

bool is_reserved(std::string_view key) noexcept {
  return key == "hhash" || key == "p_idx" || key == "level";
}

bool NameTable::read(const std::byte* payload, std::size_t size) noexcept {
  std::size_t at = 0;
  while (size - at >= sizeof(buffer::NameRecord)) {
    buffer::NameRecord head;
    std::memcpy(&head, payload + at, sizeof head);
    const std::size_t whole = record::padded(sizeof head + head.length);
    if (whole > size - at || head.id == 0 || head.id > (1u << 20)) return false;
    const std::size_t index = std::size_t{head.id} * sizeof(TextRange);
    if (ranges_.size() < index + sizeof(TextRange)) {
      const std::size_t before = ranges_.size();
      if (!ranges_.ensure(index + sizeof(TextRange) - before)) return false;
      std::memset(ranges_.end(), 0, index + sizeof(TextRange) - before);
      ranges_.resize(index + sizeof(TextRange));
    }
    if (!escaped_.ensure(head.length * format::kEscapeGrowth + kStep)) return false;
    const auto offset = static_cast<std::uint32_t>(escaped_.size());
    char* end = format::escape(
        escaped_.end(), {reinterpret_cast<const char*>(payload + at + sizeof head), head.length});
    escaped_.set_end(end);
    const std::uint32_t length = static_cast<std::uint32_t>(escaped_.size()) - offset;
    const bool reserved = sink::is_reserved(escaped_.view().substr(offset));
    const TextRange range{offset, length & 0x7fffffff, reserved};
    std::memcpy(ranges_.data() + index, &range, sizeof range);
    at += whole;
    ++version_;
  }
  return true;
}

std::string_view NameTable::text(std::uint32_t id) const noexcept { return key(id).text; }

NameTable::ArgKey NameTable::key(std::uint32_t id) const noexcept {
  const std::size_t index = std::size_t{id} * sizeof(TextRange);
  if (id == 0 || index + sizeof(TextRange) > ranges_.size()) return {{kMissing, 1}, false};
  TextRange range;
  std::memcpy(&range, ranges_.view().data() + index, sizeof range);
  return {{escaped_.view().data() + range.offset, range.length}, range.reserved != 0};
}

}  // namespace dft::sink
