// The rows of the statistics: totals of a name, a path, a process and a trace file. Adding two rows
// gives the row of both parts, in any order. No locks: each worker thread fills its own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reader/stats/histogram.hpp"

namespace dft::reader {

// Sums saturate. All summands are unsigned, so the order of adding makes no difference even then.
inline void add_saturated(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

// Bytes that calls moved, and the number of calls whose bytes the trace does not record.
struct Bytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t read_unknown = 0;
  std::uint64_t write_unknown = 0;
  void add(const Bytes& other);
  void take_away(const Bytes& other);
};

// Of all calls of one name.
struct CallTotals {
  std::uint64_t count = 0;
  std::uint64_t total = 0;  // nanoseconds
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  Bytes bytes{};  // of files; see Stats::pipes
  Histogram durations;
  void add(const CallTotals& other);
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

// Where in a trace a record stands; the order of what has no other.
struct TracePosition {
  std::uint64_t block = ~std::uint64_t{0};
  std::uint64_t line = 0;
  auto operator<=>(const TracePosition&) const = default;
};

// What the tracer's own records hold about a process. Apart from ProcessRow, because a trace may
// hold a million processes without a start record.
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
  TracePosition seen;
  std::uint64_t events = 0;
  std::uint64_t records = 0;
  std::uint64_t total = 0;
  Bytes bytes{};  // of files; see Stats::pipes
  std::set<std::int64_t> threads;
  std::int64_t last_thread = -1;  // is in the set
  std::int64_t first = 0;         // nanoseconds; with last, of its events
  std::int64_t last = 0;
  bool timed = false;
  std::int64_t began = 0;  // its first start record
  std::int64_t ended = 0;  // its last end record
  bool began_timed = false;
  bool ended_timed = false;
  std::int64_t cpu = -1;       // nanoseconds of processor time, by its last end record
  std::int64_t cpu_wait = -1;  // that its main thread waited for a processor, by the same
  std::uint64_t starts = 0;
  std::uint64_t ends = 0;
  bool recovered = false;
  std::uint64_t lost = 0;
  std::int64_t promised = -1;      // num_events of the last end record
  std::int64_t ring_requests = 0;  // of io_uring that only the kernel saw, likewise
  TracePosition start_at;          // of the last start record, whose facts these are
  TracePosition end_at;
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
  [[nodiscard]] const ProcessTexts& texts() const;
  ProcessTexts& edit_texts();  // to be changed

 private:
  std::shared_ptr<ProcessTexts> texts_;
};

struct FileFacts {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool timed = false;
  std::map<std::string, std::uint64_t> metadata;  // records by name, the tracer's own among them
  std::vector<std::pair<TracePosition, std::string>> sample;
  void time(std::int64_t from, std::int64_t to) {
    first = timed ? std::min(first, from) : from;
    last = timed ? std::max(last, to) : to;
    timed = true;
  }
  void add(const FileFacts& other, std::size_t samples);
};

}  // namespace dft::reader
