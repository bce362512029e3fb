#include "sink/nesting.hpp"

#include <cstring>

namespace dft::sink {

bool Nesting::place(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept {
  Line* line = current_;
  if (line == nullptr || line->thread != thread) [[unlikely]] {
    line = find(thread);
    if (line == nullptr) return true;  // no memory to look
  }
  Interval* spans = line->spans;
  // The wait of a loop's item is written with the item's body, after all that ran in the body: such
  // spans lie behind this one.
  std::uint32_t behind = line->count;
  // What began and ended at its time does not: with a coarse clock a thousand calls do, and come in
  // their order.
  while (behind != 0 && spans[behind - 1].start >= end && spans[behind - 1].end > start) --behind;
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
  auto* lines = reinterpret_cast<Line*>(lines_.data());
  std::size_t count = lines_.size() / sizeof(Line);
  for (std::size_t i = 0; i < count; ++i) {
    if (lines[i].thread == thread) return current_ = lines + i;
  }
  current_ = nullptr;
  if (count == kThreads) lines_.resize(0);  // more threads than can be told apart
  Line fresh{};
  fresh.thread = thread;
  if (!lines_.append({reinterpret_cast<const char*>(&fresh), sizeof fresh})) return nullptr;
  count = lines_.size() / sizeof(Line);
  return current_ = reinterpret_cast<Line*>(lines_.data()) + (count - 1);
}

}  // namespace dft::sink
