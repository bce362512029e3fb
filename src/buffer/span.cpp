#include "buffer/span.hpp"

#include <cstdlib>

#include "base/hot.hpp"

namespace dft::buffer {

bool Draft::enlarge(std::size_t n) noexcept {
  const std::size_t wanted = (used_ + n) * 2;
  if (wanted > record::kMaxRecord) return false;
  SlowPath slow;
  auto* bigger = static_cast<std::byte*>(std::realloc(in_place() ? nullptr : args_, wanted));
  if (bigger == nullptr) return false;
  if (in_place()) std::memcpy(bigger, inline_, used_);
  args_ = bigger;
  capacity_ = static_cast<std::uint32_t>(wanted);
  return true;
}

void Draft::release() noexcept {
  std::free(args_);
  args_ = inline_;
  capacity_ = sizeof inline_;
}

void Draft::put_bytes(std::uint32_t key, record::ArgType type, std::string_view bytes) noexcept {
  if (bytes.size() > record::kMaxString) bytes = bytes.substr(0, record::kMaxString);
  const std::size_t size = record::padded(bytes.size());
  if (capacity_ - used_ < sizeof(record::Arg) + size && !enlarge(sizeof(record::Arg) + size))
    return;
  try_put(key, type, bytes.size());
  if (bytes.empty()) return;
  std::memset(args_ + used_ + size - 8, 0, 8);  // no stray stack bytes in the spool
  std::memcpy(args_ + used_, bytes.data(), bytes.size());
  used_ += static_cast<std::uint32_t>(size);
}

DFT_HOT constinit std::atomic<std::uint64_t> g_handed{0};

namespace {

struct Handed {
  std::uint64_t live;
  std::uint64_t id;
  std::uint64_t parent;
  std::uint32_t level;
};
constexpr std::size_t kMostHanded = 64;  // older ones are overwritten, which affects only levels
Handed g_handed_list[kMostHanded];
Lock g_handed_lock;

void hand_back(const Span& span) noexcept {
  SlowPath slow;
  Locked locked(g_handed_lock);
  const record::Head& head = span.draft.head;
  g_handed_list[g_handed.load() % kMostHanded] = {span.live, head.id, head.parent, head.level};
  g_handed.fetch_add(1);
}

// A span is gone from the stack if a span around it ended first.
bool on_stack(const ThreadState& t, std::uint64_t id, std::uint32_t level) noexcept {
  if (level > t.level) return false;
  return level > kStackDepth || t.stack[level - 1] == id;
}

// Removes the span from the thread's stack. A span that is no longer on it was crossed by its
// parent's end, or ends on another thread: it gets a lane of its own in the trace.
void leave(ThreadState& t, Span& span) noexcept {
  record::Head& head = span.draft.head;
  if (t.live != span.live) {
    head.flags |= record::kOwnLane;
    hand_back(span);
    return;
  }
  if (t.parent != head.id) {
    if (!on_stack(t, head.id, head.level)) {
      head.flags |= record::kOwnLane;
      return;
    }
    // Spans inside it never ended, or end later: they leave the stack with it.
    t.level = head.level;
  }
  t.parent = head.parent;
  --t.level;
}

}  // namespace

// Checks only the top of the stack: what an open span covers is removed when that span ends.
void take_back(ThreadState& t) noexcept {
  if (t.handed_seen == g_handed.load(std::memory_order_relaxed)) return;
  SlowPath slow;
  Locked locked(g_handed_lock);
  bool covered = false;
  for (bool again = true; again;) {
    again = covered = false;
    for (Handed& handed : g_handed_list) {
      if (handed.live != t.live) continue;
      const bool gone = !on_stack(t, handed.id, handed.level);
      if (handed.id == t.parent) {
        t.parent = handed.parent;
        --t.level;
        handed = {};
        again = true;  // the span below may be gone as well
      } else if (gone) {
        handed = {};
      } else {
        covered = true;
      }
    }
  }
  t.handed_seen = covered ? kOutOfStep : g_handed.load();
}

bool write_text(std::uint64_t live, record::Head head, std::string_view text) noexcept {
  const std::size_t bytes = record::padded(text.size());
  const std::size_t total = sizeof head + sizeof(record::Arg) + bytes;
  const record::Arg arg{0, record::ArgType::kString, {}, text.size()};
  head.size = static_cast<std::uint32_t>(total);
  for (;;) {
    ThreadState* t = this_thread();
    if (t == nullptr || !same_epoch(t->live, live)) return false;
    const Slot slot = reserve(*t, total);
    if (slot.at == nullptr) {
      if (slot.stale) continue;
      return false;
    }
    std::memcpy(slot.at, &head, sizeof head);
    std::memcpy(slot.at + sizeof head, &arg, sizeof arg);
    std::byte* to = slot.at + sizeof head + sizeof arg;
    if (bytes != 0) std::memset(to + bytes - 8, 0, 8);
    std::memcpy(to, text.data(), text.size());
    commit(*slot.lane, total);
    return true;
  }
}

void close_span_with(Span& span, std::uint64_t end, const std::byte* args,
                     std::size_t size) noexcept {
  ThreadState* t = this_thread();
  if (t != nullptr && same_epoch(t->live, span.live)) {
    take_back(*t);
    leave(*t, span);
    span.draft.head.duration = end - span.draft.head.start;
    write_record(span.live, span.draft.head, args, size);
  }
  span.draft.clear();
  span.live = 0;
}

void close_span(Span& span, std::uint64_t end) noexcept {
  close_span_with(span, end, span.draft.args(), span.draft.args_size());
}

void resume(Span& span, const Inside& inside, Before& before) noexcept {
  before = {};
  ThreadState* t = this_thread();
  if (t == nullptr || !same_epoch(t->live, span.live)) {
    drop_span(span);  // a forked child does not continue its parent's spans
    return;
  }
  take_back(*t);
  const record::Head& head = span.draft.head;
  before = {t->parent, 0, t->level};
  if (head.level <= kStackDepth) {
    before.covered = t->stack[head.level - 1];
    t->stack[head.level - 1] = head.id;
  }
  // Spans that start inside are one level below this span, wherever it was resumed.
  t->level = inside.parent != 0 ? static_cast<std::uint32_t>(inside.level) : head.level;
  t->parent = inside.parent != 0 ? inside.parent : head.id;
  span.live = t->live;
}

void suspend(Span& span, const Before* before, Inside& inside) noexcept {
  inside = {};
  if (span.live == 0) return;
  record::Head& head = span.draft.head;
  head.flags |= record::kOwnLane;
  ThreadState* t = this_thread();
  if (t == nullptr || t->live != span.live) return;
  // Spans that were opened inside and are still open leave the stack with it.
  if (t->parent != head.id) {
    if (!on_stack(*t, head.id, head.level)) return;
    inside = {t->parent, t->level};
  }
  if (before == nullptr) {
    t->level = head.level - 1u;
    t->parent = head.parent;
    return;
  }
  t->level = before->level;
  t->parent = before->parent;
  if (head.level <= kStackDepth) t->stack[head.level - 1] = before->covered;
}

void open_mark(Mark& mark) noexcept {
  ThreadState* t = this_thread();
  if (t == nullptr) {
    mark.live = 0;
    return;
  }
  mark = {t->live, new_id(*t), 0, t->parent, t->level + 1};
  mark.start = record::ticks();
}

void close_mark(Mark& mark, std::uint64_t end, std::uint32_t name, std::uint32_t category,
                std::uint8_t flags, const std::byte* args, std::size_t size) noexcept {
  const std::uint64_t live = mark.live;
  mark.live = 0;
  ThreadState* t = this_thread();
  if (t == nullptr || !same_epoch(t->live, live)) return;
  take_back(*t);
  if (t->live != live) flags |= record::kOwnLane;
  const record::Head head{0,          record::Kind::kSpan,
                          flags,      record::clamp_level(mark.level),
                          name,       category,
                          mark.id,    mark.parent,
                          mark.start, end - mark.start};
  write_record(t->live, head, args, size);
}

void drop_span(Span& span) noexcept {
  ThreadState* t = this_thread();
  if (t != nullptr && same_epoch(t->live, span.live)) leave(*t, span);
  span.draft.clear();
  span.live = 0;
}

}  // namespace dft::buffer
