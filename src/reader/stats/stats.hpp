// Statistics of a part of a trace that can be added to those of another: the sum is the same
// however the trace was cut. One partial a worker thread; merged by whoever waits for them.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/input/limits.hpp"
#include "reader/parse/event.hpp"
#include "reader/parse/parser.hpp"
#include "reader/parse/text_map.hpp"
#include "reader/stats/call_bytes.hpp"

namespace dft::reader {

// Counts of durations on a scale of 32 steps per octave, as that of a report: a percentile is right
// to 1/64.
class Histogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1) {
    const unsigned slot = bucket(value) - first_;
    // One that lies below wraps, and is above then.
    (slot < counts_.size() ? counts_[slot] : make(bucket(value))) += times;
  }
  void add(const Histogram& other);
  // The value below which the share (0 to 1) of all lies.
  [[nodiscard]] std::uint64_t percentile(double share) const;
  [[nodiscard]] std::uint64_t count() const;

 private:
  // Without a branch, since whether a duration is short is nothing that can be foreseen.
  static unsigned bucket(std::uint64_t value) {
    const auto octave = static_cast<unsigned>(std::bit_width(value | 32)) - 6;  // 0 below 64
    return octave * 32 + static_cast<unsigned>(value >> octave);
  }
  static std::uint64_t middle(unsigned bucket);
  std::uint64_t& make(unsigned bucket);

  unsigned first_ = 0;  // bucket of counts_[0]
  std::vector<std::uint64_t> counts_;
};

// Bytes that calls moved, and how many calls moved bytes that the trace does not tell.
struct Bytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t read_unknown = 0;
  std::uint64_t write_unknown = 0;
  void add(const Bytes& other);
  void take_away(const Bytes& other);
};

// Sums saturate: no duration is negative here, so that order does not matter even then.
struct Row {
  std::uint64_t count = 0;
  std::uint64_t total = 0;  // nanoseconds
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  Bytes bytes{};  // of files; see Partial::pipes
  Histogram durations;
  void add(const Row& other);
};

// Of one file that the traced program used.
struct PathRow {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  Bytes bytes{};
  std::uint64_t mapped = 0;  // bytes
  void add(const PathRow& other);
};

struct Place {  // in the trace; orders what has no other order
  std::uint64_t block = ~std::uint64_t{0};
  std::uint64_t line = 0;
  auto operator<=>(const Place&) const = default;
};

// What the records of the tracer itself say of a process. Apart from its numbers: a trace may hold
// a million processes without a start record.
struct ProcessTexts {
  std::string command;  // hashes
  std::string program;
  std::string cwd;
  std::string run;
  std::string key;
  std::string version;
  std::string rank;
  std::string name;
};

struct ProcessRow {
  std::uint32_t file = 0;
  std::int64_t pid = 0;
  std::string host;  // its hash, or its name
  Place seen;
  std::uint64_t events = 0;
  std::uint64_t records = 0;
  std::uint64_t total = 0;
  Bytes bytes{};  // of files; see Partial::pipes
  std::set<std::int64_t> threads;
  std::int64_t last_thread = -1;  // is in the set
  std::int64_t first = 0;         // nanoseconds; with last, of its events
  std::int64_t last = 0;
  bool timed = false;
  std::int64_t began = 0;  // its first start record
  std::int64_t ended = 0;  // its last end record
  bool began_timed = false;
  bool ended_timed = false;
  std::int64_t cpu = -1;  // nanoseconds of processor time, by its last end record
  std::uint64_t starts = 0;
  std::uint64_t ends = 0;
  bool recovered = false;
  std::uint64_t lost = 0;
  std::int64_t promised = -1;  // num_events of the last end record
  Place start_at;              // of the last start record, whose facts these are
  Place end_at;
  std::int64_t ppid = -1;
  void add(const ProcessRow& other);
  void begin_at(std::int64_t when) {
    began = began_timed ? std::min(began, when) : when;
    began_timed = true;
  }
  void finish_at(std::int64_t when) {
    ended = ended_timed ? std::max(ended, when) : when;
    ended_timed = true;
  }
  [[nodiscard]] const ProcessTexts& said() const;
  ProcessTexts& say();  // to be changed

