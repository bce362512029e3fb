// What a merge does with each process: its number, name, place and clock. A function of the set of
// processes alone, whatever files they stand in, so that merging in any grouping gives the same.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/merge/survey.hpp"

namespace dft::reader {

struct MergedProcess;

// The records of one process from one source. A source is a process that names itself (`proc` of
// its start record), or a trace that does not, known by its content.
struct Fragment {
  std::string source;
  bool keyed = false;
  ProcessId pid;
  std::string host;       // as the records have it
  std::string host_name;  // what it is called
  SurveyedProcess facts;
  MergedProcess* process = nullptr;
  // Another tracer's view of a process that is here already. Its spans would cross the others on
  // their threads' rows, as the two do not time alike: they have rows of their own.
  bool aside = false;
  bool overlapping = false;  // in two files at the same time, from its start: there twice
};

// What a viewer shows as one process: a fragment, or several that are the same process.
struct MergedProcess {
  std::vector<Fragment*> fragments;
  ProcessId real;
  std::int64_t pid = 0;  // in the output
  std::int64_t order = 0;
  std::string name;
  std::string host;  // name
  std::int64_t rank = -1;
  std::int64_t shift_us = 0;  // taken from every ts
  bool child = false;         // of another process
  bool device = false;
  [[nodiscard]] bool renumbered() const { return !real.is_number || real.value != pid; }
};

// How far a host's clock is ahead of the first host's, by what collective operations prove.
struct HostClock {
  std::string host;
  std::string reference;
  std::int64_t offset_ns = 0;
  std::int64_t least_ns = 0;  // the true offset lies between these
  std::int64_t most_ns = 0;
  std::uint64_t rounds = 0;
  bool proven = false;   // 0 does not lie between them
  bool applied = false;  // taken from the host's times
  [[nodiscard]] std::int64_t uncertainty_ns() const {
    return std::max(most_ns - offset_ns, offset_ns - least_ns);
  }
};

enum class Align : std::uint8_t { kNever, kProven, kAlways };

// What to do with the records of one unit.
struct Treatment {
  const Fragment* fragment = nullptr;
  const MergedProcess* process = nullptr;
  bool again = false;           // from a merged file
  bool was_renumbered = false;  // there
  std::int64_t was_shifted_us = 0;
};

class Plan {
 public:
  Plan(const Survey& survey, const std::vector<std::shared_ptr<InFile>>& files, Align align);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // By unit_key().
  [[nodiscard]] const Treatment* find(const std::string& key) const {
    const auto found = treatments_.find(key);
    return found == treatments_.end() ? nullptr : &found->second;
  }
  // The records that open the output: processes, their names and order, the clocks.
  [[nodiscard]] std::string head(std::uint32_t& lines) const;
  // Of one process alone.
  void head_of(const MergedProcess& process, std::string& out, std::uint32_t& lines) const;
  void clock_records(std::string& out, std::uint32_t& lines) const;
  [[nodiscard]] const std::vector<MergedProcess*>& processes() const { return order_; }
  [[nodiscard]] const std::vector<HostClock>& clocks() const { return clocks_; }
  [[nodiscard]] const std::deque<Fragment>& fragments() const { return fragments_; }
  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }

 private:
  Fragment& fragment(const std::string& source, bool keyed, const ProcessId& pid,
                     const std::string& host);
  void collect(const Survey& survey, const std::vector<std::shared_ptr<InFile>>& files);
  void group();
  void number();
  void name();

  std::deque<Fragment> fragments_;
  std::unordered_map<std::string, Fragment*> by_identity_;
  std::unordered_map<std::string, Treatment> treatments_;
  std::deque<MergedProcess> processes_;
  std::vector<MergedProcess*> order_;
  std::set<std::string> hosts_;
  std::vector<HostClock> clocks_;
};

// One text a line.
std::string join_lines(const std::set<std::string>& texts);

// merge_clock.cpp
std::vector<HostClock> compare_clocks(const std::vector<MergedProcess*>& processes);

}  // namespace dft::reader
