// All events of a trace in memory, by thread and in the order of their beginning: what viewers of
// nested spans need. Filled from blocks, in order; used by the exports.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "reader/scan.hpp"

namespace dft::reader {

struct Item {
  std::int64_t ts;
  std::int64_t dur;
  std::uint32_t track;
  std::uint32_t name;  // index of words: name and category
  std::uint64_t payload;
  std::uint32_t payload_size;
  char phase;
};

struct Track {
  std::uint32_t process;
  std::int64_t tid;
  std::string name;  // of its thread_name record
};

struct TimelineProcess {
  std::uint32_t file;
  std::int64_t pid;
  std::string host;
  std::string rank;
  std::string name;
};

struct Word {
  std::string name;
  std::string category;
};

class Timeline {
 public:
  // `encode` appends what an export keeps of an event beside its name and times.
  using Encode = void (*)(const Event& event, std::string& out);
  void read(const std::vector<std::string>& paths, unsigned threads, Encode encode,
            Control* control);
  // By track, beginning, and longest first.
  void sort();

  std::vector<Item> items;
  std::vector<Track> tracks;
  std::vector<TimelineProcess> processes;
  std::vector<Word> words;
  std::string payloads;
  std::int64_t first = 0;
  Outcome outcome;
};

}  // namespace dft::reader
