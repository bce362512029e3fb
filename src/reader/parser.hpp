// Turns the text of one record into an Event: a fast path for the layout that this project writes,
// a general one for any JSON object. One parser a worker thread; it keeps room, and nothing else.
#pragma once
#include <vector>

#include "reader/event.hpp"

namespace dft::reader {

class Parser {
 public:
  explicit Parser(FileClock clock = {}) : clock_(clock) { set_clock(clock); }
  void set_clock(FileClock clock);

  // p stands on `{`. Returns the end of the object, nullptr if it has another layout (which says
  // nothing about whether it is JSON).
  const char* fast(const char* p, Event& event);
  // Likewise for every object; nullptr if it is not JSON. Line ends count as blanks, so that a
  // caller who reads lines asks that the end lies inside of the line.
  const char* general(const char* p, Event& event);

 private:
  void place(const Field& field, Event& event);
  bool set_time(const Field& field, std::int64_t base, std::int64_t& out) const;

  FileClock clock_;
  std::int64_t factor_ = 1000;
  std::int64_t most_ = 0;  // units that still fit 64 bits as nanoseconds
  std::vector<Field> args_;
  std::vector<Field> extra_;
};

}  // namespace dft::reader
