// Reads a trace into a SpanForest: worker threads make the parts of blocks, the caller's thread
// joins them in the order of the files.
#include "reader/export/span_forest.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "reader/export/roles.hpp"
#include "reader/input/limits.hpp"
#include "reader/parse/text_map.hpp"

namespace dft::reader {
namespace {

// One block's share; its numbers are its own.
struct Part {
  std::uint32_t file = 0;
  std::uint64_t ordinal = 0;
  std::vector<Item> items;
  std::vector<Track> tracks;
  std::vector<ForestProcess> processes;
  std::vector<SpanName> words;
  std::vector<std::pair<std::string, std::string>> strings;  // hash, text
  std::string payloads;
};

const JsonField* find_field(std::span<const JsonField> fields, std::string_view key) {
  const JsonField* found = nullptr;
  for (const JsonField& field : fields) {
    if (field.key == key) found = &field;
  }
  return found;
}

class PartMaker {
 public:
  PartMaker(const Block& block, SpanForest::Encode encode) : encode_(encode) {
    part.file = block.file().index;
    part.ordinal = block.ordinal();
    rank_ = block.file().rank;
  }

  void add(const Event& event) {
    const std::uint32_t process = process_of(event);
    const std::uint32_t track = track_of(process, event);
    const bool is_event = event.is_event();
    std::uint32_t word = 0;
    const std::size_t before = part.payloads.size();
    if (is_event) {
      word = word_of(event, part.processes[process]);
      encode_(event, part.payloads);
    } else {
      note(event, process, track);
    }
    std::int64_t dur = std::max<std::int64_t>(event.dur, 0);
    if (std::int64_t end = 0; __builtin_add_overflow(event.ts, dur, &end)) dur = 0;
    part.items.push_back({event.ts, dur, order_of(event), before,
                          static_cast<std::uint32_t>(part.payloads.size() - before), track, word,
                          event.phase, is_event, (event.has & kHasTs) != 0});
  }

  Part part;

 private:
  std::string text_of(const Event& event, const JsonField* field) {
    if (field == nullptr) return {};
    return std::string(
        plain_text(field->value, field->kind == JsonKind::kEscaped, event.valid_utf8, scratch_));
  }
  std::string argument(const Event& event, std::string_view key) {
    return text_of(event, find_field(event.args, key));
  }
  // Some tracers name a process or thread where others number it.
  std::string alias(const Event& event, EventHas number, std::string_view key) {
    if ((event.has & number) != 0) return {};
    return text_of(event, find_field(event.extra, key));
  }

  static std::int64_t order_of(const Event& event) {
    if ((event.has & kHasId) == 0) return -1;
    for (const JsonField& field : event.args) {
      if (is(field.key, "p_idx")) return event.id;
    }
    return -1;
  }

  std::uint32_t word_of(const Event& event, ForestProcess& process) {
    bool fresh = false;
    const std::uint32_t word = words_.find(event.name.raw, event.category.raw, 0, fresh);
    if (fresh) {
      std::string one;
      std::string two;
      SpanName text{
          std::string(plain_text(event.name.raw, event.name.escaped, event.valid_utf8, one)),
          std::string(
              plain_text(event.category.raw, event.category.escaped, event.valid_utf8, two))};
      words_.row(word) = work_of(text.category, text.name);
      part.words.push_back(std::move(text));
    }
    const WorkSigns& work = words_.row(word);
    process.computes = process.computes || work.computes;
    process.feeds = process.feeds || work.feeds;
    return word;
  }

  std::uint32_t process_of(const Event& event) {
    const JsonField* named = host_of(event);
    const std::string_view host = named != nullptr ? named->value : std::string_view();
    const std::string name = alias(event, kHasPid, "pid");
    auto& list = part.processes;
    // An event that names no host belongs to the process of its number.
    const auto same = [&](const ForestProcess& p) {
      return p.pid == event.pid && p.alias == name &&
             (host.empty() || p.host.empty() || p.host == host);
    };
    if (last_ < list.size() && same(list[last_])) {
      if (list[last_].host.empty()) list[last_].host = host;
      return last_;
    }
    std::vector<std::uint32_t>& known = by_pid_[event.pid];
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](std::uint32_t index) { return same(list[index]); });
    if (found == known.end()) {
      last_ = static_cast<std::uint32_t>(list.size());
      known.push_back(last_);
      ForestProcess fresh;
      fresh.file = part.file;
      fresh.pid = event.pid;
      fresh.host = host;
      fresh.alias = name;
      if (rank_ >= 0) fresh.rank = std::to_string(rank_);
      list.push_back(std::move(fresh));
    } else {
      last_ = *found;
      if (list[last_].host.empty()) list[last_].host = host;
    }
    return last_;
  }

