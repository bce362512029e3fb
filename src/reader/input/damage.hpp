// What was read, and what was damaged: counted while blocks are parsed, added up afterwards.
// Each worker thread fills its own; the thread that waits for the workers adds them up.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dft::reader {

enum class Trouble : std::uint8_t {
  kEmptyFile,   // 0 bytes
  kNoRecords,   // bytes, but nothing that is a record
  kCutMember,   // the file ends inside a gzip member
  kBadMember,   // a gzip member that cannot be inflated, or whose checksum is wrong
  kRubbish,     // bytes between or behind the members that are no gzip
  kWrongCount,  // a member holds another number of lines than its header says
  kBadLine,     // not JSON, or not an object
  kCutLine,     // the text ends inside a line
  kLongLine,    // a line past the limit: stepped over
  kNotARecord,  // a JSON object with neither name nor phase
  kBadText,     // a record with bytes that are not UTF-8
  kNoBracket,   // a trace of ours without its first line
  kWrongTotal,  // the end record counts other records than there are
  kCannotRead,  // open or read failed
  kUnpaired,    // a beginning without its end, or an end without its beginning
};
inline constexpr std::size_t kTroubles = 15;

// The names that commands print, and whether a file with it is damaged or only odd.
struct TroubleInfo {
  const char* name;
  const char* text;
  bool damage;
};
const TroubleInfo& info_of(Trouble kind);

struct Problem {
  Trouble kind;
  std::uint32_t file;
  std::uint64_t block;   // ordinal in the file
  std::uint64_t offset;  // in the file; of a gzip member where the text is compressed
  std::uint64_t line;    // in the block, from 0; in the file, from 1, once blocks are added up
  std::uint64_t size;    // bytes it concerns, 0 if that says nothing
  std::string detail;
};

// Of one block, one file, or everything: adding is associative.
struct Damage {
  std::uint64_t bytes_read = 0;  // of files
  std::uint64_t text_bytes = 0;  // inflated
  std::uint64_t members = 0;     // gzip members inflated whole
  std::uint64_t lines = 0;       // line ends, brackets and blank lines too
  std::uint64_t records = 0;     // all JSON objects that are records
  std::uint64_t metadata = 0;    // of these, phase M
  std::uint64_t own = 0;         // of these, the tracer's own: start, end, lost
  std::uint64_t ends = 0;        // of these, ends of spans that are counted with their beginning
  std::uint64_t events = 0;      // the rest
  std::array<std::uint64_t, kTroubles> counts{};
  std::vector<Problem> problems;  // the first ones, by place

  void note(Problem problem);
  void add(const Damage& other);
  [[nodiscard]] std::uint64_t count(Trouble kind) const {
    return counts[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] bool is_damaged() const;
};

inline constexpr std::size_t kProblemsKept = 200;

}  // namespace dft::reader
