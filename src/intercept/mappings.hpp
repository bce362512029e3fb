// Which files are mapped where: tells calls about files from calls about memory, and a page fault's
// file. Changed on the program's threads; the writer's thread looks at copies.
#pragma once
#include <cstddef>
#include <cstdint>

#include "intercept/file_table.hpp"

namespace dft::intercept {

struct MappedRange {
  std::uintptr_t begin;
  std::uintptr_t end;
  File* file;
  std::uint64_t offset;   // in the file, of `begin`
  std::uint64_t made_ns;  // of the wall clock
  std::uint64_t gone_ns;  // kThere: it is still mapped
  bool reported;          // what was touched of it is in the trace
};
inline constexpr std::uint64_t kThere = ~std::uint64_t{0};
inline constexpr std::size_t kMostMappings = 4096;
// So many of those that went last are kept, for page faults that have not been looked at yet.
inline constexpr std::size_t kMostGone = 256;

void remember_mapping(const void* at, std::size_t length, File* file,
                      std::uint64_t offset) noexcept;
// The file that is mapped at this address, or nullptr.
File* mapped_file(const void* at) noexcept;
// The part of a mapped file that contains this address. False if there is none.
bool mapping_at(const void* at, MappedRange& out) noexcept;
// The mapping is gone, or replaced.
void forget_mapping(const void* at, std::size_t length) noexcept;

[[nodiscard]] bool has_mappings() noexcept;
// What is mapped and what was until recently. Returns how many, at most kMostMappings + kMostGone.
std::size_t copy_mappings(MappedRange* to) noexcept;
// What was touched of the mapping that begins here is in the trace.
void mark_reported(std::uintptr_t begin) noexcept;
// The wall clock, read from the kernel.
std::uint64_t wall_clock_ns() noexcept;

}  // namespace dft::intercept
