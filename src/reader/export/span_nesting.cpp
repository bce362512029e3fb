// Arranges the spans of a forest so that those of one row nest: viewers drop a span that begins
// inside another one and ends after it. Called by SpanForest::arrange, on one thread.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "format/lane_ids.hpp"
#include "reader/export/span_forest.hpp"

namespace dft::reader {
namespace {

constexpr std::int64_t kThreads = std::int64_t{1} << format::kThreadBits;

// Rows of one thread: the first has all spans that nest, each further one those that cross the
// rows before.
class ThreadRows {
 public:
  ThreadRows(std::vector<Item>& items, std::int64_t unit) : items_(items), unit_(unit) {}

  int place(Item& item) {
    for (std::size_t row = 0;; ++row) {
      if (row == open_.size()) open_.emplace_back();
      if (fits(open_[row], item)) {
        open_[row].push_back(static_cast<std::uint32_t>(&item - items_.data()));
        return static_cast<int>(row);
      }
    }
  }

 private:
  // A tracer that rounds beginnings and durations makes spans cross that did not: by less than a
  // unit of its clock. Those are cut to what they were, one after or inside the other.
  bool fits(std::vector<std::uint32_t>& open, Item& item) {
    while (!open.empty() && items_[open.back()].end() <= item.ts) open.pop_back();
    std::size_t left = open.size();
    std::int64_t cut = 0;
    for (; left != 0; --left) {
      const Item& around = items_[open[left - 1]];
      const std::int64_t outside = item.end() - around.end();
      if (outside <= 0) break;
      const std::int64_t inside = around.end() - item.ts;
      if (outside <= unit_ && outside <= inside) {
        cut = outside;
        break;
      }
      if (inside > unit_) return false;
    }
    for (std::size_t i = left; i < open.size(); ++i) {
      Item& before = items_[open[i]];
      before.dur = item.ts - before.ts;
    }
    open.resize(left);
    item.dur -= cut;
    return true;
  }

  std::vector<Item>& items_;
  std::int64_t unit_;
  std::vector<std::vector<std::uint32_t>> open_;
};

}  // namespace

void SpanForest::sort() {
  order.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_event) order.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    const Item& one = items[a];
    const Item& two = items[b];
    return std::tie(one.track, one.ts, two.dur, a) < std::tie(two.track, two.ts, one.dur, b);
  });
  // Of those that began at one time, a span without length is before or inside the longer ones. The
  // numbers tell, if they agree with the lengths.
  std::vector<std::uint32_t> group;
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    const Item& lead = items[order[from]];
    bool known = true;
    for (to = from; to < order.size(); ++to) {
      const Item& item = items[order[to]];
      if (item.track != lead.track || item.ts != lead.ts) break;
      known = known && item.order >= 0;
    }
    if (!known || to - from < 2 || items[order[to - 1]].dur != 0) continue;
    group.assign(order.begin() + static_cast<std::ptrdiff_t>(from),
                 order.begin() + static_cast<std::ptrdiff_t>(to));
    std::stable_sort(group.begin(), group.end(), [this](std::uint32_t a, std::uint32_t b) {
      return items[a].order < items[b].order;
    });
    std::int64_t least = INT64_MAX;
    const bool agrees = std::all_of(group.begin(), group.end(), [&](std::uint32_t i) {
      if (items[i].dur == 0) return true;
      return items[i].dur <= std::exchange(least, items[i].dur);
    });
    if (agrees) {
      std::copy(group.begin(), group.end(), order.begin() + static_cast<std::ptrdiff_t>(from));
    }
  }
}

std::int64_t SpanForest::unit_of(std::uint32_t track) const {
  std::int64_t unit = 1;
  const FileClock& clock = scan_result.files[processes[tracks[track].process].file]->clock;
  for (int i = 0; i < clock.digits; ++i) unit *= 10;
  return unit;
}

