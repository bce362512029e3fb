/* The event that the annotated programs record. The same source is built three times: bare
 * (DFTRACER_DISABLE), against this project, against the peer. */
#ifndef BENCH_EVENT_H
#define BENCH_EVENT_H

#include "tools.h"

#include <dftracer/dftracer.h>

/* One region with two arguments, as a user writes it. A function of its own, so that the loop
 * around it is the same in all three builds. `mixed` is the second argument: nearly constant, or
 * unpredictable. */
static __attribute__((noinline)) void one_event(int index, int mixed) {
  DFTRACER_C_REGION_START(step);
  DFTRACER_C_REGION_UPDATE_INT(step, "index", index);
  DFTRACER_C_REGION_UPDATE_INT(step, "size", mixed);
  DFTRACER_C_REGION_END(step);
  __asm__ volatile("" : : "r"(index), "r"(mixed) : "memory");
}

#endif /* BENCH_EVENT_H */
