// Statistics of a part of a trace that can be added to those of another part: the sum is the
// same however the trace was cut. Each worker thread fills its own; the thread that waits for
// the workers adds them up and calls finish().
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/input/limits.hpp"
#include "reader/parse/event.hpp"
#include "reader/parse/parser.hpp"
#include "reader/parse/text_map.hpp"
#include "reader/stats/call_bytes.hpp"
#include "reader/stats/rows.hpp"

namespace dft::reader {

struct StatsOptions {
  bool by_file = false;     // rows of each trace file, not of all together
  bool paths = true;        // statistics by file of the traced program
  std::size_t samples = 0;  // first events of each trace file, as written
  std::size_t processes = kMostProcesses;
};

class Stats {
 public:
  explicit Stats(StatsOptions options = {}) : options_(options) {}
  void add(const Event& event, std::uint32_t file, TracePosition position);
  // False, and nothing added, if the event itself is needed.
  bool again(const Repeat& repeat);
  void add(Stats&& other);
  // Once all are added: folds what names no host into its process, and resolves hashes.
  void finish();

  struct NameRow {
    std::string category;
    std::string name;
    std::uint32_t file = 0;
    CallTotals row;
  };
  // After finish(), each in an order that depends on the trace alone.
  std::vector<NameRow> names;
  std::vector<ProcessRow> processes;
  std::map<std::string, PathRow> by_path;
  std::map<std::uint32_t, FileFacts> files;
  std::map<std::string, std::string> strings;  // hash to text: hosts, files, others
  std::map<std::string, std::string> hosts;    // hash to name
  std::uint64_t paths_unknown = 0;             // hashes that no record explains
  // What went through pipes, sockets and terminals. With StatsOptions::paths it is in none of the
  // sums of names and processes.
  Bytes pipes;

 private:
  // To know how many bytes a call moved.
  enum class Needs : std::uint8_t { kNothing, kResult, kArguments };
  struct NameEntry {
    CallTotals row;
    Call call;
    Needs needs = Needs::kNothing;
    std::uint64_t read_mask = 0;  // all bits, if bytes of such a call were read
    std::uint64_t write_mask = 0;
    bool name_escaped = false;
    bool category_escaped = false;
    bool valid = true;
  };
  // Bytes of one file that calls of one name moved, in one process: whether it is a file shows only
  // once its hash is explained.
  struct PathUse {
    std::uint32_t name;     // in names_
    std::uint32_t process;  // in rows_
    Bytes bytes;
  };
  struct PathEntry {
    PathRow row;
    std::vector<PathUse> uses;
  };
  // What an event is added to, by Event::alike.
  struct RepeatTarget {
    std::uint64_t alike = 0;
    NameEntry* counted = nullptr;
    FileFacts* facts = nullptr;
    std::uint32_t process = 0;  // in rows_
  };
  static constexpr std::size_t kRepeatTargets = 256;

  ProcessRow& process_of(const Event& event, std::uint32_t file, std::string_view host,
                         TracePosition position);
  FileFacts& facts_of(std::uint32_t file);
  void own(const Event& event, ProcessRow& process, std::uint32_t file, TracePosition position);
  PathEntry& add_path(std::string_view path, bool hashed, const PathRow& row);
  static void add_use(PathEntry& path, const PathUse& use);
  void add_paths(const Event& event, std::uint32_t name, const Bytes& bytes, PathRow row);
  void take_pipes_away(const PathEntry& path);
  void add_event(const Event& event, ProcessRow& process, std::uint32_t file,
                 TracePosition position);
  std::string text_of(const JsonField* field, bool valid);

  StatsOptions options_;
  TextMap<NameEntry> names_;
  TextMap<PathEntry> paths_;
  std::unordered_map<std::string, std::uint32_t> process_index_;
  std::vector<ProcessRow> rows_;
  std::uint32_t last_process_ = ~0U;
  std::uint32_t last_file_ = ~0U;
  FileFacts* last_facts_ = nullptr;
  std::array<RepeatTarget, kRepeatTargets> repeat_targets_ = {};
  std::vector<JsonField> room_;
  std::string scratch_;
};

// For Block::brief_records: adds all of a block.
class StatsAdder {
 public:
  StatsAdder(Stats& stats, std::uint32_t file, std::uint64_t block)
      : stats_(stats), file_(file), block_(block) {}
  void operator()(const Event& event, std::uint64_t line) const {
    stats_.add(event, file_, {block_, line});
  }
  [[nodiscard]] bool again(const Repeat& repeat) const { return stats_.again(repeat); }

 private:
  Stats& stats_;
  std::uint32_t file_;
  std::uint64_t block_;
};

}  // namespace dft::reader