void SpanForest::spread() {
  constexpr std::int64_t kStep = 1000;  // what a double can tell of a time of this age
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    const std::uint32_t track = items[order[from]].track;
    const std::int64_t ts = items[order[from]].ts;
    const std::int64_t most = unit_of(track) - kStep;
    std::int64_t shift = 0;
    for (to = from; to < order.size(); ++to) {
      Item& item = items[order[to]];
      if (item.track != track || item.ts != ts) break;
      const bool is_point = item.dur == 0;
      item.ts += shift;
      if (!is_point) item.dur -= shift;
      if (is_point && shift < most) shift += kStep;
    }
  }
}

void SpanForest::nest() {
  bool moved = false;
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    const std::uint32_t track = items[order[from]].track;
    ThreadRows rows_of_thread(items, unit_of(track));
    std::vector<std::uint32_t> lanes{track};
    for (to = from; to < order.size() && items[order[to]].track == track; ++to) {
    }
    for (std::size_t i = from; i < to; ++i) {
      Item& item = items[order[i]];
      if (!item.is_span()) continue;
      const auto lane = static_cast<std::size_t>(rows_of_thread.place(item));
      if (lane == 0) continue;
      if (lane == lanes.size()) {
        lanes.push_back(static_cast<std::uint32_t>(tracks.size()));
        Track row = tracks[track];
        row.lane = static_cast<int>(lane);
        tracks.push_back(std::move(row));
      }
      item.track = lanes[lane];
      moved = true;
    }
  }
  if (!moved) return;
  std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return items[a].track < items[b].track;
  });
}

// Threads keep their numbers, but for the main one of a process that is shown with another number:
// viewers know it by its equality.
void SpanForest::number_tracks() {
  std::set<std::pair<std::uint32_t, std::int64_t>> threads;
  for (const Track& track : tracks) threads.emplace(track.process, track.tid);
  // The tracer's own rows have no name: their number says whose they are. Other tracers number
  // threads as they like, so the thread itself has to be there.
  const auto crossing = [&](const Track& track) {
    const std::int64_t row = track.tid >> format::kThreadBits;
    const std::int64_t thread = track.tid % kThreads;
    if (row < 1 || row > format::kMostCrossing || !threads.contains({track.process, thread})) {
      return std::string();
    }
    return "thread " + std::to_string(thread) + " crossing " + std::to_string(row);
  };
  std::vector<std::set<std::int64_t>> taken(processes.size());
  const auto number = [&](Track& track, bool fresh) {
    const ForestProcess& process = processes[track.process];
    std::int64_t shown = track.tid == process.pid ? process.shown : track.tid;
    std::set<std::int64_t>& used = taken[track.process];
    if (fresh || shown < 0 || shown > INT32_MAX || !used.insert(shown).second) {
      shown = std::max(kThreads, used.empty() ? 0 : *used.rbegin() + 1);
      if (shown > INT32_MAX) {
        for (shown = kThreads; used.contains(shown);) ++shown;
      }
      used.insert(shown);
    }
    track.shown = shown;
    const std::string digits = std::to_string(track.tid);
    track.label = track.name;
    if (track.label.empty()) track.label = track.alias;
    if (track.label.empty()) track.label = crossing(track);
    if (track.label.empty() || track.label == digits) {
      track.label = track.tid == process.pid ? "main" : "thread " + digits;
    } else if (track.name.starts_with(std::to_string(track.tid % kThreads) + " crossing")) {
      track.label = "thread " + track.name;
    }
    if (track.lane > 0) track.label += " crossing " + std::to_string(track.lane);
  };
  // Real threads first: they have a right to their numbers.
  for (Track& track : tracks) {
    if (track.lane == 0 && track.alias.empty()) number(track, false);
  }
  for (Track& track : tracks) {
    if (track.lane != 0 || !track.alias.empty()) number(track, true);
  }
}

}  // namespace dft::reader
