#include "reader/accesses.hpp"

namespace dft::reader {

Touch touch_of(std::string_view category, std::string_view name) {
  if (category != "POSIX" && category != "STDIO") return Touch::kNone;
  const auto begins = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  if (begins("open") || begins("creat") || begins("fopen") || begins("freopen") ||
      begins("fdopen")) {
    return name == "opendir" ? Touch::kNone : Touch::kOpen;
  }
  if (begins("lseek") || begins("fseek") || name == "rewind") return Touch::kSeek;
  return Touch::kNone;
}

std::uint32_t Accesses::path(const std::string& name) {
  return paths_.emplace(name, static_cast<std::uint32_t>(paths_.size())).first->second;
}

Accesses::Found Accesses::follow(std::int32_t process, std::uint32_t path, const FileCall& call) {
  State& state = states_[{call.tid, process, path}];
  if (call.touch == Touch::kOpen) {
    state = {};
    return {0, Pattern::kFirst};
  }
  if (call.touch == Touch::kSeek) {
    std::int64_t to = call.offset;
    if (call.relative && __builtin_add_overflow(to, state.position, &to)) to = 0;
    state.position = to;
    return {0, Pattern::kFirst};
  }
  const bool told = call.offset != kUnknown;
  const std::int64_t start = told ? call.offset : state.position;
  std::int64_t end = 0;
  if (__builtin_add_overflow(start, call.bytes, &end)) end = start;
  std::int64_t stride = 0;
  if (__builtin_sub_overflow(start, state.start, &stride)) stride = 0;
  Pattern pattern = Pattern::kRandom;
  if (!state.moved) {
    pattern = Pattern::kFirst;
    stride = 0;
  } else if (start == state.end) {
    pattern = Pattern::kSequential;
  } else if (stride != 0 && stride == state.stride) {
    pattern = Pattern::kStrided;
  }
  if (!told) state.position = end;
  state.start = start;
  state.end = end;
  state.stride = stride;
  state.moved = true;
  return {start, pattern};
}

}  // namespace dft::reader
