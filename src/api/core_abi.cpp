#include "api/core_abi.hpp"
#include "api/export.hpp"

#include <algorithm>
#include <cstddef>

#include "buffer/span.hpp"
#include "hooks/hooks.hpp"
#include "hooks/open_spans.hpp"
#include "session/session.hpp"

namespace {

using dft::buffer::Draft;
using dft::buffer::Mark;
using dft::buffer::Span;
using dft::buffer::ThreadState;
using dft::record::ArgType;

static_assert(sizeof(dftracer_mark) == sizeof(Mark) && offsetof(Mark, start) == 16);
static_assert(sizeof(dftracer_before) == sizeof(dft::buffer::Before));
static_assert(sizeof(dftracer_inside) == sizeof(dft::buffer::Inside));

Span& span_of(dftracer_region* region) { return *reinterpret_cast<Span*>(region); }
const Span& span_of(const dftracer_region* region) {
  return *reinterpret_cast<const Span*>(region);
}
Mark& mark_of(dftracer_mark* mark) { return *reinterpret_cast<Mark*>(mark); }

std::string_view name_of(const dftracer_names& names) {
  return names.name_size != 0 ? std::string_view(names.name, names.name_size) : "unnamed";
}
std::string_view category_of(const dftracer_names& names) {
  return names.category_size != 0 ? std::string_view(names.category, names.category_size) : "APP";
}
std::uint32_t name_id(std::uint64_t ids) { return static_cast<std::uint32_t>(ids); }
std::uint32_t category_id(std::uint64_t ids) { return static_cast<std::uint32_t>(ids >> 32); }

// Both ids in one word, so that threads that fill it concurrently agree.
std::uint64_t resolve(dftracer_names& names) {
  std::uint64_t ids = __atomic_load_n(&names.ids, __ATOMIC_ACQUIRE);
  if (ids != 0) return ids;
  const std::uint32_t name = dft::buffer::g_names.id(name_of(names));
  const std::uint32_t category = dft::buffer::g_names.id(category_of(names));
  ids = name | std::uint64_t{category} << 32;
  if (name != 0 && category != 0) __atomic_store_n(&names.ids, ids, __ATOMIC_RELEASE);
  return ids;
}

std::uint8_t inline_names(Draft& draft, std::uint64_t ids, const dftracer_names& names) {
  return dft::buffer::inline_names(draft, name_id(ids), name_of(names), category_id(ids),
                                   category_of(names));
}

[[gnu::noinline, gnu::cold]] void open_slow(Span& span, dftracer_names& names) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const std::uint64_t ids = resolve(names);
  dft::buffer::take_back(*t);
  dft::buffer::open_span(*t, span, dft::buffer::new_id(*t), name_id(ids), category_id(ids));
  span.draft.head.flags = inline_names(span.draft, ids, names);
  span.draft.head.start = dft::record::ticks();
}

// Names that have no id stand before the arguments, in one piece with them.
[[gnu::noinline, gnu::cold]] void close_slow(Span& span, const std::byte* args, std::size_t size) {
  const std::uint64_t end = dft::record::ticks();
  Draft& draft = span.draft;
  if (draft.args_size() == 0) {
    dft::buffer::close_span_with(span, end, args, size);
    return;
  }
  draft.append(args, size);
  dft::buffer::close_span(span, end);
}

// An event that is complete when it is passed in.
void write_now(dft::record::Head head, std::uint64_t live, dftracer_names& names, const void* args,
               std::size_t size) {
  const std::uint64_t ids = resolve(names);
  head.name = name_id(ids);
  head.category = category_id(ids);
  const auto* bytes = static_cast<const std::byte*>(args);
  if (head.name != 0 && head.category != 0) {
    dft::buffer::write_record(live, head, bytes, size);
    return;
  }
  Draft draft;
  draft.init();
  head.flags |= inline_names(draft, ids, names);
  draft.append(bytes, size);
  dft::buffer::write_record(live, head, draft.args(), draft.args_size());
  draft.clear();
}

}  // namespace

DFT_EXPORT std::uint32_t dftracer_intern(const char* text, std::size_t size) {
  return dft::buffer::g_names.id({text, size});
}
DFT_EXPORT std::uint64_t dftracer_ticks(void) { return dft::record::ticks(); }
DFT_EXPORT void dftracer_serve_python(void) { dft::session::serve_python(); }

