// Merges traces into one: a survey of the processes, a plan, and a copy that rewrites records.
// Called by the Python extension, on a thread without the interpreter's lock.
#pragma once
#include <mutex>

#include "reader/input/scan.hpp"
#include "reader/merge/plan.hpp"
#include "reader/write/write.hpp"

namespace dft::reader {

// What went in and came out. Events and the tracer's own records must be equal on both sides.
struct MergeTally {
  std::uint64_t events = 0;
  std::uint64_t own = 0;
  std::uint64_t metadata = 0;  // copied
  std::uint64_t repeated = 0;  // the same metadata again, left out
  std::uint64_t replaced = 0;  // names and places of processes, which are made anew
  std::uint64_t made = 0;      // by the merge
  std::uint64_t outside = 0;   // records outside of the range of a split
  void add(const MergeTally& other);
  void count(const Event& event);
};

// Lines that were written already, by their hashes. Metadata alone goes through it.
class SeenLines {
 public:
  // True if the line is new.
  bool insert(std::string_view line);

 private:
  static constexpr std::size_t kMost = std::size_t{4} << 20;  // lines that are remembered
  bool put(std::uint64_t hash);
  std::mutex mutex_;
  std::vector<std::uint64_t> slots_;
  std::size_t count_ = 0;
};

struct MergeOptions {
  std::vector<std::string> paths;
  unsigned threads = 0;
  unsigned level = 1;
  Align align = Align::kProven;
};

struct MergeResult {
  ScanResult read;  // of the first pass
  MergeTally in;
  MergeTally out;
  std::vector<HostClock> clocks;
  std::uint64_t hosts = 0;
  std::uint64_t processes = 0;
  std::uint64_t renumbered = 0;
  std::vector<std::string> doubled;  // processes that stand in two files at the same time
  struct WrittenFile {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    std::uint64_t events = 0;
  };
  std::vector<WrittenFile> written;
  std::string mismatch;  // what does not add up; nothing was written then
};

// How long each file was when it was surveyed: the second pass reads no more of it.
std::vector<std::uint64_t> sizes_of(const ScanResult& scan_result);
Survey survey_all(const std::vector<std::string>& paths, unsigned threads, bool keep,
                  Control* control, ScanResult& scan_result);
MergeResult merge(const MergeOptions& options, const std::string& out, Control* control);

// The clock model of a merge for those who read the traces as they are: what has to be taken from
// the times of a host in a file, where a merge would take it.
struct Clocks {
  struct Shift {
    std::uint32_t file = 0;
    std::string host;
    std::int64_t shift_us = 0;
  };
  std::vector<HostClock> clocks;
  std::vector<Shift> shifts;
};
Clocks compare_clocks(const std::vector<std::string>& paths, unsigned threads, Control* control);

// How a trace is cut. Every piece repeats the metadata that it needs, and opens alone.
struct SplitOptions {
  enum class By : std::uint8_t { kParts, kBytes, kProcess, kTime };
  By by = By::kParts;
  std::uint64_t number = 2;  // parts, bytes, or nanoseconds a piece
  bool ranged = false;       // only what began in [from, to)
  std::int64_t from = 0;     // nanoseconds
  std::int64_t to = 0;
  std::string stem;  // of the pieces' names: STEM-0001.pfw.gz
  std::string end = ".pfw.gz";
};
MergeResult split(const MergeOptions& options, const SplitOptions& how, Control* control);

// Shared by both: fills what the plan says.
void describe(const Plan& plan, MergeResult& result);
// What stands before the events of a document that a merge writes.
std::string merged_document_head();
// Reads a finished file again: all its members, and as many lines as were written.
bool verify(const TraceFile& file, unsigned threads, Control* control);
// Says what does not add up, in words for `mismatch`.
std::string compare(const MergeTally& in, const MergeTally& out);

}  // namespace dft::reader
