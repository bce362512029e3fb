// The first pass of a merge: who is in the traces. One survey a worker thread; adding them up gives
// the same however the files were cut.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/input/block.hpp"

namespace dft::reader {

// Records that a merge makes itself. MP: a process, and what it was before; MC: the clocks.
inline constexpr std::string_view kProcessRecord = "MP";
inline constexpr std::string_view kClockRecord = "MC";
// Of a record without a process key: which trace it came from. Always the last argument.
inline constexpr std::string_view kMark = "trace";
inline constexpr char kCounter = 'C';

// The number of a process or thread, or the text that stands in its place.
struct ProcessId {
  std::int64_t value = 0;
  std::string text;  // used if it is no number: the inside of a JSON string
  bool is_number = false;
  auto operator<=>(const ProcessId&) const = default;
};

// A collective operation: a rank returns from it only after every rank has called it.
struct Collective {
  std::int64_t start = 0;
  std::int64_t end = 0;
  auto operator<=>(const Collective&) const = default;
};
struct Collectives {
  std::uint64_t count = 0;
  std::vector<Collective> first;  // the earliest ones; a heap until sort()
  void add(Collective one);
  void add(const Collectives& other);
  void sort();
};

// What is known of the records of one process in one file. Adding is associative.
struct SurveyedProcess {
  std::uint64_t records = 0;
  std::uint64_t events = 0;
  std::uint64_t starts = 0;
  std::uint64_t digest = 0;  // sum of the records' hashes
  std::int64_t first = 0;    // nanoseconds
  std::int64_t last = 0;
  bool timed = false;
  std::int64_t rank = -1;
  std::int64_t parent = -1;
  std::string key;  // `proc` of its start record
  std::string run;
  std::string program;  // hash, or text
  std::set<std::string> names;
  std::set<std::string> labels;
  std::set<std::string> threads;  // those that have a text instead of a number
  std::map<std::string, Collectives> collectives;

  void time(std::int64_t from, std::int64_t to);
  void shift(std::int64_t nanoseconds);
  void add(const SurveyedProcess& other);
};

struct Unit {
  std::uint32_t file = 0;
  ProcessId pid;
  std::string host;  // hash or name, as the records have it; empty if they name none
  std::string mark;  // of records in a merged file
  SurveyedProcess facts;
};

// What a record MP says.
struct MergeRecord {
  std::uint32_t file = 0;
  std::int64_t assigned = 0;
  std::string source;
  bool keyed = false;
  ProcessId pid;
  std::string host;
  std::int64_t shift_us = 0;  // was taken from every ts
  SurveyedProcess facts;      // rank, run, names, labels
};

class Survey {
 public:
  // keep: also the text of the metadata that pieces of a trace repeat.
  explicit Survey(bool keep = false) : keep_(keep) {}
  void add(Block& block);
  void add(const Event& event, const InFile& file);
  void add(Survey&& other);

  [[nodiscard]] const std::vector<std::unique_ptr<Unit>>& units() const { return units_; }
  std::vector<MergeRecord> marked;
  std::map<std::string, std::string> hosts;    // hash to name
  std::map<std::string, std::string> strings;  // hash to text, of SH records
  struct Kept {
    std::uint32_t file;
    std::string line;
  };
  std::vector<Kept> kept;

 private:
  Unit& unit_of(const Event& event, const InFile& file);
  void own(const Event& event, Unit& unit);
  void read_marked(const Event& event, const InFile& file);

  std::vector<std::unique_ptr<Unit>> units_;
  std::unordered_map<std::string, Unit*> index_;
  bool keep_;
  Unit* last_ = nullptr;
  std::string key_;
  std::string scratch_;
};

// Shared with the second pass.
const JsonField* find_arg(const Event& event, std::string_view key);
[[nodiscard]] std::string_view host_text(const Event& event);
[[nodiscard]] std::string_view mark_of(const Event& event, const InFile& file);
[[nodiscard]] ProcessId pid_of(const Event& event);
// The key under which a unit is found again.
void unit_key(const Event& event, const InFile& file, std::string& out);
void unit_key(const Unit& unit, std::string& out);
// Did a merge make this record? Such records are made anew and never copied.
[[nodiscard]] bool made_by_merge(const Event& event);
// Facts that a merge keeps in MP and shows in records of its own: process_name and the like.
[[nodiscard]] bool absorbed(const Event& event);
// Metadata that a piece of a trace repeats: what a hash means, who a process or thread is.
enum class Repeats : std::uint8_t { kNo, kHash, kProcess };
[[nodiscard]] Repeats repeats(const Event& event);

}  // namespace dft::reader
