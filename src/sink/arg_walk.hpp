// The arguments of a record, one after the other. Treats them as if they came from a hostile file.
// Called by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>

#include "record/event.hpp"

namespace dft::sink {

struct Field {
  record::Arg head;
  std::string_view bytes;
};

// Walks arguments; a length that does not fit ends the walk.
class Fields {
 public:
  Fields(const std::byte* from, const std::byte* to) : at_(from), end_(to) {}
  bool next(Field& out) {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(record::Arg)) return false;
    std::memcpy(&out.head, at_, sizeof(record::Arg));
    at_ += sizeof(record::Arg);
    out.bytes = {};
    if (record::has_bytes(out.head.type)) {
      const auto left = static_cast<std::size_t>(end_ - at_);
      if (out.head.word > left || record::padded(out.head.word) > left) return false;
      out.bytes = {reinterpret_cast<const char*>(at_), out.head.word};
      at_ += record::padded(out.head.word);
    }
    return true;
  }

  // What has not been walked yet.
  [[nodiscard]] const std::byte* rest() const { return at_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

}  // namespace dft::sink
