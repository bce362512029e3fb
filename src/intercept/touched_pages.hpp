// How much of a mapped file a process has touched: the pages that the kernel has put into its page
// table. It also puts in neighbors of a touched page that are in memory (by default within 64 KiB).
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::intercept {

struct TouchedPages {
  bool known;
  std::uint64_t bytes;
  std::uint64_t ranges;  // of adjacent pages
  std::uint64_t first;   // bytes from the beginning to the first and behind the last of them
  std::uint64_t last;
};

// Opens a file for a moment: on the only thread of a process, or on one with a descriptor table of
// its own.
TouchedPages count_touched(std::uintptr_t begin, std::uintptr_t end) noexcept;

}  // namespace dft::intercept
