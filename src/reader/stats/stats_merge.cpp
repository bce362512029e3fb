// Adds the statistics of worker threads up, and turns the sum into rows in a fixed order.
// Called once per scan, on the thread that waited for the workers.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "reader/stats/stats.hpp"

namespace dft::reader {

void Stats::add(Stats&& other) {
  bool fresh = false;
  std::vector<std::uint32_t> name_of;
  for (auto& entry : other.names_.entries()) {
    name_of.push_back(names_.find(entry.first, entry.second, entry.number, fresh));
    NameEntry& mine = names_.row(name_of.back());
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
    PathEntry& mine = add_path(entry.first, entry.number == 1, entry.row.row);
    for (const PathUse& use : entry.row.uses) {
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
  other = Stats(options_);
}

void Stats::finish() {
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
  std::map<std::tuple<std::uint32_t, std::string, std::string>, CallTotals> rows;
  for (auto& entry : names_.entries()) {
    const NameEntry& counted = entry.row;
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
  repeat_targets_ = {};
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
    ProcessTexts& said = process.edit_texts();
    resolve(said.command, strings);
    resolve(said.program, strings);
    resolve(said.cwd, strings);
  }
}

}  // namespace dft::reader
