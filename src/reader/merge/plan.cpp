// Decides which records are one process, and what it is called and numbered in the output.
// Runs between the two passes, on one thread.
#include "reader/merge/plan.hpp"

#include <algorithm>
#include <tuple>

#include "reader/parse/text_map.hpp"

namespace dft::reader {
namespace {

// Above every number that Linux gives to a process, round, and easy to recognise.
constexpr std::int64_t kFirstNew = 10'000'001;

std::string hex(std::uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) out[static_cast<std::size_t>(i)] = kDigits[value & 15];
  return out;
}

std::string text_of(const ProcessId& number) {
  return number.is_number ? '#' + std::to_string(number.value) : '"' + number.text;
}

std::string identity(const std::string& source, bool keyed, const ProcessId& pid,
                     const std::string& host) {
  // A process key says host and number already.
  if (keyed) return 'p' + source;
  return 't' + source + '\n' + text_of(pid) + '\n' + host;
}

bool overlap(const SurveyedProcess& a, const SurveyedProcess& b) {
  return a.timed && b.timed && a.first <= b.last && b.first <= a.last;
}

// A row of torch.profiler that stands for a device or for itself, not for a process.
bool is_device(const Fragment& fragment) {
  if (!fragment.pid.is_number) return true;
  const auto& labels = fragment.facts.labels;
  return !labels.empty() && labels.find("CPU") == labels.end();
}

std::int64_t rank_key(std::int64_t rank) { return rank < 0 ? INT64_MAX : rank; }

bool compatible(const Fragment& a, const Fragment& b) {
  const bool host = a.host_name.empty() || b.host_name.empty() || a.host_name == b.host_name;
  const bool rank = a.facts.rank < 0 || b.facts.rank < 0 || a.facts.rank == b.facts.rank;
  return a.pid == b.pid && host && rank;
}

// What a unit of a merged file was before, among those that have its number there.
const MergeRecord* find_marked(const std::vector<const MergeRecord*>& candidates,
                               const Unit& unit) {
  const MergeRecord* keyed = nullptr;
  const MergeRecord* marked = nullptr;
  for (const MergeRecord* one : candidates) {
    if (one->keyed) {
      keyed = one;
    } else if (one->source == unit.mark && (marked == nullptr || one->host == unit.host)) {
      marked = one;
    }
  }
  // An argument of the program's own may look like a mark.
  return marked != nullptr ? marked : keyed;
}

}  // namespace

std::string join_lines(const std::set<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "\n") + text;
  return out;
}

Plan::Plan(const Survey& survey, const std::vector<std::shared_ptr<InFile>>& files, Align align) {
  collect(survey, files);
  group();
  for (MergedProcess& process : processes_) order_.push_back(&process);
  name();
  clocks_ = compare_clocks(order_);
  for (HostClock& clock : clocks_) {
    clock.applied = align == Align::kAlways || (align == Align::kProven && clock.proven);
    if (!clock.applied) continue;
    for (MergedProcess& process : processes_) {
      // Whole microseconds, so that they can be given back.
      if (process.host == clock.host) process.shift_us = clock.offset_ns / 1000;
    }
  }
  number();
}

Fragment& Plan::fragment(const std::string& source, bool keyed, const ProcessId& pid,
                         const std::string& host) {
  Fragment*& found = by_identity_[identity(source, keyed, pid, host)];
  if (found == nullptr) {
    found = &fragments_.emplace_back();
    found->source = source;
    found->keyed = keyed;
    found->pid = pid;
    found->host = host;
  }
  if (found->host.empty()) found->host = host;
  return *found;
}

