// Turns the text of one record into an Event: a fast path for the layout that this project writes,
// a general one for any JSON object. One parser a worker thread.
#pragma once
#include <string_view>
#include <vector>

#include "reader/parse/event.hpp"

namespace dft::reader {

// Of an object in JSON of any layout, which has been checked.
std::span<const JsonField> members_of_any(std::string_view object, std::vector<JsonField>& room);
// All members of the arguments of a brief event; none if they are not JSON.
std::span<const JsonField> members_of(std::string_view args_text, std::vector<JsonField>& room);

class Parser {
 public:
  explicit Parser(FileClock clock = {}) { begin(clock); }
  // Before the lines of a block.
  void begin(FileClock clock);

  // p stands on `{`. Returns the end of the object, nullptr if it has another layout (which says
  // nothing about whether it is JSON).
  const char* fast(const char* p, Event& event);
  // Likewise, in text up to `end` that a checksum has vouched for, with less work: of an event's
  // arguments it gives `hhash`, which comes first, and `ret` where that comes last, and does not
  // look at the others. What is no event has all of them.
  const char* brief(const char* p, const char* end, Event& event);
  // Likewise, with still less: only a line whose name, process, thread and host were in a brief
  // event of this block, and whose other bytes are ASCII. nullptr for all others.
  const char* repeat(const char* p, const char* end, Repeat& out) const;
  // Likewise for every object; nullptr if it is not JSON. Line ends count as blanks, so that a
  // caller who reads lines asks that the end lies inside of the line.
  const char* general(const char* p, Event& event);

 private:
  // What stands between the quote before a name and the number of a time, and what it says. Lines
  // share a few of these, and comparing one is less work than reading it.
  struct Origin {
    static constexpr std::size_t kLeast = 32;  // no such text is shorter
    static constexpr std::size_t kRoom = 128;
    char text[kRoom];
    std::size_t size;  // 0: none
    std::size_t name_size;
    std::size_t category_size;
    std::int64_t pid;
    std::int64_t tid;
    std::uint64_t alike;
    [[nodiscard]] bool stands_at(const char* p) const;
    bool keep(const char* start, std::size_t length, const Event& event);
  };
  static constexpr unsigned kOriginBits = 8;
  static constexpr unsigned kTailBits = 6;

  [[nodiscard]] static std::size_t tail_of(std::uint64_t name);
  [[nodiscard]] std::size_t slot_of(const char* name) const;
  bool head_at(const char*& p, Event& event, Origin*& origin);
  bool origin_at(const char*& p, Event& event, Origin*& origin);
  Origin* keep(const char* start, const char* end, const Event& event);
  bool time_at(const char*& p, Event& event);
  bool host_at(const char*& p);
  bool brief_args(const char*& p, const char* end, Event& event, Origin* origin);
  const char* rest(const char* start, const char* p, Event& event);
  void place(const JsonField& field, Event& event);
  bool set_time(const JsonField& field, std::int64_t base, std::int64_t& out) const;

  FileClock clock_;
  std::int64_t factor_ = 1000;
  std::int64_t most_ = 0;  // units that still fit 64 bits as nanoseconds
  Origin origins_[std::size_t{1} << kOriginBits] = {};  // by the beginning of the name, and thread
  // How far behind the beginning of a name the last digits of a thread stand.
  std::uint8_t tails_[std::size_t{1} << kTailBits] = {};
  std::uint64_t next_ = 0;   // for Event::alike
  std::uint64_t since_ = 0;  // what is below it was of another block or host
  // The first eight of a time's sixteen digits, and what they are worth: they change in minutes.
  std::uint64_t time_text_ = 0;
  std::int64_t time_value_ = 0;
  bool time_known_ = false;
  // The last text between the duration and the arguments behind the host. As good as any other to
  // begin with.
  static constexpr std::string_view kBeforeHost = R"(,"ph":"X","args":{"hhash":")";
  static constexpr std::size_t kHash = 16;
  static constexpr std::size_t kHost = kBeforeHost.size() + kHash + 1;
  char host_[kHost + 1] = R"(,"ph":"X","args":{"hhash":"0000000000000000")";
  std::vector<JsonField> args_;
  std::vector<JsonField> extra_;
};

}  // namespace dft::reader
