// Decides which spans of a thread can share its line: viewers drop a span that begins inside
// another one and ends after it. Used by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sink/mmap_buffer.hpp"

namespace dft::sink {

// Sees the spans of each thread roughly in the order in which they ended. Remembers the last ones
// that no later span contains; anything older is assumed to nest.
class Nesting {
 public:
  // False if the span crosses one on the thread's line. Otherwise adds it to the line.
  bool fits(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept {
    ThreadLine* line = current_;
    if (line == nullptr || line->thread != thread || line->count == 0 ||
        line->count == kRemembered || line->spans[line->count - 1].end > start) {
      return place(thread, start, end);
    }
    line->spans[line->count++] = {start, end};  // after all others, as a plain call usually is
    return true;
  }
  void free() noexcept {
    lines_.free();
    current_ = nullptr;
  }

  static constexpr std::uint32_t kRemembered = 256;

 private:
  struct SpanTimes {
    std::uint64_t start;
    std::uint64_t end;
  };
  struct ThreadLine {
    std::uint32_t thread;
    std::uint32_t count;
    SpanTimes spans[kRemembered];  // disjoint, in order of time
  };
  static constexpr std::size_t kThreads = 1024;

  bool place(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept;
  ThreadLine* find(std::uint32_t thread) noexcept;

  ThreadLine* current_ = nullptr;  // the last one used: records arrive in chunks per thread
  MmapBuffer lines_;               // of ThreadLine; not on the program's heap
};

}  // namespace dft::sink
