#include "sink/nesting.hpp"

#include <cstring>

namespace dft::sink {

bool Nesting::place(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept {
  ThreadLine* line = current_;
  if (line == nullptr || line->thread != thread) [[unlikely]] {
    line = find(thread);
    if (line == nullptr) return true;  // no memory to check
  }
  SpanTimes* spans = line->spans;
  // A loop's wait is recorded together with the loop body, after everything that ran in the body:
  // those spans come after this one.
  std::uint32_t behind = line->count;
  // Spans that began and ended at the same time as this one do not: with a coarse clock a
  // thousand calls can, and they arrive in order.
  while (behind != 0 && spans[behind - 1].start >= end && spans[behind - 1].end > start) --behind;
  std::uint32_t at = behind;
  while (at != 0 && spans[at - 1].start >= start && spans[at - 1].end <= end) --at;
  // It crosses the span before it, or is inside that span. Spans inside it are not remembered,
  // and properly nested ones arrive before the span around them.
  if (at != 0 && spans[at - 1].end > start) return false;
  std::uint32_t rest = line->count - behind;
  if (at + 1 + rest > kRemembered) {
    const std::uint32_t gone = kRemembered / 2;
    if (at < gone) return false;  // too late to compare with what was forgotten
    std::memmove(spans, spans + gone, (line->count - gone) * sizeof(SpanTimes));
    at -= gone;
    behind -= gone;
  }
  std::memmove(spans + at + 1, spans + behind, rest * sizeof(SpanTimes));
  spans[at] = {start, end};
  line->count = at + 1 + rest;
  return true;
}

Nesting::ThreadLine* Nesting::find(std::uint32_t thread) noexcept {
  auto* lines = reinterpret_cast<ThreadLine*>(lines_.data());
  std::size_t count = lines_.size() / sizeof(ThreadLine);
  for (std::size_t i = 0; i < count; ++i) {
    if (lines[i].thread == thread) return current_ = lines + i;
  }
  current_ = nullptr;
  if (count == kThreads) lines_.resize(0);  // more threads than can be tracked
  ThreadLine fresh{};
  fresh.thread = thread;
  if (!lines_.append({reinterpret_cast<const char*>(&fresh), sizeof fresh})) return nullptr;
  count = lines_.size() / sizeof(ThreadLine);
  return current_ = reinterpret_cast<ThreadLine*>(lines_.data()) + (count - 1);
}

}  // namespace dft::sink
