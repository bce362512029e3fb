// Collects who is in the traces, for the plan of a merge. Runs on worker threads, one Survey each.
#include "reader/merge/survey.hpp"

#include <algorithm>
#include <cctype>

#include "reader/input/limits.hpp"
#include "reader/merge/rewrite.hpp"
#include "reader/parse/text_map.hpp"

namespace dft::reader {
namespace {

constexpr std::size_t kCollectivesKept = 512;
constexpr std::size_t kCollectiveNames = 16;
constexpr std::size_t kTextsKept = 64;

std::string clean(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (out.size() > 200) {
    out.resize(200);
    while (!is_utf8(out)) out.pop_back();
  }
  return out;
}

void put(std::set<std::string>& texts, std::string text) {
  if (text.empty()) return;
  texts.insert(std::move(text));
  // The smallest ones stay, whatever the order they came in.
  if (texts.size() > kTextsKept) texts.erase(std::prev(texts.end()));
}

void keep_smaller(std::string& mine, const std::string& theirs) {
  if (mine.empty() || (!theirs.empty() && theirs < mine)) mine = theirs;
}
void keep_smaller(std::int64_t& mine, std::int64_t theirs) {
  if (mine < 0 || (theirs >= 0 && theirs < mine)) mine = theirs;
}

// all_reduce, c10d::allreduce_, nccl:all_gather, MPI_Barrier: operations that synchronize
// all ranks.
bool is_collective(std::string_view name) {
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  if (name.size() < 7 || name.size() > 64) return false;
  // Nearly every name falls here.
  switch (name[name.size() - 2]) {
    case 'e':  // barrier, gather, scatter
    case 'c':  // reduce
    case 'l':  // all
      break;
    default:
      return false;
  }
  const std::size_t colon = name.find_last_of(":.");
  if (colon != std::string_view::npos) name.remove_prefix(colon + 1);
  std::string word;
  for (const char c : name) {
    if (c != '_' && c != '-') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (word.starts_with("mpi")) word.erase(0, 3);
  return word == "barrier" || word == "allreduce" || word == "allgather" || word == "alltoall" ||
         word == "reducescatter";
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out;
}

}  // namespace

void Collectives::add(Collective one) {
  ++count;
  first.push_back(one);
  std::push_heap(first.begin(), first.end());
  if (first.size() <= kCollectivesKept) return;
  std::pop_heap(first.begin(), first.end());
  first.pop_back();
}
void Collectives::add(const Collectives& other) {
  const std::uint64_t sum = count + other.count;
  for (const Collective& one : other.first) add(one);
  count = sum;
}
void Collectives::sort() { std::sort(first.begin(), first.end()); }

void SurveyedProcess::time(std::int64_t from, std::int64_t to) {
  first = timed ? std::min(first, from) : from;
  last = timed ? std::max(last, to) : to;
  timed = true;
}

void SurveyedProcess::shift(std::int64_t nanoseconds) {
  first += nanoseconds;
  last += nanoseconds;
  for (auto& [name, rounds] : collectives) {
    for (Collective& one : rounds.first) {
      one.start += nanoseconds;
      one.end += nanoseconds;
    }
  }
}

void SurveyedProcess::add(const SurveyedProcess& other) {
  records += other.records;
  events += other.events;
  starts += other.starts;
  digest += other.digest;
  if (other.timed) time(other.first, other.last);
  keep_smaller(rank, other.rank);
  keep_smaller(parent, other.parent);
  keep_smaller(key, other.key);
  keep_smaller(run, other.run);
  keep_smaller(program, other.program);
  for (const std::string& name : other.names) put(names, name);
  for (const std::string& label : other.labels) put(labels, label);
  for (const std::string& thread : other.threads) put(threads, thread);
  for (const auto& [name, rounds] : other.collectives) {
    collectives[name].add(rounds);
    if (collectives.size() > kCollectiveNames) collectives.erase(std::prev(collectives.end()));
  }
}

const JsonField* find_arg(const Event& event, std::string_view key) {
  for (const JsonField& field : event.args) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string_view host_text(const Event& event) {
  const JsonField* host = host_of(event);
  return host != nullptr ? host->value : std::string_view();
}

std::string_view mark_of(const Event& event, const InFile& file) {
  if (!file.merged) return {};
  const auto fits = [](const JsonField& field) {
    std::string_view key = field.key;
    while (!key.empty() && key.back() == '_') key.remove_suffix(1);
    return key == kMark && field.kind == JsonKind::kString && field.value.size() == 16;
  };
  // The arguments of a counter are its series: there it stands beside them.
  const auto& fields = event.phase == kCounter ? event.extra : event.args;
  return !fields.empty() && fits(fields.back()) ? fields.back().value : std::string_view();
}

ProcessId pid_of(const Event& event) {
  ProcessId out;
  out.is_number = (event.has & kHasPid) != 0;
  if (out.is_number) {
    out.value = event.pid;
    return out;
  }
  for (const JsonField& field : event.extra) {
    if (field.key != "pid") continue;
    out.text.clear();
    if (field.is_string()) {
      out.text = field.value;
    } else {
      append_escaped(out.text, field.value);
    }
  }
  return out;
}

namespace {
void unit_key(std::uint32_t file, const ProcessId& pid, std::string_view host,
              std::string_view mark, std::string& out) {
  out = std::to_string(file);
  out += pid.is_number ? '#' : '"';
  out += pid.is_number ? std::to_string(pid.value) : pid.text;
  out += '\n';
  out += host;
  out += '\n';
  out += mark;
}
}  // namespace

void unit_key(const Event& event, const InFile& file, std::string& out) {
  unit_key(file.index, pid_of(event), host_text(event), mark_of(event, file), out);
}
void unit_key(const Unit& unit, std::string& out) {
  unit_key(unit.file, unit.pid, unit.host, unit.mark, out);
}

bool made_by_merge(const Event& event) {
  if (!event.is_metadata()) return false;
  if (event.is_own() && (event.name.raw == kProcessRecord || event.name.raw == kClockRecord)) {
    return true;
  }
  const JsonField* by = find_arg(event, "by");
  return by != nullptr && is(by->value, "merge");
}

bool absorbed(const Event& event) {
  return event.is_metadata() &&
         (is(event.name.raw, "process_name") || is(event.name.raw, "process_labels") ||
          is(event.name.raw, "process_sort_index"));
}

Repeats repeats(const Event& event) {
  if (!event.is_metadata()) return Repeats::kNo;
  const std::string_view name = event.name.raw;
  if (is(name, "FH") || is(name, "SH") || is(name, "HH")) return Repeats::kHash;
  if (is(name, "PR") || is(name, "thread_name") || is(name, "thread_sort_index")) {
    return Repeats::kProcess;
  }
  return Repeats::kNo;
}

Unit& Survey::unit_of(const Event& event, const InFile& file) {
  const std::string_view host = host_text(event);
  const std::string_view mark = mark_of(event, file);
  if (last_ != nullptr && last_->file == file.index && (event.has & kHasPid) != 0 &&
      last_->pid.is_number && last_->pid.value == event.pid && same_text(last_->host, host) &&
      same_text(last_->mark, mark)) {
    return *last_;
  }
  unit_key(event, file, key_);
  Unit*& found = index_[key_];
  if (found == nullptr) {
    check_processes(units_.size());
    units_.push_back(std::make_unique<Unit>());
    found = units_.back().get();
    found->file = file.index;
    found->pid = pid_of(event);
    found->host = host;
    found->mark = mark;
  }
  last_ = found;
  return *found;
}

void Survey::add(Block& block) {
  const InFile& file = block.file();
  block.records([&](const Event& event, std::uint64_t) { add(event, file); });
}

void Survey::add(const Event& event, const InFile& file) {
  if (event.is_metadata() && made_by_merge(event)) {
    if (event.name.raw == kProcessRecord) read_marked(event, file);
    return;
  }
  Unit& unit = unit_of(event, file);
  SurveyedProcess& facts = unit.facts;
  ++facts.records;
  // Traces that name their processes need no other identity.
  if (!file.ours && !file.merged) facts.digest += hash_text(event.line, 0);
  const JsonField* thread = thread_text(event, file);
  if (thread != nullptr) put(facts.threads, std::string(thread->value));
  if ((event.has & kHasTid) == 0) {
    for (const JsonField& field : event.extra) {
      if (field.key == "tid" && field.is_string()) put(facts.threads, std::string(field.value));
    }
  }
  const bool is_event = event.is_event();
  if (is_event) ++facts.events;
  std::int64_t end = event.ts;
  if ((event.has & kHasTs) != 0 && !event.is_metadata()) {
    if (__builtin_add_overflow(event.ts, std::max<std::int64_t>(event.dur, 0), &end)) {
      end = event.ts;
    }
    facts.time(event.ts, end);
  }
  if (is_event) {
    if (event.phase == 'X' && is_collective(event.name.raw)) {
      facts.collectives[std::string(event.name.raw)].add({event.ts, end});
      if (facts.collectives.size() > kCollectiveNames) {
        facts.collectives.erase(std::prev(facts.collectives.end()));
      }
    }
    return;
  }
  own(event, unit);
  if (keep_ && repeats(event) != Repeats::kNo) {
    kept.push_back({file.index, std::string(event.line)});
  }
}

void Survey::own(const Event& event, Unit& unit) {
  const std::string_view name = event.name.raw;
  const auto text = [&](std::string_view key) -> std::string {
    const JsonField* field = find_arg(event, key);
    if (field == nullptr) return {};
    return clean(
        plain_text(field->value, field->kind == JsonKind::kEscaped, event.valid_utf8, scratch_));
  };
  SurveyedProcess& facts = unit.facts;
  if (name == "start") {
    ++facts.starts;
    keep_smaller(facts.key, text("proc"));
    keep_smaller(facts.run, text("run"));
    std::string program = text("exec_hash");
    keep_smaller(facts.program, program.empty() ? text("exec") : program);
    std::int64_t parent = -1;
    const JsonField* ppid = find_arg(event, "ppid");
    if (ppid != nullptr && integer_of(*ppid, parent)) keep_smaller(facts.parent, parent);
  } else if (name == "HH") {
    keep_smaller(hosts[text("value")], text("name"));
  } else if (name == "SH") {
    keep_smaller(strings[text("value")], text("name"));
  } else if (name == "PR") {
    const JsonField* what = find_arg(event, "name");
    const JsonField* value = find_arg(event, "value");
    std::int64_t rank = -1;
    if (what != nullptr && is(what->value, "rank") && value != nullptr &&
        integer_of(*value, rank)) {
      keep_smaller(facts.rank, rank);
    }
  } else if (name == "process_name") {
    put(facts.names, text("name"));
  } else if (name == "process_labels") {
    put(facts.labels, text("labels"));
  }
}

void Survey::read_marked(const Event& event, const InFile& file) {
  MergeRecord out;
  out.file = file.index;
  out.assigned = event.pid;
  for (const JsonField& field : event.args) {
    const std::string text(
        plain_text(field.value, field.kind == JsonKind::kEscaped, event.valid_utf8, scratch_));
    std::int64_t number = 0;
    const bool whole = integer_of(field, number);
    if (is(field.key, "value")) {
      out.source = text;
    } else if (is(field.key, "kind")) {
      out.keyed = text == "process";
    } else if (is(field.key, "pid")) {
      out.pid.is_number = field.kind == JsonKind::kInt;
      if (out.pid.is_number) {
        out.pid.value = field.number;
      } else {
        out.pid.text = field.value;
      }
    } else if (is(field.key, "host")) {
      out.host = text;
    } else if (is(field.key, "shift") && whole) {
      out.shift_us = number;
    } else if (is(field.key, "rank") && whole) {
      out.facts.rank = number;
    } else if (is(field.key, "parent") && whole) {
      out.facts.parent = number;
    } else if (is(field.key, "run")) {
      out.facts.run = text;
    } else if (is(field.key, "program")) {
      out.facts.program = text;
    } else if (is(field.key, "names")) {
      for (std::string& one : split_lines(text)) put(out.facts.names, std::move(one));
    } else if (is(field.key, "labels")) {
      for (std::string& one : split_lines(text)) put(out.facts.labels, std::move(one));
    }
  }
  if (!out.source.empty()) marked.push_back(std::move(out));
}

void Survey::add(Survey&& other) {
  std::string key;
  for (std::unique_ptr<Unit>& unit : other.units_) {
    unit_key(*unit, key);
    Unit*& mine = index_[key];
    if (mine == nullptr) {
      mine = unit.get();
      units_.push_back(std::move(unit));
    } else {
      mine->facts.add(unit->facts);
    }
  }
  for (const auto& [hash, name] : other.hosts) keep_smaller(hosts[hash], name);
  for (const auto& [hash, text] : other.strings) keep_smaller(strings[hash], text);
  marked.insert(marked.end(), std::make_move_iterator(other.marked.begin()),
                std::make_move_iterator(other.marked.end()));
  kept.insert(kept.end(), std::make_move_iterator(other.kept.begin()),
              std::make_move_iterator(other.kept.end()));
  other.units_.clear();
  other.index_.clear();
  other.last_ = nullptr;
  last_ = nullptr;
}

}  // namespace dft::reader
