// All events of a trace in memory, by thread and start time: the nested spans that viewers show.
// Used by the exports. Workers parse blocks; one thread fills and arranges the forest.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/input/scan.hpp"

namespace dft::reader {

// One record; metadata and the tracer's own too, so that a second pass finds each by its number.
struct Item {
  std::int64_t ts;
  std::int64_t dur;
  // Spans that name their parent are numbered as they began, which tells those apart that began at
  // one time. -1: not known.
  std::int64_t order;
  std::uint64_t payload;
  std::uint32_t payload_size;
  std::uint32_t track;
  std::uint32_t name;  // index of words: name and category
  char phase;
  bool is_event;
  bool timed;

  [[nodiscard]] bool is_span() const { return is_event && phase == 'X' && timed; }
  [[nodiscard]] std::int64_t end() const { return ts + dur; }
};

struct Track {
  std::uint32_t process;
  std::int64_t tid;
  std::string name;        // of its thread_name record
  std::string alias;       // where the record has a text for a number
  int lane = 0;            // above 0: a row for spans that cross others of the thread
  std::int64_t shown = 0;  // a number that no other track of the process has
  std::string label = {};  // what viewers show
};

enum class ProcessRole : std::uint8_t { kMain, kWorker, kHelper, kUntraced };

struct ForestProcess {
  std::uint32_t file;
  std::int64_t pid;
  std::string host;
  std::string rank;
  std::string name;     // of its process_name record
  std::string alias;    // where the record has a text for a number
  std::string command;  // of its last start record: hashes, until the trace is read
  std::string program;
  std::int64_t ppid = -1;
  std::int64_t began = 0;  // time of its first start record
  bool started = false;
  bool computes = false;
  bool feeds = false;
  bool sorted = false;  // the trace has a place for it
  ProcessRole role = ProcessRole::kUntraced;
  std::uint32_t place = 0;  // among the rows, from above
  std::int64_t shown = 0;   // a number that no other process has
  std::string label = {};   // what viewers show
};

struct SpanName {
  std::string name;
  std::string category;
};

// The trace has more records than the limit of the caller.
struct TooLarge : std::runtime_error {
  TooLarge() : std::runtime_error("more than the limit") {}
};

class SpanForest {
 public:
  // `encode` appends what an export keeps of an event beside its name and times.
  using Encode = void (*)(const Event& event, std::string& out);
  // Throws TooLarge above so many records; 0: any number.
  void read(const std::vector<std::string>& paths, unsigned threads, Encode encode,
            Control* control, std::uint64_t most = 0);
  // Fills `order`, makes spans of each track nest, and gives processes and tracks their names,
  // numbers and places.
  void arrange();
  // Moves what began at one time of a coarse clock apart, in its order and by less than the clock
  // tells: viewers pile up spans of equal times.
  void spread();

  [[nodiscard]] const std::string* text_of(std::string_view hash) const;
  // Of the record with this number in its block; nullptr for one that was not there when the trace
  // was read.
  [[nodiscard]] const Item* find(const Block& block, std::uint64_t number) const;

  std::vector<Item> items;           // in the order of the files
  std::vector<std::uint32_t> order;  // events by track, beginning, and longest first
  std::vector<std::uint32_t> rows;   // processes in the order of their places
  std::vector<Track> tracks;
  std::vector<ForestProcess> processes;
  std::vector<SpanName> words;
  std::string payloads;
  std::int64_t first = 0;  // the earliest time
  bool has_parts = false;  // some times are no whole microseconds
  ScanResult scan_result;

 private:
  void sort();
  void nest();
  void number_tracks();
  [[nodiscard]] std::int64_t unit_of(std::uint32_t track) const;  // of its clock, nanoseconds

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> strings_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::size_t, std::size_t>> blocks_;
};

}  // namespace dft::reader
