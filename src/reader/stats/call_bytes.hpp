// How many bytes a call moved, from its row in the table of calls and the arguments in its event. Used
// for statistics and for the table of events, on the reader's worker threads.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "format/calls.hpp"
#include "reader/parse/json_scan.hpp"

namespace dft::reader {

using format::Call;
using format::call_of;
using format::Measure;
using format::Role;

// Bytes that the call with these arguments moved: none if it failed.
struct MovedBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  bool known = true;
};
MovedBytes moved_bytes(const Call& call, std::span<const JsonField> args);
// Bytes of a file that the call of role kMap made part of the program's memory.
std::uint64_t mapped_bytes(std::span<const JsonField> args);

// What the kernel names and is no file, and terminals: who reads there waits for another process.
// The same as no_file() of reports/sql/vocabulary.sql.
bool is_no_file(std::string_view path);

}  // namespace dft::reader
