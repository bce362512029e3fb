// The interned strings of a spool, escaped once and found by id.
// Filled and read by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sink/mmap_buffer.hpp"

namespace dft::sink {

// True for the three arguments that every event starts with: others must not shadow them.
bool is_reserved(std::string_view key) noexcept;

// The interned strings of one spool, escaped.
class NameTable {
 public:
  // Adds the NameRecords in one chunk's payload.
  bool read(const std::byte* payload, std::size_t size) noexcept;
  // The escaped text, with kStep readable bytes; "?" for an unknown id.
  [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept;
  // The same for the key of an argument.
  struct ArgKey {
    std::string_view text;
    bool reserved;
  };
  [[nodiscard]] ArgKey key(std::uint32_t id) const noexcept;
  // Changes with every read(); never 0.
  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  void free() noexcept {
    escaped_.free();
    ranges_.free();
  }

 private:
  struct TextRange {
    std::uint32_t offset;
    std::uint32_t length : 31;
    std::uint32_t reserved : 1;
  };

  std::uint32_t version_ = 1;
  MmapBuffer escaped_;  // with kStep bytes of slack at its end
  MmapBuffer ranges_;   // of TextRange, indexed by id
};

}  // namespace dft::sink
