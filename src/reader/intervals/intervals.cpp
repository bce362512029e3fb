// Joining, packing and measuring of sets of intervals. Called by the sweep and by reports.
#include "reader/intervals/intervals.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>

namespace dft::reader {
namespace {

void put(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Each start is stored as the distance from the end before, seven bits per byte.
class Unpacked {
 public:
  explicit Unpacked(std::string_view packed) : rest_(packed) {}
  bool next(TimeRange& out) {
    if (rest_.empty()) return false;
    out.start = static_cast<std::int64_t>(static_cast<std::uint64_t>(at_) + take());
    out.end = static_cast<std::int64_t>(static_cast<std::uint64_t>(out.start) + take());
    at_ = out.end;
    return true;
  }

 private:
  std::uint64_t take() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("these are no packed intervals");
  }
  std::string_view rest_;
  std::int64_t at_ = 0;
};

}  // namespace

void join(std::vector<TimeRange>& intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeRange& a, const TimeRange& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const TimeRange& next : intervals) {
    if (kept != 0 && next.start <= intervals[kept - 1].end) {
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    } else {
      intervals[kept++] = next;
    }
  }
  intervals.resize(kept);
}

std::string pack(const std::vector<TimeRange>& joined) {
  std::string out;
  std::int64_t at = 0;
  for (const TimeRange& next : joined) {
    put(out, static_cast<std::uint64_t>(next.start) - static_cast<std::uint64_t>(at));
    put(out, static_cast<std::uint64_t>(next.end) - static_cast<std::uint64_t>(next.start));
    at = next.end;
  }
  return out;
}

std::uint64_t union_length(std::span<const std::string_view> packed) {
  std::vector<Unpacked> sets(packed.begin(), packed.end());
  struct Next {
    TimeRange interval;
    std::size_t set;
    bool operator<(const Next& other) const { return interval.start > other.interval.start; }
  };
  std::priority_queue<Next> queue;
  const auto advance = [&](std::size_t set) {
    Next next{{}, set};
    if (sets[set].next(next.interval)) queue.push(next);
  };
  for (std::size_t i = 0; i < sets.size(); ++i) advance(i);
  std::uint64_t length = 0;
  std::int64_t until = INT64_MIN;
  while (!queue.empty()) {
    const Next next = queue.top();
    queue.pop();
    const std::int64_t start = std::max(next.interval.start, until);
    if (next.interval.end > start) {
      length += static_cast<std::uint64_t>(next.interval.end) - static_cast<std::uint64_t>(start);
      until = next.interval.end;
    }
    advance(next.set);
  }
  return length;
}

}  // namespace dft::reader
