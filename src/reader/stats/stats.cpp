#include "reader/stats/stats.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace dft::reader {
namespace {

constexpr std::int64_t kThreadMask = (std::int64_t{1} << 22) - 1;

void add_to(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

const Field* find(const Event& event, std::string_view key) {
  const Field* found = nullptr;
  for (const Field& field : event.args) {
    if (field.key == key) found = &field;
  }
  return found;
}

std::int64_t number_of(const Event& event, std::string_view key, std::int64_t otherwise) {
  const Field* field = find(event, key);
  std::int64_t value = otherwise;
  return field != nullptr && integer_of(*field, value) ? value : otherwise;
}

struct Calls {
  std::uint64_t count;
  std::uint64_t total;  // nanoseconds, as are the others
  std::uint64_t least;
  std::uint64_t most;
  std::uint64_t mean;
};

Calls one_call(std::int64_t duration) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration, 0));
  return {1, value, value, value, value};
}

Calls calls_of(const Event& event) {
  if (event.phase != kAggregate) [[likely]]
    return one_call(event.dur);
  // Numbers of many calls in one record; its durations are in microseconds.
  const auto of = [&](std::string_view key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(number_of(event, key, 0), 0));
  };
  const std::uint64_t count = std::max<std::uint64_t>(of("dft_cnt"), 1);
  const std::uint64_t total = of("dur_sum") * 1000;
  return {count, total, of("dur_min") * 1000, of("dur_max") * 1000, total / count};
}

[[gnu::always_inline]] inline void add_calls(const Calls& calls, Row& row, ProcessRow& process) {
  row.count += calls.count;
  add_to(row.total, calls.total);
  row.least = std::min(row.least, calls.least);
  row.most = std::max(row.most, calls.most);
  row.durations.add(calls.mean, calls.count);
  ++process.events;
  add_to(process.total, calls.total);
}

void add_bytes(std::uint64_t read, std::uint64_t written, Row& row, ProcessRow& process) {
  add_to(row.bytes.read, read);
  add_to(process.bytes.read, read);
  add_to(row.bytes.written, written);
  add_to(process.bytes.written, written);
}

Bytes bytes_of(const Call& call, const Moved& moved, std::uint64_t calls) {
  if (moved.known) return {moved.read, moved.written, 0, 0};
  return {0, 0, reads(call.role) ? calls : 0, writes(call.role) ? calls : 0};
}

void add_time(std::int64_t from, std::int64_t duration, FileFacts& facts, ProcessRow& process) {
  std::int64_t to = 0;
  if (__builtin_add_overflow(from, duration, &to)) to = from;
  facts.time(from, to);
  process.first = process.timed ? std::min(process.first, from) : from;
  process.last = process.timed ? std::max(process.last, to) : to;
  process.timed = true;
}

}  // namespace

std::uint64_t Histogram::middle(unsigned bucket) {
  if (bucket < 32) return bucket;
  const unsigned octave = (bucket - 32) / 32;
  const std::uint64_t low = (std::uint64_t{32} + (bucket - 32) % 32) << octave;
  return low + ((std::uint64_t{1} << octave) / 2);
}

std::uint64_t& Histogram::make(unsigned bucket) {
  if (counts_.empty()) {
    first_ = bucket;
    counts_.resize(1);
  } else if (bucket < first_) {
    counts_.insert(counts_.begin(), first_ - bucket, 0);
    first_ = bucket;
  } else if (bucket >= first_ + counts_.size()) {
    counts_.resize(bucket - first_ + 1);
  }
  return counts_[bucket - first_];
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] != 0) make(other.first_ + static_cast<unsigned>(i)) += other.counts_[i];
  }
}

std::uint64_t Histogram::count() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : counts_) sum += n;
  return sum;
}

std::uint64_t Histogram::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count()));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    sum += counts_[i];
    if (sum > wanted || (sum == wanted && i + 1 == counts_.size())) {
      return middle(first_ + static_cast<unsigned>(i));
    }
  }
  return 0;
}

void Bytes::add(const Bytes& other) {
  add_to(read, other.read);
  add_to(written, other.written);
  read_unknown += other.read_unknown;
  write_unknown += other.write_unknown;
}

void Bytes::take_away(const Bytes& other) {
  read -= std::min(read, other.read);
  written -= std::min(written, other.written);
  read_unknown -= other.read_unknown;
  write_unknown -= other.write_unknown;
}

void Row::add(const Row& other) {
  count += other.count;
  add_to(total, other.total);
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  bytes.add(other.bytes);
  durations.add(other.durations);
}

