// A span between its begin and its end, with the arguments gathered so far in the form of the record.
// On the program's threads; lives in memory that the caller owns (a C struct, a C++ object, a Python one).
#pragma once
#include <cstring>
#include <string_view>

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "record/clock.hpp"
#include "record/event.hpp"

namespace dft::buffer {

// Arguments in the form in which they follow a record's head.
class Args {
 public:
  void put(std::uint32_t key, record::ArgType type, std::uint64_t word) noexcept {
    if (std::byte* to = more(sizeof(record::Arg))) {
      const record::Arg arg{key, type, {}, word};
      std::memcpy(to, &arg, sizeof arg);
    }
  }
  void put_bytes(std::uint32_t key, record::ArgType type, std::string_view bytes) noexcept {
    if (bytes.size() > record::kMaxString) bytes = bytes.substr(0, record::kMaxString);
    const std::size_t size = record::padded(bytes.size());
    if (std::byte* to = more(sizeof(record::Arg) + size)) {
      const record::Arg arg{key, type, {}, bytes.size()};
      std::memcpy(to, &arg, sizeof arg);
      if (bytes.empty()) return;
      std::memset(to + sizeof arg + size - 8, 0, 8);  // no stray bytes of the stack in the spool
      std::memcpy(to + sizeof arg, bytes.data(), bytes.size());
    }
  }
  [[nodiscard]] const std::byte* data() const noexcept { return heap_ != nullptr ? heap_ : inline_; }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  void clear() noexcept {
    if (heap_ != nullptr) [[unlikely]] release();
    used_ = 0;
  }
  void init() noexcept {
    heap_ = nullptr;
    used_ = 0;
    capacity_ = sizeof inline_;
  }

 private:
  std::byte* more(std::size_t n) noexcept {
    if (capacity_ - used_ < n) [[unlikely]] {
      if (!enlarge(n)) return nullptr;
    }
    std::byte* to = (heap_ != nullptr ? heap_ : inline_) + used_;
    used_ += static_cast<std::uint32_t>(n);
    return to;
  }
  bool enlarge(std::size_t n) noexcept;
  void release() noexcept;

  std::byte* heap_;
  std::uint32_t used_;
  std::uint32_t capacity_;
  std::byte inline_[184];
};

struct Span {
  std::uint64_t start;
  std::uint64_t id;  // 0: not recording
  std::uint64_t parent;
  std::uint32_t name;
  std::uint32_t category;
  std::uint32_t generation;
  std::uint32_t serial;
  std::uint16_t level;
  std::uint8_t flags;
  std::uint8_t reserved[5];
  Args args;
};
static_assert(sizeof(Span) == 248);

// Appends name and category as strings where they have no ids.
inline std::uint8_t inline_names(Args& args, std::uint32_t name, std::string_view name_text,
                                 std::uint32_t category, std::string_view category_text) noexcept {
  std::uint8_t flags = 0;
  if (name == 0) {
    args.put_bytes(0, record::ArgType::kString, name_text);
    flags |= record::kInlineName;
  }
  if (category == 0) {
    args.put_bytes(0, record::ArgType::kString, category_text);
    flags |= record::kInlineCategory;
  }
  return flags;
}

inline void open_span(ThreadState& t, Span& span, std::uint32_t name, std::uint32_t category) noexcept {
  span.id = new_id(t);
  span.parent = t.parent;
  span.name = name;
  span.category = category;
  span.generation = static_cast<std::uint32_t>(t.generation);
  span.serial = t.serial;
  t.parent = span.id;
  const std::uint32_t level = ++t.level;
  span.level = static_cast<std::uint16_t>(level < 0xffff ? level : 0xffff);
  span.flags = 0;
  span.args.init();
}

// One record with its arguments behind it; false when it was lost.
inline bool write_record(ThreadState& t, record::Head head, const std::byte* args,
                         std::size_t size) noexcept {
  const std::size_t total = sizeof head + size;
  const Slot slot = reserve(t, total);
  if (slot.at == nullptr) [[unlikely]] return false;
  head.size = static_cast<std::uint32_t>(total);
  std::memcpy(slot.at, &head, sizeof head);
  std::memcpy(slot.at + sizeof head, args, size);
  commit(slot, total);
  return true;
}

// Takes the span off the thread's stack. A span that is no longer on it was crossed by its parent's end,
// or is ended on another thread: it gets a lane of its own in the trace.
inline void leave(ThreadState& t, Span& span) noexcept {
  if (t.serial == span.serial && (t.parent == span.id || span.level < t.level)) [[likely]] {
    t.parent = span.parent;
    t.level = span.level - 1u;
  } else {
    span.flags |= record::kOwnLane;
  }
}

inline void close_span(Span& span) noexcept {
  if (span.id == 0) return;
  const std::uint64_t end = record::ticks();
  ThreadState* t = this_thread();
  // Begun before a fork or a restart: it belongs to the parent, or to a trace that is closed.
  if (t != nullptr && static_cast<std::uint32_t>(t->generation) == span.generation) [[likely]] {
    leave(*t, span);
    write_record(*t,
                 {0, record::Kind::kSpan, span.flags, span.level, span.name, span.category, span.id,
                  span.parent, span.start, end - span.start},
                 span.args.data(), span.args.size());
  }
  span.args.clear();
  span.id = 0;
}

}  // namespace dft::buffer
