/* worst EVENTS
 * The dearest single call: every event is timed on its own, with the thread's CPU clock and the
 * wall clock. Reading the CPU clock costs some 200 to 300 ns and is part of the figures, as the
 * bare build shows. In virtual machines the CPU clock now and then jumps by whole ticks, to more
 * than the wall clock saw; a call cannot have used more than that. */
#include "common.h"

int main(int argc, char** argv) {
  const long events = argument(argc, argv, 1, 1000000);
  uint64_t worst_cpu = 0;
  uint64_t worst_wall = 0;
  long over_100_us = 0;
  long over_1_ms = 0;
  DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
  for (long i = 0; i < events; ++i) {
    const uint64_t wall_before = clock_ns(CLOCK_MONOTONIC);
    const uint64_t cpu_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    one_event((int)i, 4096);
    uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    const uint64_t wall = clock_ns(CLOCK_MONOTONIC) - wall_before;
    if (cpu > wall) cpu = wall;
    if (cpu > worst_cpu) worst_cpu = cpu;
    if (wall > worst_wall) worst_wall = wall;
    over_100_us += cpu > 100000;
    over_1_ms += cpu > 1000000;
  }
  DFTRACER_C_FINI();
  printf("{\"worst_cpu_ns\":%" PRIu64 ",\"worst_wall_ns\":%" PRIu64
         ",\"over_100_us\":%ld,\"over_1_ms\":%ld}\n",
         worst_cpu, worst_wall, over_100_us, over_1_ms);
  return 0;
}