void PathRow::add(const PathRow& other) {
  count += other.count;
  add_to(total, other.total);
  reads += other.reads;
  writes += other.writes;
  bytes.add(other.bytes);
  add_to(mapped, other.mapped);
}

void ProcessRow::add(const ProcessRow& other) {
  seen = std::min(seen, other.seen);
  events += other.events;
  records += other.records;
  add_to(total, other.total);
  bytes.add(other.bytes);
  threads.insert(other.threads.begin(), other.threads.end());
  if (other.timed) {
    first = timed ? std::min(first, other.first) : other.first;
    last = timed ? std::max(last, other.last) : other.last;
    timed = true;
  }
  if (other.began_timed) begin_at(other.began);
  if (other.ended_timed) finish_at(other.ended);
  starts += other.starts;
  ends += other.ends;
  recovered = recovered || other.recovered;
  lost += other.lost;
  if (other.end_at.block != ~std::uint64_t{0} &&
      (end_at.block == ~std::uint64_t{0} || end_at < other.end_at)) {
    end_at = other.end_at;
    promised = other.promised;
    cpu = other.cpu;
  }
  if (other.starts != 0 && (starts == other.starts || start_at < other.start_at)) {
    start_at = other.start_at;
    ppid = other.ppid;
    if (texts_ != nullptr || other.texts_ != nullptr) {
      ProcessTexts fresh = other.said();
      fresh.rank = said().rank;
      fresh.name = said().name;
      say() = std::move(fresh);
    }
  }
  // Equal in all records of a process, but for damage; the smaller one, so that order is no matter.
  const auto keep = [](std::string& mine, const std::string& theirs) {
    if (mine.empty() || (!theirs.empty() && theirs < mine)) mine = theirs;
  };
  if (other.texts_ != nullptr) {
    keep(say().rank, other.said().rank);
    keep(say().name, other.said().name);
  }
}

const ProcessTexts& ProcessRow::said() const {
  static const ProcessTexts kNothing;
  return texts_ != nullptr ? *texts_ : kNothing;
}

ProcessTexts& ProcessRow::say() {
  // Another row may share them: rows are copied with the statistics that they are part of.
  if (texts_ == nullptr) {
    texts_ = std::make_shared<ProcessTexts>();
  } else if (texts_.use_count() > 1) {
    texts_ = std::make_shared<ProcessTexts>(*texts_);
  }
  return *texts_;
}

void FileFacts::add(const FileFacts& other, std::size_t samples) {
  if (other.timed) {
    time(other.first, other.last);
  }
  for (const auto& [key, count] : other.metadata) metadata[key] += count;
  sample.insert(sample.end(), other.sample.begin(), other.sample.end());
  std::sort(sample.begin(), sample.end());
  if (sample.size() > samples) sample.resize(samples);
}

FileFacts& Partial::facts_of(std::uint32_t file) {
  if (file != last_file_) {
    last_facts_ = &files[file];
    last_file_ = file;
  }
  return *last_facts_;
}

std::string Partial::text_of(const Field* field, bool valid) {
  if (field == nullptr) return {};
  return std::string(plain_text(field->value, field->kind == Kind::kEscaped, valid, scratch_));
}

ProcessRow& Partial::process_of(const Event& event, std::uint32_t file, std::string_view host,
                                Place place) {
  if (last_process_ < rows_.size()) {
    ProcessRow& last = rows_[last_process_];
    if (last.file == file && last.pid == event.pid && same_text(last.host, host)) {
      return last;
    }
  }
  std::string key = std::to_string(file) + '/' + std::to_string(event.pid) + '/';
  key += host;
  const auto [found, fresh] =
      process_index_.emplace(std::move(key), static_cast<std::uint32_t>(rows_.size()));
  last_process_ = found->second;
  if (fresh) {
    check_processes(rows_.size(), options_.processes);
    ProcessRow& row = rows_.emplace_back();
    row.file = file;
    row.pid = event.pid;
    row.host = host;
  }
  ProcessRow& row = rows_[last_process_];
  row.seen = std::min(row.seen, place);
  return row;
}

// Sums are added to whether they change or not: that costs less than a branch that cannot be
// foreseen, since names come in any order.
bool Partial::again(const Repeat& repeat) {
  const Known& known = known_[repeat.alike % kKnown];
  if (known.alike != repeat.alike) return false;
  Counted& counted = *known.counted;
  FileFacts& facts = *known.facts;
  if (counted.needs > (repeat.has_result ? Needs::kResult : Needs::kNothing)) return false;
  if (options_.samples != 0 && facts.sample.size() < options_.samples) return false;
  ProcessRow& process = rows_[known.process];
  ++process.records;
  add_calls(one_call(repeat.dur), counted.row, process);
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(repeat.result, 0));
  add_bytes(bytes & counted.read_mask, bytes & counted.write_mask, counted.row, process);
  add_time(repeat.ts, repeat.dur, facts, process);
  return true;
}