void Plan::collect(const Survey& survey, const std::vector<std::shared_ptr<InFile>>& files) {
  std::vector<std::vector<const Unit*>> units(files.size());
  for (const auto& unit : survey.units()) units[unit->file].push_back(unit.get());
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<const MergeRecord*>> marked;
  for (const MergeRecord& one : survey.marked) {
    marked[{one.file, one.assigned}].push_back(&one);
    Fragment& target = fragment(one.source, one.keyed, one.pid, one.host);
    target.facts.add(one.facts);
  }
  std::string key;
  std::set<const Fragment*> raw;  // of files that were not merged before
  for (std::size_t index = 0; index < files.size(); ++index) {
    const InFile& file = *files[index];
    // What the file itself is, for those of its processes that do not say who they are.
    std::uint64_t digest = 0;
    for (const Unit* unit : units[index]) {
      if (!unit->facts.key.empty()) continue;
      digest += unit->facts.digest +
                hash_text(text_of(unit->pid) + unit->host,
                          unit->facts.records ^ static_cast<std::uint64_t>(unit->facts.first));
    }
    const std::string source = hex(digest);
    std::map<ProcessId, std::vector<const Unit*>> by_pid;
    for (const Unit* unit : units[index]) by_pid[unit->pid].push_back(unit);
    std::map<Fragment*, SurveyedProcess> here;
    for (const Unit* unit : units[index]) {
      Treatment treatment;
      SurveyedProcess facts = unit->facts;
      const auto known = survey.strings.find(facts.program);
      if (known != survey.strings.end()) facts.program = known->second;
      facts.program = facts.program.substr(facts.program.rfind('/') + 1);
      const auto before = marked.find({unit->file, unit->pid.value});
      const MergeRecord* was = unit->pid.is_number && before != marked.end()
                                   ? find_marked(before->second, *unit)
                                   : nullptr;
      Fragment* target = nullptr;
      if (was != nullptr) {
        target = &fragment(was->source, was->keyed, was->pid, was->host);
        treatment.again = true;
        treatment.was_renumbered = !was->pid.is_number || was->pid.value != was->assigned;
        treatment.was_shifted_us = was->shift_us;
        facts.shift(was->shift_us * 1000);
      } else {
        // Counters and some metadata name no host: they belong to the process of their number.
        const Unit* owner = unit;
        if (unit->facts.key.empty()) {
          for (const Unit* other : by_pid[unit->pid]) {
            if (other->mark == unit->mark && (unit->host.empty() || other->host == unit->host) &&
                (!other->host.empty() || !other->facts.key.empty())) {
              owner = other;
              if (!other->facts.key.empty()) break;
            }
          }
        }
        const bool keyed = !owner->facts.key.empty();
        target = &fragment(keyed ? owner->facts.key : source, keyed, owner->pid,
                           owner->host.empty() ? file.host : owner->host);
        if (facts.rank < 0) facts.rank = file.rank;
      }
      treatment.fragment = target;
      here[target].add(facts);
      unit_key(*unit, key);
      treatments_[key] = treatment;
    }
    for (auto& [target, facts] : here) {
      // Pieces of a trace have one start between them; copies have it each. A trace without keys
      // is known by what is in it: a second file of the same is a copy.
      const bool again =
          target->keyed
              ? facts.starts != 0 && target->facts.starts != 0 && overlap(target->facts, facts)
              : !file.merged && facts.events != 0 && !raw.insert(target).second;
      target->overlapping = target->overlapping || again;
      target->facts.add(facts);
    }
  }
  for (Fragment& one : fragments_) {
    const auto known = survey.hosts.find(one.host);
    one.host_name = known == survey.hosts.end() ? one.host : known->second;
    if (!one.host_name.empty()) hosts_.insert(one.host_name);
  }
}

