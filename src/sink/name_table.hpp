// The interned strings of a spool, escaped once and found by their ids.
// Filled and read by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sink/mmap_buffer.hpp"

namespace dft::sink {

// An argument may not hide the three that every event begins with.
bool is_reserved(std::string_view key) noexcept;

// Interned strings as the spool holds them, escaped once.
class NameTable {
 public:
  // Takes in the NameRecords of one chunk's payload.
  bool read(const std::byte* payload, std::size_t size) noexcept;
  // The escaped text, kStep bytes of which can be read; "?" for an id that is not there.
  [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept;
  // The same for the key of an argument.
  struct Key {
    std::string_view text;
    bool reserved;
  };
  [[nodiscard]] Key key(std::uint32_t id) const noexcept;
  // Changes with every read; never 0.
  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  void free() noexcept {
    escaped_.free();
    places_.free();
  }

 private:
  struct Place {
    std::uint32_t offset;
    std::uint32_t length : 31;
    std::uint32_t reserved : 1;
  };

  std::uint32_t version_ = 1;
  MmapBuffer escaped_;  // with kStep bytes of room behind its end
  MmapBuffer places_;   // of Place, indexed by id
};

}  // namespace dft::sink