void Partial::add(const Event& event, std::uint32_t file, Place place) {
  const Field* host = host_of(event);
  ProcessRow& process =
      process_of(event, file, host == nullptr ? std::string_view() : host->value, place);
  ++process.records;
  if (!event.is_event()) {
    own(event, process, file, place);
    return;
  }
  add_event(event, process, file, place);
}

Partial::CountedPath& Partial::add_path(std::string_view path, bool hashed, const PathRow& row) {
  bool fresh = false;
  CountedPath& used = paths_.row(paths_.find(path, {}, hashed ? 1 : 0, fresh));
  used.row.add(row);
  return used;
}

void Partial::add_use(CountedPath& path, const Use& use) {
  for (Use& known : path.uses) {
    if (known.name == use.name && known.process == use.process) {
      known.bytes.add(use.bytes);
      return;
    }
  }
  path.uses.push_back(use);
}

// Of a copy, one file was read and the other one written. Older traces name only the first.
void Partial::add_paths(const Event& event, std::uint32_t name, const Bytes& bytes, PathRow row) {
  const Call& call = names_.row(name).call;
  const Field* first = nullptr;
  const Field* second = nullptr;
  for (const Field& field : event.args) {
    if (!field.is_name()) continue;
    if (is(field.key, "fhash") || is(field.key, "fname")) first = &field;
    if (!call.second.empty() && field.key == call.second) second = &field;
  }
  if (first == nullptr && second == nullptr) return;
  if (call.role == Role::kMap) row.mapped = mapped_bytes(event.args);
  const auto add = [&](const Field* file, bool is_read, bool is_written) {
    if (file == nullptr || file->value.empty()) return;
    PathRow used = row;
    used.reads = is_read ? row.count : 0;
    used.writes = is_written ? row.count : 0;
    used.bytes = {is_read ? bytes.read : 0, is_written ? bytes.written : 0,
                  is_read ? bytes.read_unknown : 0, is_written ? bytes.write_unknown : 0};
    CountedPath& path = add_path(file->value, !is(file->key, "fname"), used);
    if (moves(call.role)) add_use(path, {name, last_process_, used.bytes});
  };
  const bool copies = call.role == Role::kCopy;
  // What was collected went one way, as a rule.
  const bool collects = call.role == Role::kCollect && bytes.read_unknown == 0;
  const bool is_read = reads(call.role) && !(collects && bytes.read == 0);
  const bool is_written = writes(call.role) && !(collects && bytes.written == 0);
  add(first, is_read && !(copies && !call.second_is_written),
      is_written && !(copies && call.second_is_written));
  add(second, is_read && !call.second_is_written, is_written && call.second_is_written);
}

void Partial::take_pipes_away(const CountedPath& path) {
  for (const Use& use : path.uses) {
    names_.row(use.name).row.bytes.take_away(use.bytes);
    rows_[use.process].bytes.take_away(use.bytes);
    pipes.add(use.bytes);
  }
}

void Partial::add_event(const Event& event, ProcessRow& process, std::uint32_t file, Place place) {
  bool fresh = false;
  const std::uint32_t index =
      names_.find(event.name.raw, event.category.raw, options_.by_file ? file : 0, fresh);
  Counted& counted = names_.row(index);
  if (fresh) {
    counted.call = call_of(event.category.raw, event.name.raw);
    counted.name_escaped = event.name.escaped;
    counted.category_escaped = event.category.escaped;
    counted.valid = event.valid_utf8;
    const Role role = counted.call.role;
    counted.needs = !moves(role)                            ? Needs::kNothing
                    : counted.call.measure == Measure::kRet ? Needs::kResult
                                                            : Needs::kArguments;
    counted.read_mask = reads(role) ? ~std::uint64_t{0} : 0;
    counted.write_mask = writes(role) ? ~std::uint64_t{0} : 0;
  }
  const Calls calls = calls_of(event);
  add_calls(calls, counted.row, process);
  if ((event.has & kHasTid) != 0) {
    const std::int64_t thread = event.tid & kThreadMask;
    if (thread != process.last_thread) process.threads.insert(thread);
    process.last_thread = thread;
  }
  Bytes bytes;
  const Call& call = counted.call;
  if (moves(call.role)) {
    Moved moved;
    if (!event.brief) {
      moved = moved_bytes(call, event.args);
    } else if (call.measure == Measure::kRet && event.args.size() == 2) {
      const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(event.args[1].number, 0));
      moved = {n & counted.read_mask, n & counted.write_mask, true};
    } else {
      moved = moved_bytes(call, members_of(event.args_text, room_));
    }
    bytes = bytes_of(call, moved, calls.count);
    counted.row.bytes.add(bytes);
    process.bytes.add(bytes);
  }
  if (options_.paths) add_paths(event, index, bytes, {calls.count, calls.total});
  FileFacts& facts = facts_of(file);
  if ((event.has & kHasTs) != 0) {
    add_time(event.ts, event.dur, facts, process);
  }
  if (event.alike != 0) {
    known_[event.alike % kKnown] = {event.alike, &counted, &facts, last_process_};
  }
  if (facts.sample.size() < options_.samples) {
    std::string line(event.line);
    if (!event.valid_utf8) {
      line.clear();
      append_mended(line, event.line);
    }
    facts.sample.emplace_back(place, std::move(line));
  }
}