 private:
  std::shared_ptr<ProcessTexts> texts_;
};

struct FileFacts {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool timed = false;
  std::map<std::string, std::uint64_t> metadata;  // records by name, the tracer's own among them
  std::vector<std::pair<Place, std::string>> sample;
  void time(std::int64_t from, std::int64_t to) {
    first = timed ? std::min(first, from) : from;
    last = timed ? std::max(last, to) : to;
    timed = true;
  }
  void add(const FileFacts& other, std::size_t samples);
};

struct PartialOptions {
  bool by_file = false;     // rows of each trace file, not of all together
  bool paths = true;        // statistics by file of the traced program
  std::size_t samples = 0;  // first events of each trace file, as written
  std::size_t processes = kMostProcesses;
};

class Partial {
 public:
  explicit Partial(PartialOptions options = {}) : options_(options) {}
  void add(const Event& event, std::uint32_t file, Place place);
  // False, and nothing added, if the event itself is needed.
  bool again(const Repeat& repeat);
  void add(Partial&& other);
  // Once all are added: folds what names no host into its process, and resolves hashes.
  void finish();

  struct NameRow {
    std::string category;
    std::string name;
    std::uint32_t file = 0;
    Row row;
  };
  // After finish(), each in an order that depends on the trace alone.
  std::vector<NameRow> names;
  std::vector<ProcessRow> processes;
  std::map<std::string, PathRow> by_path;
  std::map<std::uint32_t, FileFacts> files;
  std::map<std::string, std::string> strings;  // hash to text: hosts, files, others
  std::map<std::string, std::string> hosts;    // hash to name
  std::uint64_t paths_unknown = 0;             // hashes that no record explains
  // What went through pipes, sockets and terminals. With PartialOptions::paths it is in none of the
  // sums of names and processes.
  Bytes pipes;

 private:
  // To know how many bytes a call moved.
  enum class Needs : std::uint8_t { kNothing, kResult, kArguments };
  struct Counted {
    Row row;
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
  struct Use {
    std::uint32_t name;     // in names_
    std::uint32_t process;  // in rows_
    Bytes bytes;
  };
  struct CountedPath {
    PathRow row;
    std::vector<Use> uses;
  };
  // What an event is added to, by Event::alike.
  struct Known {
    std::uint64_t alike = 0;
    Counted* counted = nullptr;
    FileFacts* facts = nullptr;
    std::uint32_t process = 0;  // in rows_
  };
  static constexpr std::size_t kKnown = 256;

  ProcessRow& process_of(const Event& event, std::uint32_t file, std::string_view host,
                         Place place);
  FileFacts& facts_of(std::uint32_t file);
  void own(const Event& event, ProcessRow& process, std::uint32_t file, Place place);
  CountedPath& add_path(std::string_view path, bool hashed, const PathRow& row);
  static void add_use(CountedPath& path, const Use& use);
  void add_paths(const Event& event, std::uint32_t name, const Bytes& bytes, PathRow row);
  void take_pipes_away(const CountedPath& path);
  void add_event(const Event& event, ProcessRow& process, std::uint32_t file, Place place);
  std::string text_of(const Field* field, bool valid);

  PartialOptions options_;
  TextTable<Counted> names_;
  TextTable<CountedPath> paths_;
  std::unordered_map<std::string, std::uint32_t> process_index_;
  std::vector<ProcessRow> rows_;
  std::uint32_t last_process_ = ~0U;
  std::uint32_t last_file_ = ~0U;
  FileFacts* last_facts_ = nullptr;
  std::array<Known, kKnown> known_ = {};
  std::vector<Field> room_;
  std::string scratch_;
};

// For Block::brief_records: adds all of a block.
class Adder {
 public:
  Adder(Partial& partial, std::uint32_t file, std::uint64_t block)
      : partial_(partial), file_(file), block_(block) {}
  void operator()(const Event& event, std::uint64_t line) const {
    partial_.add(event, file_, {block_, line});
  }
  [[nodiscard]] bool again(const Repeat& repeat) const { return partial_.again(repeat); }

 private:
  Partial& partial_;
  std::uint32_t file_;
  std::uint64_t block_;
};

}  // namespace dft::reader