DFT_EXPORT void dftracer_open(dftracer_region* region, dftracer_names* names) {
  Span& span = span_of(region);
  span.live = 0;
  const std::uint64_t ids = __atomic_load_n(&names->ids, __ATOMIC_ACQUIRE);
  if (ids != 0 && dft::buffer::try_open(span, name_id(ids), category_id(ids))) [[likely]]
    return;
  open_slow(span, *names);
}

DFT_EXPORT void dftracer_close(dftracer_region* region, const void* args, std::size_t size) {
  Span& span = span_of(region);
  if (span.live == 0) return;
  const auto* bytes = static_cast<const std::byte*>(args);
  if (size == 0 || span.draft.try_append(bytes, size)) [[likely]] {
    if (dft::buffer::try_close(span)) [[likely]]
      return;
    dft::buffer::close_span(span, dft::record::ticks());
    return;
  }
  close_slow(span, bytes, size);
}

DFT_EXPORT void dftracer_close_flow(dftracer_region* region, const void* args, std::size_t size) {
  span_of(region).draft.head.kind = dft::record::Kind::kFlow;
  dftracer_close(region, args, size);
}

DFT_EXPORT void dftracer_resume(dftracer_region* region, const dftracer_inside* inside,
                                dftracer_before* before) {
  if (span_of(region).live == 0) return;
  dft::buffer::resume(span_of(region), *reinterpret_cast<const dft::buffer::Inside*>(inside),
                      *reinterpret_cast<dft::buffer::Before*>(before));
}
DFT_EXPORT void dftracer_suspend(dftracer_region* region, const dftracer_before* before,
                                 dftracer_inside* inside) {
  dft::buffer::suspend(span_of(region), reinterpret_cast<const dft::buffer::Before*>(before),
                       *reinterpret_cast<dft::buffer::Inside*>(inside));
}
DFT_EXPORT int dftracer_is_innermost(const dftracer_region* region) {
  const ThreadState* t = dft::buffer::this_thread();
  const Span& span = span_of(region);
  return t != nullptr && t->live == span.live && t->parent == span.draft.head.id ? 1 : 0;
}

DFT_EXPORT std::uint64_t dftracer_run_id(void) { return dft::session::run_id(); }
DFT_EXPORT void dftracer_has_children(void) { dft::buffer::g_forked.store(true); }

DFT_EXPORT void dftracer_mark_open(dftracer_mark* mark) { dft::buffer::open_mark(mark_of(mark)); }

DFT_EXPORT void dftracer_mark_close(dftracer_mark* mark, std::uint64_t end, dftracer_names* names,
                                    const void* args, std::size_t size) {
  if (mark_of(mark).live == 0) return;
  const std::uint64_t ids = resolve(*names);
  const auto* bytes = static_cast<const std::byte*>(args);
  if (name_id(ids) != 0 && category_id(ids) != 0) [[likely]] {
    dft::buffer::close_mark(mark_of(mark), end, name_id(ids), category_id(ids), 0, bytes, size);
    return;
  }
  Draft draft;
  draft.init();
  const std::uint8_t flags = inline_names(draft, ids, *names);
  draft.append(bytes, size);
  dft::buffer::close_mark(mark_of(mark), end, name_id(ids), category_id(ids), flags, draft.args(),
                          draft.args_size());
  draft.clear();
}

DFT_EXPORT void dftracer_complete_with(dftracer_names* names, std::uint64_t start,
                                       std::uint64_t duration, const void* args, std::size_t size) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const auto head = dft::buffer::make_head(*t, dft::record::Kind::kSpan, dft::record::kTimesGiven,
                                           start, duration);
  write_now(head, t->live, *names, args, size);
}

DFT_EXPORT void dftracer_complete_open(const dftracer_region* region, dftracer_names* names,
                                       std::uint64_t start, std::uint64_t duration,
                                       const void* args, std::size_t size) {
  const Span& span = span_of(region);
  if (span.live == 0) return;
  dft::record::Head head = span.draft.head;
  head.flags = dft::record::kTimesGiven;
  head.start = start;
  head.duration = duration;
  write_now(head, span.live, *names, args, size);
}

