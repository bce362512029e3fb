// Ranges as NVTX and ITT have them: nested per thread and domain, or process-wide with an id.
// Used on the program's threads.
#pragma once
#include <cstdint>

#include "hooks/open_spans.hpp"

namespace dft::hooks {

// The arguments of a range or of a mark.
struct RangeArgs {
  std::string_view domain;    // empty: the default one
  std::string_view category;  // empty: without a name
  std::uint32_t category_id = 0;
  record::ArgType payload_type = record::ArgType::kNull;  // kNull: none
  std::uint64_t payload = 0;
};

// Before the first range.
void prepare_ranges() noexcept;

// Opens a range inside the innermost one of the thread. Its level in its domain, from 0; -1 if it is
// not recorded.
int push_range(std::uint64_t domain, const Label& name, std::uint32_t category,
               const RangeArgs& args) noexcept;
// Ends the innermost range of the domain on this thread. Its level; -1 if there is none.
int pop_range(std::uint64_t domain) noexcept;

// Begins a range that may end on any thread and cross others. 0 if it is not recorded.
std::uint64_t start_range(const Label& name, std::uint32_t category,
                          const RangeArgs& args) noexcept;
// An id that is not known, or has ended already, does nothing.
void end_range(std::uint64_t id) noexcept;

void mark(const Label& name, std::uint32_t category, const RangeArgs& args) noexcept;

}  // namespace dft::hooks