void Partial::own(const Event& event, ProcessRow& process, std::uint32_t file, Place place) {
  FileFacts& facts = facts_of(file);
  const std::string_view name = event.name.raw;
  const bool valid = event.valid_utf8;
  ++facts.metadata[std::string(plain_text(name, event.name.escaped, valid, scratch_))];
  const auto put = [&](std::map<std::string, std::string>& map, std::string text,
                       const std::string& hash) {
    const auto [found, fresh] = map.emplace(hash, text);
    if (!fresh && text < found->second) found->second = std::move(text);
  };
  if (name == "start" || name == "end") {
    const bool timed = (event.has & kHasTs) != 0;
    if (timed) facts.time(event.ts, event.ts);
    if (name == "start") {
      if (timed) process.begin_at(event.ts);
      ++process.starts;
      if (process.starts == 1 || process.start_at < place) {
        process.start_at = place;
        process.ppid = number_of(event, "ppid", -1);
        // Older tracers write the words themselves.
        const auto either = [&](std::string_view hash, std::string_view word) {
          const Field* found = find(event, hash);
          return text_of(found != nullptr ? found : find(event, word), valid);
        };
        ProcessTexts& said = process.say();
        said.command = either("cmd_hash", "cmd");
        said.program = either("exec_hash", "exec");
        said.cwd = text_of(find(event, "cwd"), valid);
        said.run = text_of(find(event, "run"), valid);
        said.key = text_of(find(event, "proc"), valid);
        said.version = text_of(find(event, "version"), valid);
      }
    } else {
      ++process.ends;
      if (timed) process.finish_at(event.ts);
      const Field* recovered = find(event, "recovered");
      process.recovered =
          process.recovered || (recovered != nullptr && recovered->kind == Kind::kTrue);
      if (process.end_at.block == ~std::uint64_t{0} || process.end_at < place) {
        process.end_at = place;
        process.promised = number_of(event, "num_events", -1);
        const std::int64_t used = number_of(event, "cpu_us", -1);
        process.cpu =
            used < 0 || __builtin_mul_overflow(used, 1000, &process.cpu) ? -1 : process.cpu;
      }
    }
    return;
  }
  if (name == "lost") {
    process.lost +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(number_of(event, "events", 0), 0));
    return;
  }
  if (name == "FH" || name == "SH" || name == "HH") {
    const std::string hash = text_of(find(event, "value"), valid);
    std::string text = text_of(find(event, "name"), valid);
    if (name == "HH") put(hosts, text, hash);
    put(strings, std::move(text), hash);
  } else if (name == "PR") {
    const Field* what = find(event, "name");
    if (what != nullptr && what->value == "rank") {
      process.say().rank = text_of(find(event, "value"), valid);
    }
  } else if (name == "process_name") {
    process.say().name = text_of(find(event, "name"), valid);
  }
}

