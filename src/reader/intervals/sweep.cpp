// A sweep line over the spans of each process. Called by the Python extension for reports.
#include "reader/intervals/sweep.hpp"

#include <algorithm>
#include <limits>

namespace dft::reader {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The time of each set of lanes. A linear search: a process has few sets, and the last ones repeat.
class LaneTimes {
 public:
  void add(std::int64_t lanes, std::int64_t time) {
    for (auto& [set, sum] : sums_) {
      if (set == lanes) {
        sum += time;
        return;
      }
    }
    sums_.emplace_back(lanes, time);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>>& sorted() {
    std::sort(sums_.begin(), sums_.end());
    return sums_;
  }
  void clear() { sums_.clear(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> sums_;
};

}  // namespace

// Adds up which lanes were open between successive edges.
class Sweep::Totals {
 public:
  Totals(IntTable& out, int shift) : out_(out), shift_(shift) {}

  void begin(std::int64_t process, std::vector<Window>& windows) {
    process_ = process;
    std::sort(windows.begin(), windows.end(),
              [](const Window& a, const Window& b) { return a.start < b.start; });
    windows_ = &windows;
    at_ = 0;
    has_piece_ = false;
  }

  void add(std::int64_t lanes, std::int64_t from, std::int64_t to) {
    whole_.add(lanes, to - from);
    for (std::int64_t start = from; start < to;) {
      const std::int64_t piece = start >> shift_;
      if (!has_piece_ || piece != piece_number_) {
        flush_piece();
        piece_number_ = piece;
        has_piece_ = true;
      }
      // No overflow at the last piece, which may end at the largest number.
      const std::int64_t rest = (std::int64_t{1} << shift_) - (start - (piece << shift_));
      const std::int64_t stop = to - start <= rest ? to : start + rest;
      piece_.add(lanes, stop - start);
      start = stop;
    }
    while (at_ < windows_->size()) {
      const Window& window = (*windows_)[at_];
      if (window.start >= to) break;
      const std::int64_t start = std::max(window.start, from);
      const std::int64_t stop = std::min(window.end, to);
      if (start < stop) window_.add(lanes, stop - start);
      if (window.end > to) break;
      flush_window();
      ++at_;
    }
  }

  void end() {
    flush_piece();
    if (at_ < windows_->size()) flush_window();
    flush(whole_, 0, 0);
  }

 private:
  void flush(LaneTimes& set, std::int64_t kind, std::int64_t key) {
    for (const auto& [lanes, time] : set.sorted()) {
      const std::int64_t row[] = {kind, process_, key, lanes, time};
      for (std::size_t i = 0; i < out_.columns.size(); ++i) out_.columns[i].push_back(row[i]);
    }
    set.clear();
  }
  void flush_piece() {
    if (has_piece_) flush(piece_, 2, piece_number_ << shift_);
    has_piece_ = false;
  }
  void flush_window() { flush(window_, 1, (*windows_)[at_].id); }

  IntTable& out_;
  int shift_;
  std::int64_t process_ = 0;
  std::vector<Window>* windows_ = nullptr;
  std::size_t at_ = 0;
  std::int64_t piece_number_ = 0;
  bool has_piece_ = false;
  LaneTimes whole_;
  LaneTimes piece_;
  LaneTimes window_;
};

Sweep::SweepProcess& Sweep::process(std::int64_t number) {
  if (last_ == nullptr || last_number_ != number) {
    last_ = &processes_[number];
    last_number_ = number;
  }
  return *last_;
}

void Sweep::span(std::int64_t process_number, std::int64_t lane, std::int64_t start,
                 std::int64_t end) {
  if (start >= end || lane < 0 || lane >= kLanes) return;
  SweepProcess& owner = process(process_number);
  std::int32_t& index = owner.lane_of[static_cast<std::size_t>(lane)];
  if (index < 0) {
    index = static_cast<std::int32_t>(owner.lanes.size());
    owner.lanes.emplace_back(static_cast<int>(lane), SweepLane());
  }
  SweepLane& into = owner.lanes[static_cast<std::size_t>(index)].second;
  if (!into.spans.empty()) {
    TimeRange& last = into.spans.back();
    if (start >= last.start && start <= last.end) {
      last.end = std::max(last.end, end);
      return;
    }
    // A span that comes after the spans inside it replaces them.
    while (!into.spans.empty() && start <= into.spans.back().start &&
           end >= into.spans.back().end) {
      into.spans.pop_back();
    }
    if (!into.spans.empty() && start <= into.spans.back().end) into.sorted = false;
  }
  into.spans.push_back({start, end});
}

void Sweep::window(std::int64_t process_number, std::int64_t id, std::int64_t start,
                   std::int64_t end) {
  if (start < end) process(process_number).windows.push_back({start, end, id});
}

void Sweep::tidy(SweepLane& lane) {
  if (lane.sorted) return;
  join(lane.spans);
  lane.sorted = true;
}

void Sweep::sweep(SweepProcess& process, Totals& sums) {
  struct Cursor {
    std::int64_t next;  // the edge that comes
    std::size_t at;
    std::int64_t bit;
    const std::vector<TimeRange>* spans;
  };
  std::vector<Cursor> cursors;
  for (auto& [number, lane] : process.lanes) {
    tidy(lane);
    cursors.push_back({lane.spans[0].start, 0, std::int64_t{1} << number, &lane.spans});
  }
  std::int64_t lanes = 0;
  std::int64_t since = 0;
  while (!cursors.empty()) {
    std::int64_t now = kNever;
    for (const Cursor& cursor : cursors) now = std::min(now, cursor.next);
    if (lanes != 0) sums.add(lanes, since, now);
    since = now;
    for (std::size_t i = 0; i < cursors.size();) {
      Cursor& cursor = cursors[i];
      if (cursor.next != now) {
        ++i;
        continue;
      }
      const std::vector<TimeRange>& spans = *cursor.spans;
      if ((lanes & cursor.bit) == 0) {
        lanes |= cursor.bit;
        cursor.next = spans[cursor.at].end;
        ++i;
        continue;
      }
      lanes &= ~cursor.bit;
      if (++cursor.at < spans.size()) {
        cursor.next = spans[cursor.at].start;
        ++i;
      } else {
        cursor = cursors.back();
        cursors.pop_back();
      }
    }
  }
}

IntTable Sweep::take(int shift) {
  IntTable out;
  out.names = {"kind", "process", "key", "lanes", "ns"};
  out.columns.resize(out.names.size());
  Totals sums(out, shift);
  for (auto& [number, process] : processes_) {
    sums.begin(number, process.windows);
    sweep(process, sums);
    sums.end();
    for (auto& [lane, open] : process.lanes) {
      if ((gathered_lanes_ >> lane & 1) == 0) continue;
      std::vector<TimeRange>& all = gathered_[lane];
      all.insert(all.end(), open.spans.begin(), open.spans.end());
    }
    process = SweepProcess();
  }
  processes_.clear();
  last_ = nullptr;
  return out;
}

std::map<int, std::string> Sweep::take_gathered() {
  std::map<int, std::string> packed;
  for (auto& [lane, intervals] : gathered_) {
    join(intervals);
    packed.emplace(lane, pack(intervals));
    intervals = {};
  }
  gathered_.clear();
  return packed;
}

}  // namespace dft::reader
