// Exact interval arithmetic: for how long each set of lanes was open at once, per process, per
// window of its time (a step) and per equal piece of it. Unions and intersections of lanes are
// sums of these rows. Used by the Python extension, on one thread.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "reader/arrow/int_table.hpp"
#include "reader/intervals/intervals.hpp"

namespace dft::reader {

class Sweep {
 public:
  static constexpr std::int64_t kLanes = 63;  // sets are the bits of a number that is not negative

  // A lane is open from start (inside) to end (outside). Any order; spans may overlap and nest.
  void span(std::int64_t process, std::int64_t lane, std::int64_t start, std::int64_t end);
  // Windows of a process must not overlap; ids are the caller's.
  void window(std::int64_t process, std::int64_t id, std::int64_t start, std::int64_t end);

  // Rows (kind, process, key, lanes, ns), of kind 0: the whole process, 1: the window `key`,
  // 2: the piece of 2^shift ns that begins at `key`. Sets that were never open have no row.
  IntTable take(int shift);
  // For these lanes (a set) the next take() also gathers when they were open in any process.
  void gather(std::int64_t lanes) { gathered_lanes_ = lanes; }
  // By lane, packed; after take().
  std::map<int, std::string> take_gathered();

 private:
  struct Window {
    std::int64_t start;
    std::int64_t end;
    std::int64_t id;
  };
  // Disjoint and sorted while spans come in order; tidy() sorts and joins them otherwise.
  struct SweepLane {
    std::vector<TimeRange> spans;
    bool sorted = true;
  };
  struct SweepProcess {
    std::array<std::int32_t, kLanes> lane_of;
    std::vector<std::pair<int, SweepLane>> lanes;
    std::vector<Window> windows;
    SweepProcess() { lane_of.fill(-1); }
  };
  class Totals;
  SweepProcess& process(std::int64_t number);
  static void tidy(SweepLane& lane);
  static void sweep(SweepProcess& process, Totals& sums);

  std::int64_t gathered_lanes_ = 0;
  std::map<int, std::vector<TimeRange>> gathered_;
  std::map<std::int64_t, SweepProcess> processes_;
  std::int64_t last_number_ = 0;
  SweepProcess* last_ = nullptr;
};

}  // namespace dft::reader
