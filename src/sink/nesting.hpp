// Which spans of a thread can stand on its line: viewers drop a span that begins inside another one
// and ends after it. Called by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sink/mmap_buffer.hpp"

namespace dft::sink {

// Sees the spans of each thread about in the order in which they ended. Remembers the last ones
// that no later span contains; what is older than those is taken to be nested.
class Nesting {
 public:
  // False when the span crosses one that stands on the thread's line already. Otherwise it stands
  // there from now on.
  bool fits(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept {
    Line* line = current_;
    if (line == nullptr || line->thread != thread || line->count == 0 ||
        line->count == kRemembered || line->spans[line->count - 1].end > start) {
      return place(thread, start, end);
    }
    line->spans[line->count++] = {start, end};  // after all the others, as a plain call mostly is
    return true;
  }
  void free() noexcept {
    lines_.free();
    current_ = nullptr;
  }

  static constexpr std::uint32_t kRemembered = 256;

 private:
  struct Interval {
    std::uint64_t start;
    std::uint64_t end;
  };
  struct Line {
    std::uint32_t thread;
    std::uint32_t count;
    Interval spans[kRemembered];  // one after the other, none inside another
  };
  static constexpr std::size_t kThreads = 1024;

  bool place(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept;
  Line* find(std::uint32_t thread) noexcept;

  Line* current_ = nullptr;  // threads come in chunks
  MmapBuffer lines_;         // of Line: the sink's own memory, not the program's heap
};

}  // namespace dft::sink
