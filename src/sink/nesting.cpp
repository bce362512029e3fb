#include "sink/nesting.hpp"

#include <cstdlib>
#include <cstring>

namespace dft::sink {

bool Nesting::fits(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept {
  Line* line = current_;
  if (line == nullptr || line->thread != thread) [[unlikely]] {
    line = find(thread);
    if (line == nullptr) return true;  // no memory to look
  }
  std::uint32_t count = line->count;
  while (count != 0 && line->spans[count - 1].start >= start) --count;
  if (count != 0 && line->spans[count - 1].end > start) {
    // Inside a longer one that ended before, as a signal handler's may be, it stands well.
    return line->spans[count - 1].end >= end;
  }
  if (count == kRemembered) {
    count = kRemembered / 2;
    std::memmove(line->spans, line->spans + (kRemembered - count), count * sizeof(Interval));
  }
  line->spans[count] = {start, end};
  line->count = count + 1;
  return true;
}

Nesting::Line* Nesting::find(std::uint32_t thread) noexcept {
  if (lines_ != nullptr && used_ == kSlots / 2) free();  // more threads than can be told apart
  if (lines_ == nullptr) {
    lines_ = static_cast<Line**>(std::calloc(kSlots, sizeof(Line*)));
    if (lines_ == nullptr) return nullptr;
  }
  std::size_t at = (thread * std::size_t{0x9e3779b97f4a7c15}) >> 53;
  static_assert(kSlots == std::size_t{1} << (64 - 53));
  while (lines_[at] != nullptr && lines_[at]->thread != thread) at = (at + 1) % kSlots;
  if (lines_[at] == nullptr) {
    lines_[at] = static_cast<Line*>(std::malloc(sizeof(Line)));
    if (lines_[at] == nullptr) return nullptr;
    lines_[at]->thread = thread;
    lines_[at]->count = 0;
    ++used_;
  }
  current_ = lines_[at];
  return current_;
}

void Nesting::free() noexcept {
  for (std::size_t i = 0; lines_ != nullptr && i < kSlots; ++i) std::free(lines_[i]);
  std::free(lines_);
  lines_ = nullptr;
  current_ = nullptr;
  used_ = 0;
}

}  // namespace dft::sink
