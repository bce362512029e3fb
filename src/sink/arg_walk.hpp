// Iterates over the arguments of a record, treating them as input from a hostile file.
// Used by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>

#include "record/event.hpp"

namespace dft::sink {

struct ArgView {
  record::Arg head;
  std::string_view bytes;
};

// Iterates over arguments; stops at a length that does not fit.
class ArgCursor {
 public:
  ArgCursor(const std::byte* from, const std::byte* to) : at_(from), end_(to) {}
  bool next(ArgView& out) {
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

  // Where the next argument starts.
  [[nodiscard]] const std::byte* rest() const { return at_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

}  // namespace dft::sink
