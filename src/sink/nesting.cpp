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
  Interval* spans = line->spans;
  // The wait of a loop's item is written with the item's body, after all that ran in the body: such
  // spans lie behind this one.
  std::uint32_t behind = line->count;
  while (behind != 0 && spans[behind - 1].start >= end) --behind;
  std::uint32_t at = behind;
  while (at != 0 && spans[at - 1].start >= start && spans[at - 1].end <= end) --at;
  // It crosses the one before it, or is inside that one: what else is inside is not remembered, and
  // what ends well is told of before the span around it.
  if (at != 0 && spans[at - 1].end > start) return false;
  std::uint32_t rest = line->count - behind;
  if (at + 1 + rest > kRemembered) {
    const std::uint32_t gone = kRemembered / 2;
    if (at < gone) return false;  // told of so late that nobody knows
    std::memmove(spans, spans + gone, (line->count - gone) * sizeof(Interval));
    at -= gone;
    behind -= gone;
  }
  std::memmove(spans + at + 1, spans + behind, rest * sizeof(Interval));
  spans[at] = {start, end};
  line->count = at + 1 + rest;
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
