// A first pass over a file that matches the beginnings and ends of its spans.
#include "reader/input/pairs.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "reader/input/block.hpp"
#include "reader/parse/text_map.hpp"

namespace dft::reader {

struct Pairs::Half {
  std::uint64_t track;  // process and thread
  std::int64_t ts;
  std::uint64_t name;  // 0: it has none
  std::uint32_t block;
  std::uint32_t index;
  bool end;
};

namespace {

// Numbers of processes and threads may be texts.
std::uint64_t track_of(const Event& event) {
  std::uint64_t hash = 1;
  const auto add = [&](EventHas flag, std::int64_t number, std::string_view key) {
    if ((event.has & flag) != 0) {
      hash = hash_text({reinterpret_cast<const char*>(&number), sizeof number}, hash);
      return;
    }
    for (const JsonField& field : event.extra) {
      if (field.key == key) hash = hash_text(field.value, hash + 1);
    }
  };
  add(kHasPid, event.pid, "pid");
  add(kHasTid, event.tid, "tid");
  return hash;
}

}  // namespace

Pairs::Pairs(const InFile& file) {
  FileQueue queue(file.path, file.index, file.size);
  Block block;
  std::vector<Half> halves;
  while (queue.next(block.item())) {
    block.load();
    block.leave_halves();
    const std::uint64_t ordinal = block.ordinal();
    if (fates_.size() <= ordinal) fates_.resize(ordinal + 1);
    std::vector<std::int64_t>& fates = fates_[ordinal];
    block.records([&](const Event& event, std::uint64_t) {
      if (!is_half(event.phase)) return;
      const std::size_t index = fates.size();
      fates.push_back(kAlone);
      if ((event.has & kHasTs) == 0) return;
      const bool end = event.phase == kSpanEnd;
      const bool named = (event.has & kHasName) != 0 && !event.name.raw.empty();
      halves.push_back({track_of(event), event.ts, named ? hash_text(event.name.raw, 1) | 1 : 0,
                        static_cast<std::uint32_t>(ordinal), static_cast<std::uint32_t>(index),
                        end});
      if (end && !event.args.empty())
        arguments_.emplace(std::pair(ordinal, index), event.args_text);
    });
  }
  match(halves);
}

// In the order of time, as a viewer does: an end closes the last beginning of its name that is
// open, or the last one of all if it has no name.
void Pairs::match(std::vector<Half>& halves) {
  std::stable_sort(halves.begin(), halves.end(), [](const Half& a, const Half& b) {
    return std::tie(a.track, a.ts) < std::tie(b.track, b.ts);
  });
  std::vector<const Half*> open;  // closed ones are nullptr until they are the last
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_name;  // places in `open`
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const Half& half = halves[i];
    if (i == 0 || halves[i - 1].track != half.track) {
      open.clear();
      by_name.clear();
    }
    if (!half.end) {
      by_name[half.name].push_back(open.size());
      open.push_back(&half);
      continue;
    }
    while (!open.empty() && open.back() == nullptr) open.pop_back();
    if (open.empty()) continue;
    const auto known = by_name.find(half.name != 0 ? half.name : open.back()->name);
    if (known == by_name.end() || known->second.empty()) continue;
    const Half& begin = *open[known->second.back()];
    open[known->second.back()] = nullptr;
    known->second.pop_back();
    std::int64_t dur = 0;
    if (__builtin_sub_overflow(half.ts, begin.ts, &dur)) continue;
    fates_[begin.block][begin.index] = dur;
    fates_[half.block][half.index] = kTaken;
    // The arguments of both are those of the span.
    auto said = arguments_.extract(std::pair(std::uint64_t{half.block}, std::size_t{half.index}));
    if (!said.empty()) {
      arguments_.insert_or_assign(std::pair(std::uint64_t{begin.block}, std::size_t{begin.index}),
                                  std::move(said.mapped()));
    }
  }
}

Pairs::Match Pairs::find(std::uint64_t block, std::size_t index) const {
  Match out;
  // A file that changed meanwhile has others.
  if (block >= fates_.size() || index >= fates_[block].size()) return out;
  const std::int64_t fate = fates_[block][index];
  if (fate == kTaken) out.fate = Fate::kTaken;
  if (fate < 0) return out;
  out.fate = Fate::kSpan;
  out.dur = fate;
  const auto said = arguments_.find({block, index});
  if (said != arguments_.end()) out.arguments = &said->second;
  return out;
}

}  // namespace dft::reader
