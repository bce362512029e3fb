// How many bytes a recorded call moved, and which way: decided once a name, computed for each
// event.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "reader/json.hpp"

namespace dft::reader {

enum class Way : std::uint8_t { kNone, kRead, kWrite, kBoth };
enum class Measure : std::uint8_t {
  kRet,     // the result is the number of bytes
  kItems,   // the result counts items of `size` bytes
  kRetLen,  // the length is in `ret_len`
  kOne,     // one byte, unless the result is -1
};
struct Traffic {
  Way way = Way::kNone;
  Measure measure = Measure::kRet;
};

// By category (POSIX, STDIO) and function.
Traffic traffic_of(std::string_view category, std::string_view name);
// Bytes that the call with these arguments moved; 0 if it failed.
std::uint64_t moved_bytes(Measure measure, std::span<const Field> args);

}  // namespace dft::reader
