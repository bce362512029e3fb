// Sets of disjoint intervals in a packed form, a few bytes per interval: the times at
// which something was open, to be joined with those of other processes and machines.
// Exact. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dft::reader {

struct TimeRange {
  std::int64_t start;
  std::int64_t end;  // exclusive
};

// Sorts, and joins what overlaps or touches.
void join(std::vector<TimeRange>& intervals);
// Of joined intervals.
std::string pack(const std::vector<TimeRange>& joined);
// The length of the union of several packed sets. Throws std::runtime_error if one is not packed.
std::uint64_t union_length(std::span<const std::string_view> packed);

}  // namespace dft::reader
