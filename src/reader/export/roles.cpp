// Roles, labels and places of processes in a viewer. Called once per export, after all events are
// read.
#include "reader/export/roles.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace dft::reader {
namespace {

constexpr std::size_t kLongest = 80;  // of a command line that is shown

std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

// The words of a command, which stand between semicolons; of a program or script its name alone.
std::string words_of(std::string_view command) {
  std::string words;
  for (int i = 0; !command.empty(); ++i) {
    const std::size_t end = std::min(command.find(';'), command.size());
    std::string_view word = command.substr(0, end);
    if (i == 0 || (i == 1 && word.ends_with(".py"))) word = last_part(word);
    if (i != 0) words += ' ';
    words += word;
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  for (char& c : words) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (words.size() <= kLongest) return words;
  std::size_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(words[cut]) & 0xc0) == 0x80) --cut;
  return words.substr(0, cut) + "...";
}

// The program's name, which is its script's where it has one. Tracers write a word of their own for
// what runs, where no user named it, so that comes last.
std::string program_of(const ForestProcess& process) {
  if (!process.name.empty()) return process.name;
  if (!process.command.empty()) return words_of(process.command);
  if (!process.program.empty()) return std::string(last_part(process.program));
  return process.alias.empty() ? "process" : process.alias;
}

std::string what_it_runs(const ForestProcess& process) {
  return process.command.empty() ? program_of(process) : words_of(process.command);
}

std::int64_t rank_of(const std::string& text) {
  std::int64_t rank = -1;
  std::from_chars(text.data(), text.data() + text.size(), rank);
  return rank;
}

}  // namespace

// As class_of() of the report's vocabulary has it, and its table of work.
WorkSigns work_of(std::string_view category, std::string_view name) {
  if (name.ends_with(".block") || name.starts_with("ProfilerStep")) return {};
  const bool steps = is(category, "user_annotation") && name.starts_with("Optimizer.step");
  const bool computes = (is(category, "compute") || steps) && !name.starts_with("aten::");
  return {computes, is(category, "data") || is(category, "reader")};
}

void place_processes(SpanForest& forest) {
  auto& processes = forest.processes;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> by_number;
  std::set<std::string> hosts;
  for (std::uint32_t i = 0; i < processes.size(); ++i) {
    if (!processes[i].alias.empty()) continue;
    by_number.emplace(std::make_pair(processes[i].host, processes[i].pid), i);
    if (!processes[i].host.empty()) hosts.insert(processes[i].host);
  }
  const auto parent_of = [&](const ForestProcess& process) -> const ForestProcess* {
    const auto found = by_number.find({process.host, process.ppid});
    return process.started && found != by_number.end() ? &processes[found->second] : nullptr;
  };
  const bool some_compute = std::any_of(processes.begin(), processes.end(),
                                        [](const ForestProcess& p) { return p.computes; });
  for (ForestProcess& process : processes) {
    if (!process.started) continue;
    const bool has_parent = parent_of(process) != nullptr;
    // There is no worker without one that it works for.
    process.role = process.computes                                ? ProcessRole::kMain
                   : process.feeds && (has_parent || some_compute) ? ProcessRole::kWorker
                   : has_parent                                    ? ProcessRole::kHelper
                                                                   : ProcessRole::kMain;
  }
  // What a rank starts belongs to it. A few steps up are enough, and numbers that were used again
  // may lead in circles.
  std::vector<std::string> ranks(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const ForestProcess* at = &processes[i];
    for (int step = 0; step < 8 && at != nullptr && ranks[i].empty(); ++step) {
      ranks[i] = at->rank;
      at = parent_of(*at);
    }
  }
  auto& rows = forest.rows;
  rows.resize(processes.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    const ForestProcess& one = processes[a];
    const ForestProcess& two = processes[b];
    const auto key = [&](const ForestProcess& p, std::uint32_t i) {
      const std::string program = p.role == ProcessRole::kHelper ? program_of(p) : std::string();
      return std::make_tuple(p.role == ProcessRole::kUntraced, rank_of(ranks[i]), p.role, program,
                             p.began, p.pid);
    };
    return key(one, a) < key(two, b);
  });
  std::map<std::string, int> workers;
  std::set<std::int64_t> taken;
  std::int64_t free = std::int64_t{1} << 22;
  for (std::uint32_t place = 0; place < rows.size(); ++place) {
    ForestProcess& process = processes[rows[place]];
    const std::string& rank = ranks[rows[place]];
    process.place = place;
    // Viewers know a process by its number: those of another host, or of a number that was used
    // again, get one that no kernel gives.
    process.shown = process.pid;
    if (!process.alias.empty() || process.pid < 0 || process.pid > INT32_MAX ||
        !taken.insert(process.pid).second) {
      while (!taken.insert(free).second) ++free;
      process.shown = free;
    }
    const std::string of_rank = rank.empty() ? std::string() : "rank " + rank;
    std::string& label = process.label;
    switch (process.role) {
      case ProcessRole::kMain:
        label = (rank.empty() ? "main" : of_rank) + ": " + what_it_runs(process);
        break;
      case ProcessRole::kWorker:
        label = (rank.empty() ? "" : of_rank + " ") + "worker " + std::to_string(workers[rank]++);
        break;
      case ProcessRole::kHelper:
        label = (rank.empty() ? "" : of_rank + " ") + "helper: " + program_of(process);
        break;
      case ProcessRole::kUntraced:
        label = !process.name.empty() || rank.empty() ? what_it_runs(process) : of_rank;
        break;
    }
    if (hosts.size() > 1 && !process.host.empty()) label += " on " + process.host;
    if (process.shown != process.pid && process.alias.empty()) {
      label += " (pid " + std::to_string(process.pid) + ")";
    }
  }
}

}  // namespace dft::reader