  std::uint32_t track_of(std::uint32_t process, const Event& event) {
    std::string name = alias(event, kHasTid, "tid");
    const auto same = [&](const Track& t) {
      return t.process == process && t.tid == event.tid && t.alias == name;
    };
    if (last_track_ < part.tracks.size() && same(part.tracks[last_track_])) return last_track_;
    const auto [found, fresh] = tracks_.emplace(std::make_tuple(process, event.tid, name),
                                                static_cast<std::uint32_t>(part.tracks.size()));
    if (fresh) part.tracks.push_back({process, event.tid, {}, std::move(name)});
    last_track_ = found->second;
    return last_track_;
  }

  void note(const Event& event, std::uint32_t number, std::uint32_t track) {
    const std::string_view name = event.name.raw;
    ForestProcess& process = part.processes[number];
    if (is(name, "FH") || is(name, "SH") || is(name, "HH")) {
      // By its text as it stands in the events.
      const JsonField* hash = find_field(event.args, "value");
      if (hash != nullptr) part.strings.emplace_back(hash->value, argument(event, "name"));
    } else if (is(name, "thread_name")) {
      part.tracks[track].name = argument(event, "name");
    } else if (is(name, "process_name")) {
      process.name = argument(event, "name");
    } else if (is(name, "process_sort_index")) {
      process.sorted = true;
    } else if (is(name, "PR") && argument(event, "name") == "rank") {
      process.rank = argument(event, "value");
    } else if (is(name, "start") && event.is_own()) {
      const auto either = [&](std::string_view hash, std::string_view word) {
        const JsonField* found = find_field(event.args, hash);
        return text_of(event, found != nullptr ? found : find_field(event.args, word));
      };
      if (!process.started) process.began = event.ts;
      process.started = true;
      process.command = either("cmd_hash", "cmd");
      process.program = either("exec_hash", "exec");
      const JsonField* parent = find_field(event.args, "ppid");
      if (parent == nullptr || !integer_of(*parent, process.ppid)) process.ppid = -1;
    }
  }

  std::int64_t rank_ = -1;
  SpanForest::Encode encode_;
  std::string scratch_;
  TextMap<WorkSigns> words_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::string>, std::uint32_t> tracks_;
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> by_pid_;
  std::uint32_t last_ = ~0U;
  std::uint32_t last_track_ = ~0U;
};

void keep(std::string& mine, std::string& theirs) {
  if (mine.empty()) mine = std::move(theirs);
}
void replace(std::string& mine, std::string& theirs) {
  if (!theirs.empty()) mine = std::move(theirs);
}

// Adds what a later block says.
void add_to(ForestProcess& mine, ForestProcess& theirs) {
  keep(mine.host, theirs.host);
  keep(mine.rank, theirs.rank);
  replace(mine.name, theirs.name);  // a program that was executed has another one
  if (theirs.started) {
    if (!mine.started) mine.began = theirs.began;
    mine.started = true;
    mine.ppid = theirs.ppid;
    replace(mine.command, theirs.command);
    replace(mine.program, theirs.program);
  }
  mine.computes = mine.computes || theirs.computes;
  mine.feeds = mine.feeds || theirs.feeds;
  mine.sorted = mine.sorted || theirs.sorted;
}

// Joins the shares of blocks, which come in order.
class Joiner {
 public:
  explicit Joiner(SpanForest& forest) : all_(forest) {}