void Partial::add(Partial&& other) {
  bool fresh = false;
  std::vector<std::uint32_t> name_of;
  for (auto& entry : other.names_.entries()) {
    name_of.push_back(names_.find(entry.first, entry.second, entry.number, fresh));
    Counted& mine = names_.row(name_of.back());
    if (fresh) {
      mine = std::move(entry.row);
    } else {
      mine.row.add(entry.row.row);
    }
  }
  std::vector<std::uint32_t> process_of;
  for (ProcessRow& row : other.rows_) {
    std::string key = std::to_string(row.file) + '/' + std::to_string(row.pid) + '/' + row.host;
    const auto [found, is_new] =
        process_index_.emplace(std::move(key), static_cast<std::uint32_t>(rows_.size()));
    process_of.push_back(found->second);
    if (is_new) {
      check_processes(rows_.size(), options_.processes);
      rows_.push_back(std::move(row));
    } else {
      rows_[found->second].add(row);
    }
  }
  for (auto& entry : other.paths_.entries()) {
    CountedPath& mine = add_path(entry.first, entry.number == 1, entry.row.row);
    for (const Use& use : entry.row.uses) {
      add_use(mine, {name_of[use.name], process_of[use.process], use.bytes});
    }
  }
  for (auto& [file, facts] : other.files) files[file].add(facts, options_.samples);
  last_file_ = ~0U;
  for (auto& [hash, text] : other.strings) {
    const auto [found, is_new] = strings.emplace(hash, text);
    if (!is_new && text < found->second) found->second = text;
  }
  for (auto& [hash, text] : other.hosts) {
    const auto [found, is_new] = hosts.emplace(hash, text);
    if (!is_new && text < found->second) found->second = text;
  }
  other = Partial(options_);
}

void Partial::finish() {
  std::string scratch;
  for (auto& entry : paths_.entries()) {
    std::string path(
        plain_text(entry.first, entry.first.find('\\') != std::string::npos, false, scratch));
    if (entry.number == 1) {
      const auto found = strings.find(path);
      if (found == strings.end()) {
        ++paths_unknown;
        path.insert(0, 1, '#');
      } else {
        path = found->second;
      }
    }
    if (is_no_file(path)) take_pipes_away(entry.row);
    by_path[path].add(entry.row.row);
  }
  paths_.clear();
  // By what a name says, not by how it was escaped.
  std::map<std::tuple<std::uint32_t, std::string, std::string>, Row> rows;
  for (auto& entry : names_.entries()) {
    const Counted& counted = entry.row;
    std::string name(plain_text(entry.first, counted.name_escaped, counted.valid, scratch));
    std::string category(
        plain_text(entry.second, counted.category_escaped, counted.valid, scratch));
    rows[{static_cast<std::uint32_t>(entry.number), std::move(category), std::move(name)}].add(
        counted.row);
  }
  for (auto& [key, row] : rows) {
    names.push_back({std::get<1>(key), std::get<2>(key), std::get<0>(key), std::move(row)});
  }
  names_.clear();
  known_ = {};
  std::sort(rows_.begin(), rows_.end(), [](const ProcessRow& a, const ProcessRow& b) {
    return std::tie(a.file, a.seen, a.pid, a.host) < std::tie(b.file, b.seen, b.pid, b.host);
  });
  // A counter's arguments are its series, and some tracers leave arguments out: such records name
  // no host. They belong to the process of their number.
  std::vector<ProcessRow> homeless;
  const auto housed = std::stable_partition(
      rows_.begin(), rows_.end(), [](const ProcessRow& row) { return !row.host.empty(); });
  homeless.assign(std::make_move_iterator(housed), std::make_move_iterator(rows_.end()));
  rows_.erase(housed, rows_.end());
  processes = std::move(rows_);
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> first;
  if (!homeless.empty()) {
    for (std::size_t i = 0; i < processes.size(); ++i) {
      first.emplace(std::pair(processes[i].file, processes[i].pid), i);
    }
  }
  for (ProcessRow& row : homeless) {
    const auto same = first.find({row.file, row.pid});
    if (same != first.end()) {
      processes[same->second].add(row);
    } else {
      processes.push_back(std::move(row));
    }
  }
  rows_.clear();
  process_index_ = {};
  std::sort(processes.begin(), processes.end(), [](const ProcessRow& a, const ProcessRow& b) {
    return std::tie(a.file, a.seen, a.pid, a.host) < std::tie(b.file, b.seen, b.pid, b.host);
  });
  for (ProcessRow& process : processes) {
    const auto resolve = [&](std::string& text, const std::map<std::string, std::string>& in) {
      const auto found = in.find(text);
      if (found != in.end()) text = found->second;
    };
    process.host = std::string(
        plain_text(process.host, process.host.find('\\') != std::string::npos, false, scratch));
    resolve(process.host, hosts);
    if (process.starts == 0) continue;
    ProcessTexts& said = process.say();
    resolve(said.command, strings);
    resolve(said.program, strings);
    resolve(said.cwd, strings);
  }
}

}  // namespace dft::reader
