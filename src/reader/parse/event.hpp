// One record of a trace as the parser hands it out, and what is known of the file that it is in.
// Views into the block's text: valid until the next record is parsed.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "reader/parse/json_scan.hpp"

namespace dft::reader {

// What the numbers of a file mean. Found at the head of the file, before its blocks are shared out.
struct FileClock {
  int digits = 3;            // 10^digits nanoseconds are one unit of ts and dur
  std::int64_t base_ns = 0;  // added to every ts: baseTimeNanoseconds of torch.profiler
};

// A string of the record, as it is written there.
struct JsonText {
  std::string_view raw;
  bool escaped = false;
};

enum EventHas : std::uint8_t {
  kHasId = 1,
  kHasPid = 2,
  kHasTid = 4,
  kHasTs = 8,
  kHasDur = 16,
  kHasName = 32,
};

// Phases are Chrome's letters. The numbers that some tracers write are translated; an aggregate of
// several calls (number 3) has no letter there and is called A here.
inline constexpr char kNoPhase = 0;
inline constexpr char kMetadata = 'M';
inline constexpr char kAggregate = 'A';

// The tracer's own records (start, end, lost) are facts about a process, not events of it.
inline bool is_own_category(std::string_view category) { return is(category, "dftracer"); }

struct Event {
  JsonText name;
  JsonText category;
  std::int64_t id = 0;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t ts = 0;   // nanoseconds of the Unix epoch
  std::int64_t dur = 0;  // nanoseconds
  std::uint8_t has = 0;  // EventHas
  char phase = kNoPhase;
  bool valid_utf8 = true;
  bool brief = false;
  // Events that have one number here are of one block, and agree in name, category, process, thread
  // and host. 0: nothing is known.
  std::uint64_t alike = 0;
  std::string_view line;             // the object as written
  std::string_view args_text;        // the object `args` as written, empty for none
  std::span<const JsonField> args;   // its members; of a brief one the host and the result alone
  std::span<const JsonField> extra;  // members of the record that have no place above

  [[nodiscard]] bool is_metadata() const { return phase == kMetadata; }
  [[nodiscard]] bool is_own() const { return is_own_category(category.raw); }
  // What the program did: neither metadata nor the tracer's own.
  [[nodiscard]] bool is_event() const { return !is_metadata() && !is_own(); }
};

// An event that is like an earlier one of its block (Event::alike), but for its number, its times
// and its arguments: all that statistics need of it.
struct Repeat {
  std::uint64_t alike = 0;
  std::int64_t ts = 0;   // nanoseconds
  std::int64_t dur = 0;  // likewise
  std::int64_t result = 0;
  bool has_result = false;
};

// The argument that names the host: a hash, or its name where other tracers write that. Beside a
// hash, `hostname` is an argument of the program's own.
inline const JsonField* host_of(const Event& event) {
  const JsonField* named = nullptr;
  for (const JsonField& field : event.args) {
    if (is(field.key, "hhash") && field.is_name()) return &field;
    if (is(field.key, "hostname") && field.is_name()) named = &field;
  }
  return named;
}

}  // namespace dft::reader
