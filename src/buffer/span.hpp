// A span between its begin and its end, with the arguments collected so far in record format. Used
// on the program's threads; the caller owns the memory (a C struct, a C++ or a Python object).
#pragma once
#include <cstring>
#include <string_view>

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "record/clock.hpp"
#include "record/event.hpp"

namespace dft::buffer {

// A record under construction: the head, and the arguments that follow it, stored inline while
// they fit. Not movable, because it points into itself.
class Draft {
 public:
  void init() noexcept {
    args_ = inline_;
    used_ = 0;
    capacity_ = sizeof inline_;
  }
  // For the hot path: false if the argument does not fit without allocating.
  bool try_put(std::uint32_t key, record::ArgType type, std::uint64_t word) noexcept {
    if (capacity_ - used_ < sizeof(record::Arg)) [[unlikely]]
      return false;
    const record::Arg arg{key, type, {}, word};
    std::memcpy(args_ + used_, &arg, sizeof arg);
    used_ += sizeof arg;
    return true;
  }
  void put(std::uint32_t key, record::ArgType type, std::uint64_t word) noexcept {
    if (try_put(key, type, word) || !enlarge(sizeof(record::Arg))) return;
    try_put(key, type, word);
  }
  void put_bytes(std::uint32_t key, record::ArgType type, std::string_view bytes) noexcept;
  // Arguments already in record format; false if they do not fit without allocating.
  bool try_append(const std::byte* from, std::size_t size) noexcept {
    if (capacity_ - used_ < size) [[unlikely]]
      return false;
    std::memcpy(args_ + used_, from, size);
    used_ += static_cast<std::uint32_t>(size);
    return true;
  }
  void append(const std::byte* from, std::size_t size) noexcept {
    if (size == 0 || try_append(from, size) || !enlarge(size)) return;
    try_append(from, size);
  }
  [[nodiscard]] const std::byte* args() const noexcept { return args_; }
  [[nodiscard]] std::size_t args_size() const noexcept { return used_; }
  [[nodiscard]] bool in_place() const noexcept { return args_ == inline_; }
  void clear() noexcept {
    if (!in_place()) [[unlikely]]
      release();
    used_ = 0;
  }
  // Copies head and inline arguments in steps of 16 bytes: writes up to 8 bytes past the end.
  void copy_to(std::byte* to) const noexcept {
    std::memcpy(to, &head, sizeof head);
    for (std::size_t i = 0; i < used_; i += 16) std::memcpy(to + sizeof head + i, inline_ + i, 16);
  }

 private:
  bool enlarge(std::size_t n) noexcept;
  void release() noexcept;

  std::byte* args_;
  std::uint32_t used_;
  std::uint32_t capacity_;

 public:
  record::Head head;

