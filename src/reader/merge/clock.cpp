// Estimates the offset between the clocks of hosts from collective operations (barrier,
// all_reduce). A rank returns from such an operation only after every rank has called it. So for
// hosts A and B, the end on A is later than the start on B, and vice versa: each operation gives
// a lower and an upper bound of the offset, and many operations narrow them. Contradicting
// bounds mean that the operation did not synchronize (an asynchronous launch); it is left out.
// Runs between the two passes of a merge, on one thread.
#include <algorithm>
#include <limits>

#include "reader/merge/merge.hpp"

namespace dft::reader {
namespace {

constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

struct Round {
  std::int64_t start = kLeast;  // the last to come
  std::int64_t end = kMost;     // the first to leave
};
// Of one operation: host to rounds. Ranks that count differently did not take part in the same.
using Operation = std::map<std::string, std::vector<Round>>;

struct Bounds {
  std::int64_t least = kLeast;
  std::int64_t most = kMost;
  std::vector<std::int64_t> differences;
};

Bounds between(const std::vector<Round>& host, const std::vector<Round>& reference) {
  Bounds out;
  for (std::size_t i = 0; i < std::min(host.size(), reference.size()); ++i) {
    out.least = std::max(out.least, host[i].start - reference[i].end);
    out.most = std::min(out.most, host[i].end - reference[i].start);
    out.differences.push_back(host[i].end - reference[i].end);
  }
  return out;
}

}  // namespace

std::vector<HostClock> compare_clocks(const std::vector<MergedProcess*>& processes) {
  // Tracks come in the order of the output: the first host is that of the lowest rank.
  std::vector<std::string> hosts;
  std::map<std::pair<std::string, std::uint64_t>, Operation> operations;
  for (const MergedProcess* process : processes) {
    if (process->host.empty()) continue;
    if (std::find(hosts.begin(), hosts.end(), process->host) == hosts.end()) {
      hosts.push_back(process->host);
    }
    for (const Fragment* fragment : process->fragments) {
      for (const auto& [name, found] : fragment->facts.collectives) {
        Collectives sorted = found;
        sorted.sort();
        std::vector<Round>& rounds = operations[{name, found.count}][process->host];
        rounds.resize(sorted.first.size());
        for (std::size_t i = 0; i < rounds.size(); ++i) {
          rounds[i].start = std::max(rounds[i].start, sorted.first[i].start);
          rounds[i].end = std::min(rounds[i].end, sorted.first[i].end);
        }
      }
    }
  }
  std::vector<HostClock> out;
  for (std::size_t i = 1; i < hosts.size(); ++i) {
    Bounds all;
    for (const auto& [key, operation] : operations) {
      const auto mine = operation.find(hosts[i]);
      const auto theirs = operation.find(hosts[0]);
      if (mine == operation.end() || theirs == operation.end()) continue;
      const Bounds found = between(mine->second, theirs->second);
      // Once may be chance: of what does not wait, the second contradicts the first.
      if (found.differences.size() < 2 || found.least > found.most) continue;
      const std::int64_t least = std::max(all.least, found.least);
      const std::int64_t most = std::min(all.most, found.most);
      if (least > most) continue;
      all.least = least;
      all.most = most;
      all.differences.insert(all.differences.end(), found.differences.begin(),
                             found.differences.end());
    }
    if (all.differences.empty()) continue;
    std::sort(all.differences.begin(), all.differences.end());
    HostClock clock;
    clock.host = hosts[i];
    clock.reference = hosts[0];
    clock.least_ns = all.least;
    clock.most_ns = all.most;
    clock.offset_ns = std::clamp(all.differences[all.differences.size() / 2], all.least, all.most);
    clock.rounds = all.differences.size();
    clock.proven = all.least > 0 || all.most < 0;
    out.push_back(std::move(clock));
  }
  return out;
}

Clocks compare_clocks(const std::vector<std::string>& paths, unsigned threads, Control* control) {
  ScanResult scan_result;
  const Survey survey = survey_all(paths, threads, false, control, scan_result);
  const Plan plan(survey, scan_result.files, Align::kProven);
  Clocks out;
  out.clocks = plan.clocks();
  std::set<std::tuple<std::uint32_t, std::string, std::int64_t>> shifts;
  std::string key;
  for (const auto& unit : survey.units()) {
    unit_key(*unit, key);
    const Treatment* treatment = plan.find(key);
    if (treatment == nullptr || treatment->process == nullptr) continue;
    // What no collective operation proves stays as it is, and so does what a merge was told.
    const std::int64_t shift = treatment->process->shift_us;
    if (shift == 0 || shift == treatment->was_shifted_us) continue;
    shifts.insert({unit->file, treatment->process->host, shift - treatment->was_shifted_us});
  }
  for (const auto& [file, host, shift_us] : shifts) out.shifts.push_back({file, host, shift_us});
  return out;
}

}  // namespace dft::reader
