// Independent gzip members of whole lines, with their size in the header, so that readers can
// split a file without an index. Used on the draining thread and by recoverers.
#pragma once
#include <cstdint>
#include <string_view>

#include "sink/mmap_buffer.hpp"

namespace dft::sink {

class Gzip {
 public:
  explicit Gzip(unsigned level) noexcept : level_(level < 4 ? level : 1) {}
  // Replaces the contents of `out` by one member. False if there is no memory.
  bool member(std::string_view text, std::uint32_t lines, MmapBuffer& out) noexcept;
  void free() noexcept { work_.free(); }

 private:
  unsigned level_;
  MmapBuffer work_;  // the compressor's state and tables
};

}  // namespace dft::sink