 private:
  std::byte inline_[176];
};

struct Span {
  // ThreadState::live of its thread; 0: not recording. First member, where the C header expects it.
  std::uint64_t live;
  Draft draft;
};
static_assert(sizeof(Span) == 248 && 176 % 16 == 0);

// Appends the name and the category as strings if they have no ids.
inline std::uint8_t inline_names(Draft& draft, std::uint32_t name, std::string_view name_text,
                                 std::uint32_t category, std::string_view category_text) noexcept {
  std::uint8_t flags = 0;
  if (name == 0) {
    draft.put_bytes(0, record::ArgType::kString, name_text);
    flags |= record::kInlineName;
  }
  if (category == 0) {
    draft.put_bytes(0, record::ArgType::kString, category_text);
    flags |= record::kInlineCategory;
  }
  return flags;
}

// The caller sets the start time, last of all.
inline void open_span(ThreadState& t, Span& span, std::uint64_t id, std::uint32_t name,
                      std::uint32_t category) noexcept {
  record::Head& head = span.draft.head;
  const std::uint32_t level = ++t.level;
  head.kind = record::Kind::kSpan;
  head.flags = 0;
  head.level = record::clamp_level(level);
  head.name = name;
  head.category = category;
  head.id = id;
  head.parent = t.parent;
  t.parent = id;
  if (level <= kStackDepth) [[likely]]
    t.stack[level - 1] = id;
  span.draft.init();
  span.live = t.live;
}

// Number of spans that ended on a thread other than their own. Their own thread still has them on
// its stack, and removes them when it sees this change. Rare, so the hot path only reads it.
DFT_HOT extern std::atomic<std::uint64_t> g_handed;
void take_back(ThreadState& t) noexcept;

// Begins a span on the fast path: the thread is attached and has ids left. False: use open_span().
inline bool try_open(Span& span, std::uint32_t name, std::uint32_t category) noexcept {
  ThreadState& t = t_thread;
  const Guard* guard = g_guard.load(std::memory_order_relaxed);
  if (t.generation != guard->generation.load(std::memory_order_relaxed) ||
      t.handed_seen != g_handed.load(std::memory_order_relaxed) || !record::g_counter_clock)
      [[unlikely]] {
    return false;
  }
  const std::uint64_t id = take_id(t);
  if (id >= t.last_id) [[unlikely]]
    return false;
  open_span(t, span, id, name, category);
  span.draft.head.start = record::counter_ticks();
  return true;
}

// An event that began in another epoch belongs to a parent process or to a closed trace.
inline bool same_epoch(std::uint64_t live, std::uint64_t other) noexcept {
  return static_cast<std::uint32_t>(live) == static_cast<std::uint32_t>(other);
}

// Writes one record with its arguments, for an event that began while the thread was `live`.
// False if it was lost, or belongs to another trace.
inline bool write_record(std::uint64_t live, record::Head head, const std::byte* args,
                         std::size_t size) noexcept {
  const std::size_t total = sizeof head + size;
  head.size = static_cast<std::uint32_t>(total);
  for (;;) {
    ThreadState* t = this_thread();
    if (t == nullptr || !same_epoch(t->live, live)) return false;
    const Slot slot = reserve(*t, total);
    if (slot.at == nullptr) [[unlikely]] {
      if (slot.stale) continue;
      return false;
    }
    std::memcpy(slot.at, &head, sizeof head);
    if (size != 0) std::memcpy(slot.at + sizeof head, args, size);
    commit(*slot.lane, total);
    return true;
  }
}

// Writes a record whose only argument is a string of any length, without copying it in between.
bool write_text(std::uint64_t live, record::Head head, std::string_view text) noexcept;

// The general versions: any thread, order and size. close_span() records, drop_span() does not.
void close_span(Span& span, std::uint64_t end) noexcept;
// The same for a span without arguments of its own; `args` is in record format.
void close_span_with(Span& span, std::uint64_t end, const std::byte* args,
                     std::size_t size) noexcept;
void drop_span(Span& span) noexcept;

// The span of a generator or coroutine is suspended and resumed many times, on any thread; what
// runs in between is not inside it. resume() returns the thread's previous position, and
// suspend() restores it; nullptr restores the position from when the span began. A span that was
// ever suspended gets a lane of its own.
struct Before {
  std::uint64_t parent;
  std::uint64_t covered;  // the stack's entry at the span's own level
  std::uint32_t level;
};
// What was innermost inside the span when it was suspended, and is again when it resumes.
struct Inside {
  std::uint64_t parent;  // 0: nothing was open
  std::uint64_t level;
};
void resume(Span& span, const Inside& inside, Before& before) noexcept;
void suspend(Span& span, const Before* before, Inside& inside) noexcept;

// A span without children: what runs between its ends is its sibling.
struct Mark {
  std::uint64_t live;  // 0: not recording
  std::uint64_t id;
  std::uint64_t start;
  std::uint64_t parent;
  std::uint64_t level;
};
void open_mark(Mark& mark) noexcept;
// `flags` as in Head.
void close_mark(Mark& mark, std::uint64_t end, std::uint32_t name, std::uint32_t category,
                std::uint8_t flags, const std::byte* args, std::size_t size) noexcept;

// Ends and records a span on the fast path: it is the innermost span of its thread, no record is
// in progress, and the record fits into the chunk. False: take the slow path.
[[gnu::always_inline]] inline bool try_close_at(Span& span, std::uint64_t end) noexcept {
  ThreadState& t = t_thread;
  const Guard* guard = g_guard.load(std::memory_order_relaxed);
  Lane& lane = t.lane;
  Draft& draft = span.draft;
  const std::size_t total = sizeof(record::Head) + draft.args_size();
  if (t.generation != guard->generation.load(std::memory_order_relaxed) || t.live != span.live ||
      t.parent != draft.head.id || lane.busy || !draft.in_place()) [[unlikely]] {
    return false;
  }
  lane.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Check only now: a signal handler in between may have used the space.
  if (static_cast<std::size_t>(lane.end - lane.cursor) < total + 8 || !enter(t, lane))
      [[unlikely]] {
    lane.busy = false;
    return false;
  }
  t.parent = draft.head.parent;
  --t.level;
  draft.head.size = static_cast<std::uint32_t>(total);
  draft.head.duration = end - draft.head.start;
  draft.copy_to(lane.cursor);
  commit(lane, total);
  span.live = 0;
  return true;
}

inline bool try_close(Span& span) noexcept {
  if (!record::g_counter_clock) [[unlikely]]
    return false;
  return try_close_at(span, record::counter_ticks());
}

// The head of a record that is complete already; the caller sets names and size.
inline record::Head make_head(ThreadState& t, record::Kind kind, std::uint8_t flags,
                              std::uint64_t start, std::uint64_t duration) noexcept {
  return {0,        kind,  flags,   record::clamp_level(t.level + 1), 0, 0, new_id(t),
          t.parent, start, duration};
}

}  // namespace dft::buffer
