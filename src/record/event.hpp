// The binary form of one event, as a thread writes it into its chunk and the sink reads it back.
// Written on the program's threads; read by the writer thread and by recoverers of a spool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "format/lane_ids.hpp"

namespace dft::record {

using format::kFirstForeign;
using format::kLastLane;
using format::kThreadBits;

enum class Kind : std::uint8_t {
  kSpan = 1,          // ph X: start and duration
  kInstant = 2,       // ph i
  kCounter = 3,       // ph C: each argument is a series
  kMetadata = 4,      // ph M, name CM: `name` is the key, the first argument the value
  kThread = 5,        // ph M, name thread_name: the first argument is the name
  kFile = 6,          // ph M, name FH: `id` is the hash, the first argument the path
  kString = 7,        // ph M, name SH: `id` is the hash, the first argument the string
  kCall = 8,          // ph X like kSpan, but shorter: a Call, not a Head
  kProcess = 10,      // ph M, name PR: `name` is the key, the first argument the value
  kProcessName = 11,  // ph M, name process_name: the first argument is the name
  kFlow = 9,          // ph X like kSpan, at an end of a flow: the last argument, of type kFlow
};

enum Flag : std::uint8_t {
  kTimesGiven = 1,      // start and duration are in the trace's time unit, not in ticks
  kOwnLane = 2,         // crosses another span of its thread: shown on a lane of its own
  kInlineName = 4,      // the name table is full: the first string argument is the name
  kInlineCategory = 8,  // likewise, the next string argument is the category
  // From another tracer of this process: start and duration are nanoseconds of the Unix epoch,
  // and the first argument after the inline names is the thread that it is shown on.
  kForeign = 16,
  kNested = 32,  // for a Call: the first word is the id of the innermost open span
};

// Fixed head of every record; arguments follow, up to `size`. Sizes are multiples of 8, so that
// every head is aligned and a reader can walk a damaged chunk without guessing.
struct Head {
  std::uint32_t size;
  Kind kind;
  std::uint8_t flags;
  std::uint16_t level;  // 1 + number of spans open around it on its thread
  std::uint32_t name;   // id in the name table, 0 when inline
  std::uint32_t category;
  std::uint64_t id;
  std::uint64_t parent;  // id of the innermost open span, 0 for none
  std::uint64_t start;
  std::uint64_t duration;
};
static_assert(sizeof(Head) == 48 && std::is_trivially_copyable_v<Head>);

// An intercepted call, by far the most frequent record: starts like a Head but is shorter, and
// plain words follow instead of arguments.
struct Call {
  std::uint32_t size;
  Kind kind;
  std::uint8_t flags;
  std::uint16_t level;
  std::uint32_t shape;     // id in the name table: name, category, and the meaning of the words
  std::uint32_t duration;  // longer calls are recorded as spans
  std::uint64_t id;
  std::uint64_t start;
};
static_assert(sizeof(Call) == 32 && std::is_trivially_copyable_v<Call>);

// Levels saturate at 16 bits.
constexpr std::uint16_t clamp_level(std::uint64_t level) {
  return static_cast<std::uint16_t>(level < 0xffff ? level : 0xffff);
}

// Size of the record that starts at `at`, with `left` bytes to the end; 0 if it cannot be a record.
inline std::size_t size_of_record(const std::byte* at, std::size_t left) {
  if (left < sizeof(Call)) return 0;
  Call front;
  std::memcpy(&front, at, sizeof front);
  const std::size_t least = front.kind == Kind::kCall ? sizeof(Call) : sizeof(Head);
  return front.size >= least && front.size % 8 == 0 && front.size <= left ? front.size : 0;
}

enum class ArgType : std::uint8_t {
  kInt = 1,
  kUint = 2,
  kFloat = 3,
  kString = 4,     // bytes follow
  kInlineKey = 5,  // bytes follow: the key of the next argument, which has key 0
  kHash = 6,       // shown as 16 hex digits: a file or string announced by an FH or SH record
  kBool = 7,
  kNull = 8,
  kJson = 9,    // bytes follow: a JSON value, written verbatim
  kTicks = 10,  // a duration in clock ticks, shown in the trace's unit
  kFlow = 11,   // the flow of a kFlow record: the key is a set of FlowEnd, the word its id
};

// Which end of its flow a span is. One that continues a flow is both.
enum FlowEnd : std::uint32_t { kFlowIn = 1, kFlowOut = 2 };

// One argument. A number needs only its word; a string's bytes follow, padded to 8.
struct Arg {
  std::uint32_t key;
  ArgType type;
  std::uint8_t reserved[3];
  std::uint64_t word;  // the number, or the length of the bytes that follow
};
static_assert(sizeof(Arg) == 16 && std::is_trivially_copyable_v<Arg>);

// The constant part of a Call is an interned string, its shape: name, category, and for each word
// its type and key, as in "read|POSIX|#fhash|+count|+ret".
inline constexpr char kShapeBar = '|';
inline constexpr char kShapeHash = '#';    // ArgType::kHash
inline constexpr char kShapeNumber = '+';  // ArgType::kInt
inline constexpr std::size_t kMostShapeWords = 8;
inline constexpr std::size_t kLongestShapeKey = 24;

constexpr std::size_t padded(std::size_t n) { return (n + 7) & ~std::size_t{7}; }
constexpr bool has_bytes(ArgType type) {
  return type == ArgType::kString || type == ArgType::kInlineKey || type == ArgType::kJson;
}

// Longer strings are truncated: this bounds the memory that one call can request.
inline constexpr std::size_t kMaxString = std::size_t{16} << 20;
inline constexpr std::size_t kMaxRecord = std::size_t{64} << 20;

}  // namespace dft::record
