// What the functions of POSIX and STDIO do, by name: the reader's one list of them. Statistics, the
// table of events and, as `_reader.calls()`, the SQL of reports are made from it. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "reader/parse/json_scan.hpp"

namespace dft::reader {

enum class Role : std::uint8_t {
  kNone,  // not a call of POSIX or STDIO
  // These move bytes:
  kRead,
  kWrite,
  kCopy,     // from one file to another
  kCollect,  // hands over the results of asynchronous requests, either way
  // These do not:
  kOpen,
  kClose,
  kDuplicate,  // one more descriptor of what is open
  kSeek,
  kMap,
  kSync,
  kSubmit,  // asynchronous requests, whose bytes are known once they are collected
  kWait,    // for such requests
  kLock,
  kProcess,       // begins, waits for or ends a process
  kMetadataCall,  // every other call
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::kMetadataCall) + 1;
const char* role_name(Role role);
constexpr bool moves(Role role) { return role >= Role::kRead && role <= Role::kCollect; }
constexpr bool reads(Role role) { return moves(role) && role != Role::kWrite; }
constexpr bool writes(Role role) { return moves(role) && role != Role::kRead; }

// How many bytes a call moved.
enum class Measure : std::uint8_t {
  kRet,      // the result is the number of bytes
  kItems,    // the result counts items of `size` bytes
  kRetLen,   // the length is in `ret_len`
  kOne,      // one byte, unless the result is -1
  kWord,     // `ret_len`, or an int unless the result is -1
  kLengths,  // `read_len` and `write_len`
  kUnknown,  // the trace does not say
};

struct Call {
  std::string_view name = {};
  Role role = Role::kNone;
  Measure measure = Measure::kRet;
  // Of a copy: the argument that holds the second file's hash, and whether that one was written.
  std::string_view second = {};
  bool second_is_written = false;
};

// By category (POSIX, STDIO) and function. A function that is not listed is kMetadataCall.
Call call_of(std::string_view category, std::string_view name);
// All that are listed.
std::span<const Call> all_calls();

// Bytes that the call with these arguments moved: none if it failed.
struct Moved {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  bool known = true;
};
Moved moved_bytes(const Call& call, std::span<const Field> args);
// Bytes of a file that the call of role kMap made part of the program's memory.
std::uint64_t mapped_bytes(std::span<const Field> args);

// What the kernel names and is no file, and terminals: who reads there waits for another process.
// The same as no_file() of reports/sql/vocabulary.sql.
bool is_no_file(std::string_view path);

}  // namespace dft::reader
