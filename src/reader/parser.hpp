// Turns the text of one record into an Event: a fast path for the layout that this project writes,
// a general one for any JSON object. One parser a worker thread.
#pragma once
#include <vector>

#include "reader/event.hpp"

namespace dft::reader {

// All members of the arguments of a brief event; none if they are not JSON.
std::span<const Field> members_of(std::string_view args_text, std::vector<Field>& room);

class Parser {
 public:
  explicit Parser(FileClock clock = {}) : clock_(clock) { set_clock(clock); }
  void set_clock(FileClock clock);

  // p stands on `{`. Returns the end of the object, nullptr if it has another layout (which says
  // nothing about whether it is JSON).
  const char* fast(const char* p, Event& event);
  // Likewise, in text up to `end` that a checksum has vouched for, with less work: of an event's
  // arguments it gives `hhash`, which comes first, and `ret` where that comes last, and does not
  // look at the others. What is no event has all of them.
  const char* brief(const char* p, const char* end, Event& event);
  // Likewise for every object; nullptr if it is not JSON. Line ends count as blanks, so that a
  // caller who reads lines asks that the end lies inside of the line.
  const char* general(const char* p, Event& event);

 private:
  bool origin_at(const char*& p, Event& event);
  bool head_at(const char*& p, Event& event);
  bool brief_args(const char*& p, const char* end, Event& event);
  const char* rest(const char* start, const char* p, Event& event);
  void place(const Field& field, Event& event);
  bool set_time(const Field& field, std::int64_t base, std::int64_t& out) const;

  FileClock clock_;
  std::int64_t factor_ = 1000;
  std::int64_t most_ = 0;  // units that still fit 64 bits as nanoseconds
  // The last `,"cat":"…","pid":…,"tid":…,` and what it says: it seldom changes from a line to the
  // next, and comparing it is less work than reading it.
  static constexpr std::size_t kOrigin = 64;
  char origin_text_[kOrigin] = {};
  std::size_t origin_size_ = 0;
  std::size_t category_size_ = 0;
  std::int64_t pid_ = 0;
  std::int64_t tid_ = 0;
  char host_[17] = {};  // the last `hhash` and its quote, likewise
  std::vector<Field> args_;
  std::vector<Field> extra_;
};

}  // namespace dft::reader
