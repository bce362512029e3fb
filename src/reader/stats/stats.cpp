// Adds records to statistics. Runs on worker threads, one Stats each: the hot loop of a summary.
#include "reader/stats/stats.hpp"

#include <algorithm>

namespace dft::reader {
namespace {

constexpr std::int64_t kThreadMask = (std::int64_t{1} << 22) - 1;

const JsonField* find(const Event& event, std::string_view key) {
  const JsonField* found = nullptr;
  for (const JsonField& field : event.args) {
    if (field.key == key) found = &field;
  }
  return found;
}

std::int64_t number_of(const Event& event, std::string_view key, std::int64_t otherwise) {
  const JsonField* field = find(event, key);
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

[[gnu::always_inline]] inline void add_calls(const Calls& calls, CallTotals& row,
                                             ProcessRow& process) {
  row.count += calls.count;
  add_saturated(row.total, calls.total);
  row.least = std::min(row.least, calls.least);
  row.most = std::max(row.most, calls.most);
  row.durations.add(calls.mean, calls.count);
  ++process.events;
  add_saturated(process.total, calls.total);
}

void add_bytes(std::uint64_t read, std::uint64_t written, CallTotals& row, ProcessRow& process) {
  add_saturated(row.bytes.read, read);
  add_saturated(process.bytes.read, read);
  add_saturated(row.bytes.written, written);
  add_saturated(process.bytes.written, written);
}

Bytes bytes_of(const Call& call, const MovedBytes& moved, std::uint64_t calls) {
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

FileFacts& Stats::facts_of(std::uint32_t file) {
  if (file != last_file_) {
    last_facts_ = &files[file];
    last_file_ = file;
  }
  return *last_facts_;
}

std::string Stats::text_of(const JsonField* field, bool valid) {
  if (field == nullptr) return {};
  return std::string(plain_text(field->value, field->kind == JsonKind::kEscaped, valid, scratch_));
}

ProcessRow& Stats::process_of(const Event& event, std::uint32_t file, std::string_view host,
                              TracePosition position) {
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
  row.seen = std::min(row.seen, position);
  return row;
}

// Sums are added to whether they change or not: that costs less than a branch that cannot be
// foreseen, since names come in any order.
bool Stats::again(const Repeat& repeat) {
  const RepeatTarget& known = repeat_targets_[repeat.alike % kRepeatTargets];
  if (known.alike != repeat.alike) return false;
  NameEntry& counted = *known.counted;
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

void Stats::add(const Event& event, std::uint32_t file, TracePosition position) {
  const JsonField* host = host_of(event);
  ProcessRow& process =
      process_of(event, file, host == nullptr ? std::string_view() : host->value, position);
  ++process.records;
  if (!event.is_event()) {
    own(event, process, file, position);
    return;
  }
  add_event(event, process, file, position);
}

Stats::PathEntry& Stats::add_path(std::string_view path, bool hashed, const PathRow& row) {
  bool fresh = false;
  PathEntry& used = paths_.row(paths_.find(path, {}, hashed ? 1 : 0, fresh));
  used.row.add(row);
  return used;
}

void Stats::add_use(PathEntry& path, const PathUse& use) {
  for (PathUse& known : path.uses) {
    if (known.name == use.name && known.process == use.process) {
      known.bytes.add(use.bytes);
      return;
    }
  }
  path.uses.push_back(use);
}

// Of a copy, one file was read and the other one written. Older traces name only the first.
void Stats::add_paths(const Event& event, std::uint32_t name, const Bytes& bytes, PathRow row) {
  const Call& call = names_.row(name).call;
  const JsonField* first = nullptr;
  const JsonField* second = nullptr;
  for (const JsonField& field : event.args) {
    if (!field.is_name()) continue;
    if (is(field.key, "fhash") || is(field.key, "fname")) first = &field;
    if (!call.second.empty() && field.key == call.second) second = &field;
  }
  if (first == nullptr && second == nullptr) return;
  if (call.role == Role::kMap) row.mapped = mapped_bytes(event.args);
  const auto add = [&](const JsonField* file, bool is_read, bool is_written) {
    if (file == nullptr || file->value.empty()) return;
    PathRow used = row;
    used.reads = is_read ? row.count : 0;
    used.writes = is_written ? row.count : 0;
    used.bytes = {is_read ? bytes.read : 0, is_written ? bytes.written : 0,
                  is_read ? bytes.read_unknown : 0, is_written ? bytes.write_unknown : 0};
    PathEntry& path = add_path(file->value, !is(file->key, "fname"), used);
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

void Stats::take_pipes_away(const PathEntry& path) {
  for (const PathUse& use : path.uses) {
    names_.row(use.name).row.bytes.take_away(use.bytes);
    rows_[use.process].bytes.take_away(use.bytes);
    pipes.add(use.bytes);
  }
}

void Stats::add_event(const Event& event, ProcessRow& process, std::uint32_t file,
                      TracePosition position) {
  bool fresh = false;
  const std::uint32_t index =
      names_.find(event.name.raw, event.category.raw, options_.by_file ? file : 0, fresh);
  NameEntry& counted = names_.row(index);
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
    MovedBytes moved;
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
    repeat_targets_[event.alike % kRepeatTargets] = {event.alike, &counted, &facts, last_process_};
  }
  if (facts.sample.size() < options_.samples) {
    std::string line(event.line);
    if (!event.valid_utf8) {
      line.clear();
      append_mended(line, event.line);
    }
    facts.sample.emplace_back(position, std::move(line));
  }
}

void Stats::own(const Event& event, ProcessRow& process, std::uint32_t file,
                TracePosition position) {
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
      if (process.starts == 1 || process.start_at < position) {
        process.start_at = position;
        process.ppid = number_of(event, "ppid", -1);
        // Older tracers write the words themselves.
        const auto either = [&](std::string_view hash, std::string_view word) {
          const JsonField* found = find(event, hash);
          return text_of(found != nullptr ? found : find(event, word), valid);
        };
        ProcessTexts& said = process.edit_texts();
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
      const JsonField* recovered = find(event, "recovered");
      process.recovered =
          process.recovered || (recovered != nullptr && recovered->kind == JsonKind::kTrue);
      if (process.end_at.block == ~std::uint64_t{0} || process.end_at < position) {
        process.end_at = position;
        process.promised = number_of(event, "num_events", -1);
        process.ring_requests = std::max<std::int64_t>(number_of(event, "ring_requests", 0), 0);
        const auto nanoseconds = [&](std::string_view key) {
          std::int64_t time = number_of(event, key, -1);
          return time < 0 || __builtin_mul_overflow(time, 1000, &time) ? -1 : time;
        };
        process.cpu = nanoseconds("cpu_us");
        process.cpu_wait = nanoseconds("cpu_wait_us");
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
    const JsonField* what = find(event, "name");
    if (what != nullptr && what->value == "rank") {
      process.edit_texts().rank = text_of(find(event, "value"), valid);
    }
  } else if (name == "process_name") {
    process.edit_texts().name = text_of(find(event, "name"), valid);
  }
}

}  // namespace dft::reader
