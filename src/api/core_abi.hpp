// The private ABI between the core and the Python extension: regions whose names and arguments are
// already in the form of the record, that can be suspended, or that are complete when recorded.
// Exported, but not public: both are built and shipped together.
#pragma once
#include <cstddef>
#include <cstdint>

#include <dftracer/dftracer.h>

extern "C" {

// Name and category of an event. `ids` is filled at the first use.
struct dftracer_names {
  std::uint64_t ids;
  const char* name;
  std::size_t name_size;
  const char* category;
  std::size_t category_size;
};

// Where a thread was before a region was entered again.
struct dftracer_before {
  std::uint64_t opaque[3];
};
struct dftracer_inside {
  std::uint64_t opaque[2];
};
// Its third word is the time at which it began, in ticks.
struct dftracer_mark {
  std::uint64_t opaque[5];
};

// The id of an argument's key; 0 where it has none, and stands in the record itself.
std::uint32_t dftracer_intern(const char* text, std::size_t size);
std::uint64_t dftracer_ticks(void);
// See session::serve_python.
void dftracer_serve_python(void);

void dftracer_open(dftracer_region* region, dftracer_names* names);
void dftracer_close(dftracer_region* region, const void* args, std::size_t size);
// The same for a span that is an end of a flow, which is the last argument (ArgType::kFlow).
void dftracer_close_flow(dftracer_region* region, const void* args, std::size_t size);
// A given start and duration for the event of an open region, which stays open.
void dftracer_complete_open(const dftracer_region* region, dftracer_names* names,
                            std::uint64_t start, std::uint64_t duration, const void* args,
                            std::size_t size);
void dftracer_complete_with(dftracer_names* names, std::uint64_t start, std::uint64_t duration,
                            const void* args, std::size_t size);
void dftracer_instant_with(dftracer_names* names, const void* args, std::size_t size);
// The same for a time in the past, in nanoseconds of the Unix epoch on the trace's clock.
void dftracer_instant_at(dftracer_names* names, std::uint64_t time_ns, const void* args,
                         std::size_t size);
// Functions that took fewer ticks are not recorded (DFTRACER_FUNCTIONS_MIN_US); 0: all are.
std::uint64_t dftracer_least_ticks(void);
// An event that is not recorded because a table is full.
void dftracer_count_lost(void);
// As buffer::resume and buffer::suspend; `before` is null the first time.
void dftracer_resume(dftracer_region* region, const dftracer_inside* inside,
                     dftracer_before* before);
void dftracer_suspend(dftracer_region* region, const dftracer_before* before,
                      dftracer_inside* inside);
// 1 while nothing that began inside is open on this thread.
int dftracer_is_innermost(const dftracer_region* region);

// The run that this process belongs to; 0 while nothing is recorded.
std::uint64_t dftracer_run_id(void);
// This process has children that it did not fork itself: at its end it recovers what they left.
void dftracer_has_children(void);

// An event that another tracer of this process saw, as the record has it. The thread may be a lane
// beside a thread; level and parent refer to events recorded in this way.
struct dftracer_foreign {
  std::uint64_t id;
  std::uint64_t parent;
  std::uint32_t level;
  std::uint32_t thread;
  std::uint64_t start_ns;  // of the Unix epoch
  std::uint64_t duration_ns;
};
std::uint64_t dftracer_new_id(void);  // 0 while nothing is recorded
void dftracer_foreign_with(const dftracer_foreign* event, dftracer_names* names, const void* args,
                           std::size_t size);
void dftracer_name_lane(std::uint32_t thread, const char* name, std::size_t size);
// How far the trace's clock is ahead of CLOCK_REALTIME now: to be added to another tracer's times.
std::int64_t dftracer_ahead_ns(void);
// The file of this process, without a 0 at its end; its length, 0 while nothing is recorded.
std::size_t dftracer_trace_path(char* to, std::size_t size);

void dftracer_mark_open(dftracer_mark* mark);
void dftracer_mark_close(dftracer_mark* mark, std::uint64_t end, dftracer_names* names,
                         const void* args, std::size_t size);
void dftracer_metadata_with(const char* key, std::size_t key_size, const char* value,
                            std::size_t value_size);
}
