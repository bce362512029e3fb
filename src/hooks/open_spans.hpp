// The spans that a thread has begun through an interface which keeps no state of its own: NVTX, ITT
// and the compiler's function hooks. Used on the program's threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "buffer/span.hpp"

namespace dft::hooks {

struct OpenSpan {
  buffer::Span span;
  std::uint64_t owner;  // a domain, or the address of a function
  std::uint64_t place;  // the level in its domain, or the stack pointer of a function
  std::uint64_t size;   // of the code of a function; 0: not known
};

// The innermost span is the last one. Not a container with a size: signal handlers may push in the
// middle of a push, and leave what they found.
struct OpenSpans {
  OpenSpan* top;  // one behind the innermost
  OpenSpan* end;
  OpenSpan first[];

  [[nodiscard]] bool empty() const noexcept { return top == first; }
  [[nodiscard]] bool full() const noexcept { return top == end; }
};

enum class Stack : std::uint8_t { kRanges, kFunctions, kCount };
// Deeper ranges and functions are counted as lost. Pages that are not used take no memory.
inline constexpr std::size_t kMostOpen[] = {4096, 16384};

struct ThreadStacks {
  OpenSpans* of[static_cast<std::size_t>(Stack::kCount)];
};
extern thread_local constinit ThreadStacks t_stacks __attribute__((tls_model("initial-exec")));

inline OpenSpans* stack_of_thread(Stack which) noexcept {
  return t_stacks.of[static_cast<std::size_t>(which)];
}
// Makes it at the thread's first use; nullptr without memory. It is gone with the thread: what is
// open then is recorded until then.
OpenSpans* make_stack(Stack which) noexcept;
// Ends what the calling thread has open, at the end of a session.
void end_open_spans() noexcept;

// An event that is not recorded because a table is full.
void count_lost() noexcept;

// What an event is called: the text stands in the record itself where the id is 0.
struct Label {
  std::uint32_t id;
  std::string_view text;
};

// As buffer::try_open and open_span, with the name as given. span.live is 0 if nothing is recorded.
void open(buffer::Span& span, const Label& name, std::uint32_t category) noexcept;
// Appends to an event that is being made.
void put_text(buffer::Draft& draft, std::uint32_t key, std::string_view text) noexcept;
void close_slow(buffer::Span& span) noexcept;
inline void close(buffer::Span& span) noexcept {
  if (span.live != 0 && !buffer::try_close(span)) close_slow(span);
}
void drop(buffer::Span& span) noexcept;
// An event without a duration, with the arguments of `draft`; its head is filled here.
void write_instant(buffer::Draft& draft, const Label& name, std::uint32_t category) noexcept;
// Shown as the name of the thread with this id.
void name_thread(std::uint32_t thread, std::string_view name) noexcept;

}  // namespace dft::hooks