DFT_EXPORT void dftracer_instant_with(dftracer_names* names, const void* args, std::size_t size) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  write_now(dft::buffer::make_head(*t, dft::record::Kind::kInstant, 0, dft::record::ticks(), 0),
            t->live, *names, args, size);
}

DFT_EXPORT void dftracer_metadata_with(const char* key, std::size_t key_size, const char* value,
                                       std::size_t value_size) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const std::string_view text = key_size != 0 ? std::string_view(key, key_size) : "unnamed";
  const std::uint32_t id = dft::buffer::g_names.id(text);
  Draft draft;
  draft.init();
  draft.head = {};
  draft.head.kind = dft::record::Kind::kMetadata;
  draft.head.name = id;
  // As in existing traces: the id of the span around it, where there is one.
  draft.head.id = t->parent != 0 ? t->parent : dft::buffer::new_id(*t);
  if (id == 0) {
    draft.head.flags = dft::record::kInlineName;
    draft.put_bytes(0, ArgType::kString, text);
  }
  draft.put_bytes(0, ArgType::kString, {value, value_size});
  dft::buffer::write_record(t->live, draft.head, draft.args(), draft.args_size());
  draft.clear();
}

DFT_EXPORT std::uint64_t dftracer_new_id(void) {
  ThreadState* t = dft::buffer::this_thread();
  return t != nullptr ? dft::buffer::new_id(*t) : 0;
}

namespace {

// A record that begins with the thread that it is shown on.
void write_foreign(dft::record::Head head, dftracer_names* names, std::uint32_t thread,
                   const void* args, std::size_t size) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  Draft draft;
  draft.init();
  if (names != nullptr) {
    const std::uint64_t ids = resolve(*names);
    head.name = name_id(ids);
    head.category = category_id(ids);
    head.flags |= inline_names(draft, ids, *names);
  }
  draft.put(0, ArgType::kUint, thread);
  draft.append(static_cast<const std::byte*>(args), size);
  dft::buffer::write_record(t->live, head, draft.args(), draft.args_size());
  draft.clear();
}

}  // namespace

DFT_EXPORT void dftracer_foreign_with(const dftracer_foreign* event, dftracer_names* names,
                                      const void* args, std::size_t size) {
  const dft::record::Head head{0,
                               dft::record::Kind::kSpan,
                               dft::record::kForeign,
                               dft::record::clamp_level(event->level),
                               0,
                               0,
                               event->id,
                               event->parent,
                               event->start_ns,
                               event->duration_ns};
  write_foreign(head, names, event->thread, args, size);
}

DFT_EXPORT void dftracer_instant_at(dftracer_names* names, std::uint64_t time_ns, const void* args,
                                    std::size_t size) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const auto head =
      dft::buffer::make_head(*t, dft::record::Kind::kInstant, dft::record::kForeign, time_ns, 0);
  write_foreign(head, names, t->thread, args, size);
}

DFT_EXPORT std::uint64_t dftracer_least_ticks(void) { return dft::hooks::least_ticks(); }
DFT_EXPORT void dftracer_count_lost(void) { dft::hooks::count_lost(); }

DFT_EXPORT void dftracer_name_lane(std::uint32_t thread, const char* name, std::size_t size) {
  dft::record::Head head{};
  head.kind = dft::record::Kind::kThread;
  head.flags = dft::record::kForeign;
  head.id = dftracer_new_id();
  Draft text;
  text.init();
  text.put_bytes(0, ArgType::kString, {name, size});
  write_foreign(head, nullptr, thread, text.args(), text.args_size());
  text.clear();
}

DFT_EXPORT std::int64_t dftracer_ahead_ns(void) {
  const auto wall = [] {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    return std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
  };
  // The reading with the narrowest bracket.
  std::int64_t best = 0;
  std::int64_t width = -1;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = wall();
    const auto ours = static_cast<std::int64_t>(dft::session::now_ns());
    const std::int64_t after = wall();
    if (ours == 0) return 0;
    if (width < 0 || after - before < width) {
      width = after - before;
      best = ours - (before + width / 2);
    }
  }
  return best;
}

DFT_EXPORT std::size_t dftracer_trace_path(char* to, std::size_t size) try {
  const std::string path = dft::session::trace_path();
  path.copy(to, size);
  return std::min(path.size(), size);
} catch (...) {
  return 0;
}
