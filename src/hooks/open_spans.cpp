#include "hooks/open_spans.hpp"

#include <pthread.h>

#include "base/signals.hpp"

namespace dft::hooks {

thread_local constinit ThreadStacks t_stacks = {};

namespace {

pthread_key_t g_key;
bool g_have_key = false;

constexpr std::size_t size_of(Stack which) {
  return sizeof(OpenSpans) + kMostOpen[static_cast<std::size_t>(which)] * sizeof(OpenSpan);
}

void end_all(OpenSpans& spans) {
  while (!spans.empty()) close((--spans.top)->span);
}

void thread_ends(void* stacks) {
  auto& of = static_cast<ThreadStacks*>(stacks)->of;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stack::kCount); ++i) {
    if (of[i] == nullptr) continue;
    end_all(*of[i]);
    sys::unmap(of[i], size_of(static_cast<Stack>(i)));
    of[i] = nullptr;
  }
}

// Before a session makes its own key: in the order of the keys, what is open on an ending thread is
// recorded before the session lets go of the thread.
__attribute__((constructor)) void make_key() {
  g_have_key = pthread_key_create(&g_key, thread_ends) == 0;
}

}  // namespace

OpenSpans* make_stack(Stack which) noexcept {
  OpenSpans*& made = t_stacks.of[static_cast<std::size_t>(which)];
  if (made != nullptr) return made;
  SlowPath slow;
  auto* spans = static_cast<OpenSpans*>(sys::map_private(size_of(which)));
  if (spans == nullptr) return nullptr;
  spans->top = spans->first;
  spans->end = spans->first + kMostOpen[static_cast<std::size_t>(which)];
  made = spans;
  if (g_have_key) pthread_setspecific(g_key, &t_stacks);
  return spans;
}

void end_open_spans() noexcept {
  for (OpenSpans* spans : t_stacks.of) {
    if (spans != nullptr) end_all(*spans);
  }
}

void count_lost() noexcept {
  if (buffer::this_thread() == nullptr) return;
  if (buffer::Spool* spool = buffer::g_spool.load()) spool->add_lost(1);
}

namespace {

// In a forked child until it records something itself: ending what its parent began must not make a
// trace for it.
bool forget_parents(buffer::Span& span) {
  if (buffer::generation_is_live()) return false;
  span.draft.clear();
  span.live = 0;
  return true;
}

}  // namespace

void close_slow(buffer::Span& span) noexcept {
  if (!forget_parents(span)) buffer::close_span(span, record::ticks());
}

void drop(buffer::Span& span) noexcept {
  if (!forget_parents(span)) buffer::drop_span(span);
}

void open(buffer::Span& span, const Label& name, std::uint32_t category) noexcept {
  span.live = 0;
  if (name.id != 0 && category != 0 && buffer::try_open(span, name.id, category)) [[likely]]
    return;
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr || category == 0) return;
  buffer::take_back(*t);
  buffer::open_span(*t, span, buffer::new_id(*t), name.id, category);
  span.draft.head.flags = buffer::inline_names(span.draft, name.id, name.text, category, {});
  span.draft.head.start = record::ticks();
}

void put_text(buffer::Draft& draft, std::uint32_t key, std::string_view text) noexcept {
  if (key != 0) draft.put_bytes(key, record::ArgType::kString, text);
}

void write_instant(buffer::Draft& draft, const Label& name, std::uint32_t category) noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr || category == 0) return;
  draft.head = buffer::make_head(*t, record::Kind::kInstant, 0, record::ticks(), 0);
  draft.head.name = name.id;
  draft.head.category = category;
  if (name.id != 0) {
    buffer::write_record(t->live, draft.head, draft.args(), draft.args_size());
    return;
  }
  // Its name stands before its arguments.
  buffer::Draft named;
  named.init();
  named.head = draft.head;
  named.head.flags = buffer::inline_names(named, name.id, name.text, category, {});
  named.append(draft.args(), draft.args_size());
  buffer::write_record(t->live, named.head, named.args(), named.args_size());
  named.clear();
}

void name_thread(std::uint32_t thread, std::string_view name) noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr || name.empty()) return;
  buffer::Draft draft;
  draft.init();
  draft.head = {};
  draft.head.kind = record::Kind::kThread;
  draft.head.flags = record::kForeign;
  draft.head.id = buffer::new_id(*t);
  draft.put(0, record::ArgType::kUint, thread);
  draft.put_bytes(0, record::ArgType::kString, name);
  buffer::write_record(t->live, draft.head, draft.args(), draft.args_size());
  draft.clear();
}

}  // namespace dft::hooks
