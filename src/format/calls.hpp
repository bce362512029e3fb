// What each intercepted function does, by category and name: the rows of calls.def as data. The
// reader's statistics and event tables use it, and so do the SQL reports, through
// `_reader.calls()`. Any thread.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dft::format {

enum class Role : std::uint8_t {
  kNone,  // not a call of a known category
  // These move bytes:
  kRead,
  kWrite,
  kCopy,     // from one file to another
  kCollect,  // reaps completed asynchronous requests, reads and writes
  // These do not:
  kOpen,
  kClose,
  kDuplicate,  // one more descriptor for an open file
  kSeek,
  kMap,
  kSync,
  kSubmit,  // asynchronous requests, whose byte counts are known when they are reaped
  kWait,    // for asynchronous requests
  kLock,
  kProcess,   // starts, awaits or ends a process
  kMetadata,  // every other call
};
inline constexpr const char* kRoleNames[] = {
    "none", "read", "write", "copy",   "collect", "open", "close",   "duplicate",
    "seek", "map",  "sync",  "submit", "wait",    "lock", "process", "metadata"};
inline constexpr std::size_t kRoles = std::size(kRoleNames);
static_assert(kRoles == static_cast<std::size_t>(Role::kMetadata) + 1);
constexpr const char* role_name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

constexpr bool moves(Role role) { return role >= Role::kRead && role <= Role::kCollect; }
constexpr bool reads(Role role) { return moves(role) && role != Role::kWrite; }
constexpr bool writes(Role role) { return moves(role) && role != Role::kRead; }

// Where a call's number of bytes is found.
enum class Measure : std::uint8_t {
  kRet,      // the result is the number of bytes
  kItems,    // the result counts items of `size` bytes
  kRetLen,   // the length is in `ret_len`
  kOne,      // one byte, unless the result is -1
  kWord,     // `ret_len`, or an int unless the result is -1
  kLengths,  // `read_len` and `write_len`
  kTaken,    // the result, unless the bytes stay in the socket (MSG_PEEK in `flags`)
  kUnknown,  // not in the trace
};

struct Call {
  std::string_view category = {};
  std::string_view name = {};
  Role role = Role::kNone;
  Measure measure = Measure::kRet;
  // For a copy: the argument with the second file's hash, and whether that is the destination.
  std::string_view second = {};
  bool second_is_written = false;

  constexpr bool operator==(const Call&) const = default;
};

#define DFT_MEASURE_RET Measure::kRet
#define DFT_MEASURE_ITEMS Measure::kItems
#define DFT_MEASURE_ONE Measure::kOne
#define DFT_MEASURE_RET_LEN(n) Measure::kRetLen
#define DFT_MEASURE_WORD(n) Measure::kWord
#define DFT_MEASURE_TAKEN Measure::kTaken
#define DFT_MEASURE_UNKNOWN(n) Measure::kUnknown
#define DFT_DOES_READ(amount) Role::kRead, DFT_MEASURE_##amount, {}, false
#define DFT_DOES_WRITE(amount) Role::kWrite, DFT_MEASURE_##amount, {}, false
#define DFT_DOES_SEND(amount) Role::kWrite, DFT_MEASURE_##amount, {}, false
#define DFT_DOES_RECEIVE(amount) Role::kRead, DFT_MEASURE_##amount, {}, false
#define DFT_DOES_COPY_TO(key) Role::kCopy, Measure::kRet, #key, true
#define DFT_DOES_COPY_FROM(key) Role::kCopy, Measure::kRet, #key, false
#define DFT_DOES_SPLICE_TO(key) Role::kCopy, Measure::kRet, #key, true
#define DFT_DOES_COLLECT Role::kCollect, Measure::kLengths, {}, false
#define DFT_DOES_OPEN Role::kOpen, Measure::kRet, {}, false
#define DFT_DOES_CLOSE Role::kClose, Measure::kRet, {}, false
#define DFT_DOES_DUPLICATE Role::kDuplicate, Measure::kRet, {}, false
#define DFT_DOES_SEEK Role::kSeek, Measure::kRet, {}, false
#define DFT_DOES_MAP Role::kMap, Measure::kRet, {}, false
#define DFT_DOES_SYNC Role::kSync, Measure::kRet, {}, false
#define DFT_DOES_SUBMIT Role::kSubmit, Measure::kRet, {}, false
#define DFT_DOES_WAIT Role::kWait, Measure::kRet, {}, false
#define DFT_DOES_LOCK Role::kLock, Measure::kRet, {}, false
#define DFT_DOES_PROCESS Role::kProcess, Measure::kRet, {}, false
#define DFT_DOES_METADATA Role::kMetadata, Measure::kRet, {}, false

inline constexpr Call kRowsOfCalls[] = {
#define DFT_CALL_ROW(category, does, R, parameters, forwarded, about, recorded, symbol, shown) \
  {#category, #shown, DFT_DOES_##does},
#define DFT_HAND_ROW(category, does, about, recorded, symbol, shown) \
  {#category, #shown, DFT_DOES_##does},
#define DFT_SILENT_ROW(category, symbol, shown)
#define DFT_UNWRAPPED(category, does, name) {#category, #name, DFT_DOES_##does},
#include "format/calls.def"
};

constexpr bool is_before(const Call& a, const Call& b) {
  return a.name != b.name ? a.name < b.name : a.category < b.category;
}
// Each shown function once, by name.
inline constexpr std::size_t kCallCount = [] {
  auto rows = std::to_array(kRowsOfCalls);
  std::sort(rows.begin(), rows.end(), is_before);
  return static_cast<std::size_t>(std::unique(rows.begin(), rows.end()) - rows.begin());
}();
inline constexpr auto kCalls = [] {
  auto rows = std::to_array(kRowsOfCalls);
  std::sort(rows.begin(), rows.end(), is_before);
  std::array<Call, kCallCount> calls;
  std::unique_copy(rows.begin(), rows.end(), calls.begin());
  return calls;
}();
// Rows that are shown alike must do the same.
static_assert(std::adjacent_find(kCalls.begin(), kCalls.end(), [](const Call& a, const Call& b) {
                return a.name == b.name && a.category == b.category;
              }) == kCalls.end());

constexpr bool is_category(std::string_view category) {
#define DFT_CATEGORY(name) \
  if (category == #name) return true;
#include "format/categories.def"
  return false;
}

// By category and function: kNone for a category that is none of these, and kMetadata for a
// function that is not in the table.
constexpr Call call_of(std::string_view category, std::string_view name) {
  if (!is_category(category)) return {};
  const auto* found = std::lower_bound(
      kCalls.begin(), kCalls.end(), name,
      [](const Call& call, std::string_view wanted) { return call.name < wanted; });
  // A trace of another tracer may show a function under another category: the function decides.
  if (found == kCalls.end() || found->name != name) return {.role = Role::kMetadata};
  return *found;
}

}  // namespace dft::format
