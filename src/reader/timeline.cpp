#include "reader/timeline.hpp"

#include <algorithm>
#include <tuple>

#include "reader/table.hpp"

namespace dft::reader {
namespace {

struct Nothing {};

// One block's share; its numbers are its own.
struct Part {
  std::vector<Item> items;
  std::vector<Track> tracks;
  std::vector<TimelineProcess> processes;
  std::vector<Word> words;
  std::string payloads;
};

class PartMaker {
 public:
  PartMaker(std::uint32_t file, Timeline::Encode encode) : file_(file), encode_(encode) {}

  void add(const Event& event) {
    const std::uint32_t process = process_of(event);
    const std::uint32_t track = track_of(process, event.tid);
    if (!event.is_event()) {
      note(event, process, track);
      return;
    }
    bool fresh = false;
    const std::uint32_t word = words_.find(event.name.raw, event.category.raw, 0, fresh);
    if (fresh) {
      std::string one;
      std::string two;
      part.words.push_back(
          {std::string(plain_text(event.name.raw, event.name.escaped, event.valid_utf8, one)),
           std::string(
               plain_text(event.category.raw, event.category.escaped, event.valid_utf8, two))});
    }
    const std::size_t before = part.payloads.size();
    encode_(event, part.payloads);
    std::int64_t dur = std::max<std::int64_t>(event.dur, 0);
    if (std::int64_t end = 0; __builtin_add_overflow(event.ts, dur, &end)) dur = 0;
    part.items.push_back({event.ts, dur, track, word, before,
                          static_cast<std::uint32_t>(part.payloads.size() - before), event.phase});
  }

  Part part;

 private:
  static std::string argument(const Event& event, std::string_view key) {
    std::string scratch;
    for (const Field& field : event.args) {
      if (field.key != key) continue;
      return std::string(
          plain_text(field.value, field.kind == Kind::kEscaped, event.valid_utf8, scratch));
    }
    return {};
  }

  std::uint32_t process_of(const Event& event) {
    const Field* named = host_of(event);
    const std::string_view host = named != nullptr ? named->value : std::string_view();
    auto& list = part.processes;
    // An event that names no host belongs to the process of its number.
    const auto same = [&](const TimelineProcess& p) {
      return p.pid == event.pid && (host.empty() || p.host.empty() || p.host == host);
    };
    if (last_ < list.size() && same(list[last_])) {
      if (list[last_].host.empty()) list[last_].host = host;
      return last_;
    }
    const auto found = std::find_if(list.begin(), list.end(), same);
    last_ = static_cast<std::uint32_t>(found - list.begin());
    if (found == list.end()) list.push_back({file_, event.pid, std::string(host), {}, {}});
    return last_;
  }

  std::uint32_t track_of(std::uint32_t process, std::int64_t tid) {
    const auto same = [&](const Track& t) { return t.process == process && t.tid == tid; };
    if (last_track_ < part.tracks.size() && same(part.tracks[last_track_])) return last_track_;
    const auto [found, fresh] = tracks_.emplace(std::make_pair(process, tid),
                                                static_cast<std::uint32_t>(part.tracks.size()));
    if (fresh) part.tracks.push_back({process, tid, {}});
    last_track_ = found->second;
    return last_track_;
  }

  void note(const Event& event, std::uint32_t process, std::uint32_t track) {
    const std::string_view name = event.name.raw;
    if (is(name, "thread_name")) {
      part.tracks[track].name = argument(event, "name");
    } else if (is(name, "process_name")) {
      part.processes[process].name = argument(event, "name");
    } else if (is(name, "PR") && argument(event, "name") == "rank") {
      part.processes[process].rank = argument(event, "value");
    }
  }

  std::uint32_t file_;
  Timeline::Encode encode_;
  TextTable<Nothing> words_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> tracks_;
  std::uint32_t last_ = ~0U;
  std::uint32_t last_track_ = ~0U;
};

void keep(std::string& mine, std::string& theirs) {
  if (mine.empty()) mine = std::move(theirs);
}

}  // namespace

void Timeline::read(const std::vector<std::string>& paths, unsigned threads, Encode encode,
                    Control* control) {
  OrderedScan<Part> scan(
      paths, threads,
      [encode](unsigned, Block& block) {
        PartMaker maker(block.file().index, encode);
        block.records([&](const Event& event, std::uint64_t) { maker.add(event); });
        return std::move(maker.part);
      },
      control);
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<std::uint32_t>> by_pid;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> by_tid;
  std::map<std::pair<std::string, std::string>, std::uint32_t> by_word;
  while (auto part = scan.next()) {
    std::vector<std::uint32_t> process_map;
    for (TimelineProcess& process : part->processes) {
      auto& same = by_pid[{process.file, process.pid}];
      const auto found = std::find_if(same.begin(), same.end(), [&](std::uint32_t i) {
        return process.host.empty() || processes[i].host.empty() ||
               processes[i].host == process.host;
      });
      if (found == same.end()) {
        same.push_back(static_cast<std::uint32_t>(processes.size()));
        process_map.push_back(same.back());
        processes.push_back(std::move(process));
      } else {
        TimelineProcess& mine = processes[*found];
        keep(mine.host, process.host);
        keep(mine.rank, process.rank);
        keep(mine.name, process.name);
        process_map.push_back(*found);
      }
    }
    std::vector<std::uint32_t> track_map;
    for (Track& track : part->tracks) {
      track.process = process_map[track.process];
      const auto [found, fresh] = by_tid.emplace(std::make_pair(track.process, track.tid),
                                                 static_cast<std::uint32_t>(tracks.size()));
      if (fresh) {
        tracks.push_back(std::move(track));
      } else {
        keep(tracks[found->second].name, track.name);
      }
      track_map.push_back(found->second);
    }
    std::vector<std::uint32_t> word_map;
    for (Word& word : part->words) {
      const auto [found, fresh] = by_word.emplace(std::make_pair(word.name, word.category),
                                                  static_cast<std::uint32_t>(words.size()));
      if (fresh) words.push_back(std::move(word));
      word_map.push_back(found->second);
    }
    for (Item item : part->items) {
      item.track = track_map[item.track];
      item.name = word_map[item.name];
      item.payload += payloads.size();
      items.push_back(item);
    }
    payloads += part->payloads;
  }
  outcome = scan.outcome();
}

void Timeline::sort() {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.track, a.ts, b.dur) < std::tie(b.track, b.ts, a.dur);
  });
  first = 0;
  bool any = false;
  for (const Item& item : items) {
    if (item.ts != 0 && (!any || item.ts < first)) {
      first = item.ts;
      any = true;
    }
  }
}

}  // namespace dft::reader
