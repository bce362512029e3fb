// The exported C functions (include/dftracer/dftracer.h). They check their arguments
// and throw nothing.
#include <algorithm>
#include <cstdlib>
#include <new>

#include <dftracer/dftracer.h>
#include "api/core_abi.hpp"
#include "api/export.hpp"
#include "base/signals.hpp"
#include "buffer/span.hpp"
#include "hooks/hooks.hpp"
#include "intercept/intercept.hpp"
#include "recovery/recover.hpp"
#include "session/session.hpp"

namespace {

using dft::buffer::Draft;
using dft::buffer::Span;
using dft::buffer::ThreadState;
using dft::record::ArgType;

static_assert(sizeof(dftracer_region) == sizeof(Span) && alignof(dftracer_region) >= alignof(Span));
static_assert(DFTRACER_INT == static_cast<int>(ArgType::kInt) &&
              DFTRACER_UINT == static_cast<int>(ArgType::kUint) &&
              DFTRACER_FLOAT == static_cast<int>(ArgType::kFloat) &&
              DFTRACER_STRING == static_cast<int>(ArgType::kString) &&
              DFTRACER_BOOL == static_cast<int>(ArgType::kBool));

Span& span_of(dftracer_region* region) { return *reinterpret_cast<Span*>(region); }

// Shown in place of a missing name.
std::string_view text_or(const char* text, const char* fallback) {
  return text != nullptr && text[0] != '\0' ? text : fallback;
}
std::string_view name_text(const char* name) { return text_or(name, "unnamed"); }
std::string_view category_text(const char* category) { return text_or(category, "APP"); }

struct Ids {
  std::uint32_t name;
  std::uint32_t category;
};

Ids look_up(const char* name, const char* category) {
  return {dft::buffer::g_names.id(name_text(name)),
          dft::buffer::g_names.id(category_text(category))};
}

// A site holds both ids in one word, so that threads that fill it concurrently agree.
std::uint64_t word_of(const dftracer_site* site) {
  return site != nullptr ? __atomic_load_n(&site->opaque, __ATOMIC_ACQUIRE) : 0;
}

Ids resolve(dftracer_site* site, const char* name, const char* category) {
  if (const std::uint64_t word = word_of(site)) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  const Ids ids = look_up(name, category);
  if (site != nullptr && ids.name != 0 && ids.category != 0) {
    __atomic_store_n(&site->opaque, ids.name | std::uint64_t{ids.category} << 32, __ATOMIC_RELEASE);
  }
  return ids;
}

// The id of a key; writes the key itself into `args` where it has none.
std::uint32_t key_id(Draft& draft, dftracer_site* site, const char* key) {
  if (const std::uint64_t word = word_of(site)) return static_cast<std::uint32_t>(word);
  const std::string_view text = text_or(key, "unnamed");
  const std::uint32_t id = dft::buffer::g_names.id(text);
  if (id == 0) {
    draft.put_bytes(0, ArgType::kInlineKey, text);
  } else if (site != nullptr) {
    __atomic_store_n(&site->opaque, std::uint64_t{id}, __ATOMIC_RELEASE);
  }
  return id;
}

// The slow halves are separate functions, reached by a tail call, so that the fast ones
// save no registers.
[[gnu::noinline, gnu::cold]] void put_slow(Draft& draft, dftracer_site* site, const char* key,
                                           ArgType type, std::uint64_t word) {
  const std::uint32_t id = key_id(draft, site, key);
  draft.put(id, type, word);
}

inline void put(dftracer_region* region, dftracer_site* site, const char* key, ArgType type,
                std::uint64_t value) {
  if (region == nullptr || span_of(region).live == 0) [[unlikely]]
    return;
  Draft& draft = span_of(region).draft;
  const std::uint64_t word = word_of(site);
  if (word != 0 && draft.try_put(static_cast<std::uint32_t>(word), type, value)) [[likely]]
    return;
  put_slow(draft, site, key, type, value);
}

[[gnu::noinline, gnu::cold]] void begin_slow(dftracer_region* region, dftracer_site* site,
                                             const char* name, const char* category) {
  Span& span = span_of(region);
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const Ids ids = resolve(site, name, category);
  dft::buffer::take_back(*t);
  dft::buffer::open_span(*t, span, dft::buffer::new_id(*t), ids.name, ids.category);
  if (ids.name == 0 || ids.category == 0) {
    span.draft.head.flags = dft::buffer::inline_names(span.draft, ids.name, name_text(name),
                                                      ids.category, category_text(category));
  }
  span.draft.head.start = dft::record::ticks();
}

[[gnu::noinline, gnu::cold]] void end_slow(dftracer_region* region) {
  dft::buffer::close_span(span_of(region), dft::record::ticks());
}

std::uint64_t bits(double value) {
  std::uint64_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

void put_all(Draft& draft, const dftracer_arg* list, std::size_t count) {
  for (std::size_t i = 0; list != nullptr && i < count; ++i) {
    const dftracer_arg& arg = list[i];
    switch (arg.type) {
      case DFTRACER_INT:
      case DFTRACER_UINT:
      case DFTRACER_FLOAT:
      case DFTRACER_BOOL:
        put_slow(draft, nullptr, arg.key, static_cast<ArgType>(arg.type), arg.value.u);
        break;
      case DFTRACER_STRING: {
        const std::uint32_t id = key_id(draft, nullptr, arg.key);
        const bool missing = arg.value.s.text == nullptr;
        draft.put_bytes(id, ArgType::kString,
                        {missing ? "" : arg.value.s.text, missing ? 0 : arg.value.s.size});
        break;
      }
    }
  }
}

// An event that is complete when it is passed in.
void write_now(dft::record::Kind kind, std::uint8_t flags, const char* name, const char* category,
               std::uint64_t start, std::uint64_t duration, const dftracer_arg* list,
               std::size_t count) {
  ThreadState* t = dft::buffer::this_thread();
  if (t == nullptr) return;
  const std::uint64_t live = t->live;
  const Ids ids = look_up(name, category);
  Draft draft;
  draft.init();
  flags |= dft::buffer::inline_names(draft, ids.name, name_text(name), ids.category,
                                     category_text(category));
  put_all(draft, list, count);
  draft.head = dft::buffer::make_head(*t, kind, flags, start, duration);
  draft.head.name = ids.name;
  draft.head.category = ids.category;
  dft::buffer::write_record(live, draft.head, draft.args(), draft.args_size());
  draft.clear();
}

int begin_session(const char* log_file, const char* data_dirs, const int* process_id,
                  bool intercept) {
  dft::session::Request request;
  request.log_file = log_file;
  request.data_dirs = data_dirs;
  request.rank = process_id != nullptr ? *process_id : -1;
  request.intercept = intercept;
  if (!dft::session::start(request)) return -1;
  dft::hooks::begin();
  if (intercept) dft::intercept::begin();
  return 0;
}

}  // namespace

DFT_EXPORT int dftracer_initialize(const char* log_file, const char* data_dirs,
                                   const int* process_id) {
  return begin_session(log_file, data_dirs, process_id, true);
}
DFT_EXPORT int dftracer_initialize_no_bind(const char* log_file, const char* data_dirs,
                                           const int* process_id) {
  return begin_session(log_file, data_dirs, process_id, false);
}
DFT_EXPORT void dftracer_finalize(void) {
  dft::session::stop();
  if (!dft::session::active()) dft::intercept::end();
}
// Called by the preload library's constructor. With DFTRACER_INIT=FUNCTION the program
// starts tracing itself.
DFT_EXPORT void dftracer_preload_begin(void) {
  if (!dft::intercept::is_first_to_begin()) return;
  const char* mode = std::getenv("DFTRACER_INIT");
  if (mode != nullptr && ::strcasecmp(mode, "FUNCTION") == 0) return;
  dft::session::Request request;
  request.preloaded = true;
  if (!dft::session::start(request)) return;
  dft::session::keep_meaning_for_children();
  dft::hooks::begin();
  dft::intercept::begin();
}
DFT_EXPORT void dftracer_flush(void) { dft::session::flush(); }
DFT_EXPORT int dftracer_active(void) { return dft::session::active() ? 1 : 0; }
DFT_EXPORT uint64_t dftracer_time(void) { return dft::session::now(); }
DFT_EXPORT const char* dftracer_version(void) { return DFTRACER_VERSION; }

DFT_EXPORT void dftracer_region_begin(dftracer_region* region, dftracer_site* site,
                                      const char* name, const char* category) {
  if (region == nullptr) return;
  Span& span = span_of(region);
  span.live = 0;
  const std::uint64_t word = word_of(site);
  if (word != 0 && dft::buffer::try_open(span, static_cast<std::uint32_t>(word),
                                         static_cast<std::uint32_t>(word >> 32))) [[likely]] {
    return;
  }
  begin_slow(region, site, name, category);
}

DFT_EXPORT void dftracer_region_int(dftracer_region* region, dftracer_site* key_site,
                                    const char* key, int64_t value) {
  put(region, key_site, key, ArgType::kInt, static_cast<std::uint64_t>(value));
}
DFT_EXPORT void dftracer_region_uint(dftracer_region* region, dftracer_site* key_site,
                                     const char* key, uint64_t value) {
  put(region, key_site, key, ArgType::kUint, value);
}
DFT_EXPORT void dftracer_region_bool(dftracer_region* region, dftracer_site* key_site,
                                     const char* key, int value) {
  put(region, key_site, key, ArgType::kBool, value != 0 ? 1 : 0);
}
DFT_EXPORT void dftracer_region_float(dftracer_region* region, dftracer_site* key_site,
                                      const char* key, double value) {
  put(region, key_site, key, ArgType::kFloat, bits(value));
}
DFT_EXPORT void dftracer_region_bytes(dftracer_region* region, dftracer_site* key_site,
                                      const char* key, const char* value, size_t size) {
  if (region == nullptr || span_of(region).live == 0) return;
  Draft& draft = span_of(region).draft;
  const std::uint32_t id = key_id(draft, key_site, key);
  draft.put_bytes(id, ArgType::kString,
                  {value != nullptr ? value : "", value != nullptr ? size : 0});
}
DFT_EXPORT void dftracer_region_string(dftracer_region* region, dftracer_site* key_site,
                                       const char* key, const char* value) {
  dftracer_region_bytes(region, key_site, key, value, value != nullptr ? std::strlen(value) : 0);
}

DFT_EXPORT void dftracer_region_end(dftracer_region* region) {
  if (region == nullptr || span_of(region).live == 0) return;
  if (!dft::buffer::try_close(span_of(region))) [[unlikely]]
    end_slow(region);
}

DFT_EXPORT void dftracer_region_drop(dftracer_region* region) {
  if (region != nullptr && span_of(region).live != 0) dft::buffer::drop_span(span_of(region));
}

DFT_EXPORT void dftracer_instant(const char* name, const char* category, const dftracer_arg* args,
                                 size_t count) {
  write_now(dft::record::Kind::kInstant, 0, name, category, dft::record::ticks(), 0, args, count);
}

DFT_EXPORT void dftracer_counter(const char* name, const char* category, double value) {
  dftracer_arg arg{};
  arg.key = "value";
  arg.type = DFTRACER_FLOAT;
  arg.value.f = value;
  write_now(dft::record::Kind::kCounter, 0, name, category, dft::record::ticks(), 0, &arg, 1);
}

DFT_EXPORT void dftracer_complete(const char* name, const char* category, uint64_t start,
                                  uint64_t duration, const dftracer_arg* args, size_t count) {
  write_now(dft::record::Kind::kSpan, dft::record::kTimesGiven, name, category, start, duration,
            args, count);
}

DFT_EXPORT void dftracer_metadata(const char* key, const char* value) {
  dftracer_metadata_with(key, key != nullptr ? std::strlen(key) : 0, value,
                         value != nullptr ? std::strlen(value) : 0);
}

DFT_EXPORT struct DFTracerData* dftracer_region_new(const char* name, const char* category,
                                                    int event_type) {
  if (event_type == DF_METADATA_EVENT) return nullptr;
  auto* data = static_cast<DFTracerData*>(std::malloc(sizeof(DFTracerData)));
  if (data != nullptr) dftracer_region_begin(&data->region, nullptr, name, category);
  return data;
}

DFT_EXPORT void dftracer_region_delete(struct DFTracerData* data) {
  if (data == nullptr) return;
  dftracer_region_end(&data->region);
  std::free(data);
}

DFT_EXPORT int dftracer_recover(const char* directory, unsigned flags, dftracer_recovery* result) {
  dft::SlowPath slow;
  dft::record::choose_clock();
  dft::recovery::RecoveryOptions wanted;
  wanted.force = (flags & 1) != 0;
  wanted.any_user = true;
  dft::recovery::RecoveryCounts found;
  const int error =
      dft::recovery::recover_directory(directory != nullptr ? directory : ".", wanted, found);
  if (result != nullptr) {
    *result = {found.spools, found.recovered, found.events,
               found.alive,  found.unknown,   found.broken};
  }
  return -error;
}
