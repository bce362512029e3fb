// The interned strings of a spool, escaped once and found by their ids.
// Filled and read by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sink/text.hpp"

namespace dft::sink {

// Interned strings as the spool holds them, escaped once.
class NameTable {
 public:
  // Takes in the NameRecords of one chunk's payload.
  bool read(const std::byte* payload, std::size_t size) noexcept;
  // The escaped text; "?" for an id that is not there.
  [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept;
  void free() noexcept {
    escaped_.free();
    places_.free();
  }

 private:
  struct Place {
    std::uint32_t offset;
    std::uint32_t length;
  };
  Text escaped_;
  Text places_;  // of Place, indexed by id
};

}  // namespace dft::sink
