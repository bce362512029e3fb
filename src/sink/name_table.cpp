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
    const std::size_t index = std::size_t{head.id} * sizeof(Place);
    if (places_.size() < index + sizeof(Place)) {
      const std::size_t before = places_.size();
      if (!places_.ensure(index + sizeof(Place) - before)) return false;
      std::memset(places_.end(), 0, index + sizeof(Place) - before);
      places_.resize(index + sizeof(Place));
    }
    if (!escaped_.ensure(head.length * kEscapeGrowth + kStep)) return false;
    const auto offset = static_cast<std::uint32_t>(escaped_.size());
    char* end = escape(escaped_.end(),
                       {reinterpret_cast<const char*>(payload + at + sizeof head), head.length});
    escaped_.set_end(end);
    const std::uint32_t length = static_cast<std::uint32_t>(escaped_.size()) - offset;
    const bool reserved = sink::is_reserved(escaped_.view().substr(offset));
    const Place place{offset, length & 0x7fffffff, reserved};
    std::memcpy(places_.data() + index, &place, sizeof place);
    at += whole;
    ++version_;
  }
  return true;
}

std::string_view NameTable::text(std::uint32_t id) const noexcept { return key(id).text; }

NameTable::Key NameTable::key(std::uint32_t id) const noexcept {
  const std::size_t index = std::size_t{id} * sizeof(Place);
  if (id == 0 || index + sizeof(Place) > places_.size()) return {{kMissing, 1}, false};
  Place place;
  std::memcpy(&place, places_.view().data() + index, sizeof place);
  return {{escaped_.view().data() + place.offset, place.length}, place.reserved != 0};
}

}  // namespace dft::sink