// Which fragments are one process.
void Plan::group() {
  std::vector<Fragment*> keyed;
  std::vector<Fragment*> others;
  for (Fragment& one : fragments_) (one.keyed ? keyed : others).push_back(&one);
  const auto by_identity = [](const Fragment* a, const Fragment* b) {
    return std::tie(a->source, a->pid, a->host) < std::tie(b->source, b->pid, b->host);
  };
  std::sort(keyed.begin(), keyed.end(), by_identity);
  std::sort(others.begin(), others.end(), by_identity);
  const auto make = [&](Fragment* one) {
    MergedProcess& process = processes_.emplace_back();
    process.fragments.push_back(one);
    one->process = &process;
  };
  std::map<ProcessId, std::vector<Fragment*>> by_pid;
  for (Fragment* one : keyed) {
    make(one);
    by_pid[one->pid].push_back(one);
  }
  // A trace of torch.profiler, or of another tracer, of a process that is here already.
  std::map<std::tuple<ProcessId, std::string, std::int64_t, std::string>, std::vector<Fragment*>>
      left;
  for (Fragment* one : others) {
    Fragment* home = nullptr;
    std::size_t candidates = 0;
    for (Fragment* other : by_pid[one->pid]) {
      if (is_device(*one) || !compatible(*one, *other) || !overlap(one->facts, other->facts)) {
        continue;
      }
      home = other;
      ++candidates;
    }
    if (candidates == 1) {
      one->aside = true;
      one->process = home->process;
      one->process->fragments.push_back(one);
    } else {
      const std::string labels = join_lines(one->facts.labels);
      left[{one->pid, one->host_name, one->facts.rank, labels}].push_back(one);
    }
  }
  // Of those that remain, the same number on the same host at different times is one process that
  // was traced in turns. At the same time, started twice, or on hosts of which nothing is known,
  // they are different ones: numbers are used again.
  for (auto& [key, same] : left) {
    std::uint64_t starts = 0;
    bool apart = true;
    std::sort(same.begin(), same.end(), [&](const Fragment* a, const Fragment* b) {
      return std::tie(a->facts.first, a->source) < std::tie(b->facts.first, b->source);
    });
    for (std::size_t i = 0; i < same.size(); ++i) {
      starts += same[i]->facts.starts;
      if (i != 0 && (!same[i]->facts.timed || overlap(same[i - 1]->facts, same[i]->facts))) {
        apart = false;
      }
    }
    for (std::size_t i = 0; i < same.size(); ++i) {
      if (i == 0 || !apart || starts > 1 || same[0]->host_name.empty()) {
        make(same[i]);
      } else {
        same[i]->process = same[0]->process;
        same[0]->process->fragments.push_back(same[i]);
      }
    }
  }
  for (auto& [key, treatment] : treatments_) treatment.process = treatment.fragment->process;
}

void Plan::name() {
  for (MergedProcess& process : processes_) {
    process.real = process.fragments[0]->pid;
    process.device = is_device(*process.fragments[0]);
    for (const Fragment* one : process.fragments) {
      if (process.host.empty()) process.host = one->host_name;
      if (one->facts.rank >= 0) process.rank = one->facts.rank;
    }
  }
  // Children of a process that is here, too.
  std::set<std::tuple<std::string, std::string, std::int64_t>> known;
  for (const MergedProcess& process : processes_) {
    for (const Fragment* one : process.fragments) {
      if (one->pid.is_number) known.insert({one->facts.run, one->host_name, one->pid.value});
    }
  }
  for (MergedProcess& process : processes_) {
    std::string program;
    std::string label;
    for (const Fragment* one : process.fragments) {
      const SurveyedProcess& facts = one->facts;
      if (facts.parent >= 0 && known.count({facts.run, one->host_name, facts.parent}) != 0) {
        process.child = true;
      }
      for (const std::string& name : facts.names) {
        if (program.empty() && !name.starts_with("rank ")) program = name;
      }
      if (program.empty()) program = facts.program;
      if (process.device && !facts.labels.empty()) label = *facts.labels.begin();
    }
    if (!process.real.is_number && label.empty()) {
      label = process.real.text.empty() ? "marks" : process.real.text;
    }
    if (process.rank >= 0) {
      process.name = "rank " + std::to_string(process.rank);
      if (process.child) process.name += " worker";
    } else {
      process.name = program.empty() ? "process" : program;
    }
    if (!process.real.is_number) process.name = process.rank >= 0 ? process.name : "torch.profiler";
    if (!label.empty()) process.name += ' ' + label;
    if (hosts_.size() > 1 && !process.host.empty()) process.name += " @ " + process.host;
  }
  std::sort(order_.begin(), order_.end(), [](const MergedProcess* a, const MergedProcess* b) {
    const auto key = [](const MergedProcess& t) {
      const Fragment& f = *t.fragments[0];
      return std::make_tuple(rank_key(t.rank), std::cref(t.host), t.device, t.child, f.facts.first,
                             std::cref(t.real), std::cref(f.source), std::cref(f.host));
    };
    return key(*a) < key(*b);
  });
}

void Plan::number() {
  std::set<std::int64_t> taken;
  for (const MergedProcess* process : order_) {
    if (process->real.is_number && process->real.value > 0) taken.insert(process->real.value);
  }
  std::set<std::int64_t> kept;
  std::int64_t next = kFirstNew;
  std::int64_t order = 0;
  for (MergedProcess* process : order_) {
    process->order = order++;
    if (process->real.is_number && process->real.value > 0 &&
        kept.insert(process->real.value).second) {
      process->pid = process->real.value;
      continue;
    }
    while (taken.count(next) != 0) ++next;
    process->pid = next++;
  }
}

}  // namespace dft::reader