  void add(Part& part, const InFile& file) {
    const std::vector<std::uint32_t> process_map = add_processes(part, file);
    std::vector<std::uint32_t> track_map;
    for (Track& track : part.tracks) {
      track.process = process_map[track.process];
      const auto [found, fresh] =
          by_tid_.emplace(std::make_tuple(track.process, track.tid, track.alias),
                          static_cast<std::uint32_t>(all_.tracks.size()));
      if (fresh) {
        all_.tracks.push_back(std::move(track));
      } else {
        replace(all_.tracks[found->second].name, track.name);
      }
      track_map.push_back(found->second);
    }
    std::vector<std::uint32_t> word_map;
    for (SpanName& word : part.words) {
      const auto [found, fresh] = by_word_.emplace(std::make_pair(word.name, word.category),
                                                   static_cast<std::uint32_t>(all_.words.size()));
      if (fresh) all_.words.push_back(std::move(word));
      word_map.push_back(found->second);
    }
    for (Item item : part.items) {
      item.track = track_map[item.track];
      if (item.is_event) item.name = word_map[item.name];
      item.payload += all_.payloads.size();
      all_.items.push_back(item);
    }
    all_.payloads += part.payloads;
  }

 private:
  std::vector<std::uint32_t> add_processes(Part& part, const InFile& file) {
    // The key of a start record is a process over hosts, containers and reuse of its number: files
    // that have the same one are pieces of one process.
    const bool keyed = !file.process.empty() && !file.merged;
    const std::string group = keyed         ? "p" + file.process
                              : file.merged ? "m" + std::to_string(part.file)
                                            : std::string();
    std::vector<std::uint32_t> map;
    for (ForestProcess& process : part.processes) {
      auto& same = by_pid_[{group, process.pid, process.alias}];
      const auto found = std::find_if(same.begin(), same.end(), [&](std::uint32_t i) {
        const ForestProcess& known = all_.processes[i];
        if (!known.host.empty() && known.host == process.host) return true;
        return (keyed || known.file == process.file) &&
               (known.host.empty() || process.host.empty());
      });
      if (found == same.end()) {
        check_processes(all_.processes.size());
        same.push_back(static_cast<std::uint32_t>(all_.processes.size()));
        map.push_back(same.back());
        all_.processes.push_back(std::move(process));
      } else {
        map.push_back(*found);
        add_to(all_.processes[*found], process);
      }
    }
    return map;
  }

  SpanForest& all_;
  std::map<std::tuple<std::string, std::int64_t, std::string>, std::vector<std::uint32_t>> by_pid_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::string>, std::uint32_t> by_tid_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> by_word_;
};

}  // namespace

void SpanForest::read(const std::vector<std::string>& paths, unsigned threads, Encode encode,
                      Control* control, std::uint64_t most) {
  OrderedScan<Part> scan(
      paths, threads,
      [encode](unsigned, Block& block) {
        PartMaker maker(block, encode);
        block.records([&](const Event& event, std::uint64_t) { maker.add(event); });
        return std::move(maker.part);
      },
      control);
  Joiner joiner(*this);
  std::vector<std::shared_ptr<InFile>> files;
  while (auto part = scan.next()) {
    if (part->file >= files.size()) files = scan.files();
    blocks_[{part->file, part->ordinal}] = {items.size(), part->items.size()};
    joiner.add(*part, *files[part->file]);
    for (auto& [hash, text] : part->strings) {
      const auto [found, fresh] = strings_.emplace(hash, text);
      if (!fresh && text < found->second) found->second = std::move(text);
    }
    if (most != 0 && items.size() > most) throw TooLarge();
  }
  scan_result = scan.result();
  bool any = false;
  for (const Item& item : items) {
    if (!item.timed || item.phase == kMetadata) continue;
    has_parts = has_parts || item.ts % 1000 != 0 || item.dur % 1000 != 0;
    if (item.ts == 0 || (any && item.ts >= first)) continue;
    first = item.ts;
    any = true;
  }
}

const std::string* SpanForest::text_of(std::string_view hash) const {
  const auto found = strings_.find(hash);
  return found == strings_.end() ? nullptr : &found->second;
}

const Item* SpanForest::find(const Block& block, std::uint64_t number) const {
  const auto found = blocks_.find({block.file().index, block.ordinal()});
  if (found == blocks_.end() || number >= found->second.second) return nullptr;
  return &items[found->second.first + number];
}

void SpanForest::arrange() {
  const auto resolve = [this](std::string& text) {
    if (const std::string* found = text_of(text)) text = *found;
  };
  for (ForestProcess& process : processes) {
    resolve(process.host);
    resolve(process.command);
    resolve(process.program);
  }
  sort();
  nest();
  place_processes(*this);
  number_tracks();
}

}  // namespace dft::reader
