// Which spans of a thread can stand on its line: viewers drop a span that begins inside another one
// and ends after it. Called by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::sink {

// Sees the spans of each thread about in the order in which they ended. Remembers the last ones
// that no later span contains; what is older than those is taken to be nested.
class Nesting {
 public:
  Nesting() = default;
  ~Nesting() { free(); }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

  // False when the span crosses one that stands on the thread's line already. Otherwise it stands
  // there from now on.
  bool fits(std::uint32_t thread, std::uint64_t start, std::uint64_t end) noexcept;
  void free() noexcept;

  static constexpr std::uint32_t kRemembered = 512;

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
  static constexpr std::size_t kSlots = 2048;  // half of them are used at most

  Line* find(std::uint32_t thread) noexcept;

  Line* current_ = nullptr;  // threads come in chunks
  Line** lines_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace dft::sink
