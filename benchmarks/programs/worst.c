/* worst EVENTS
 * The dearest single call: every event is timed on its own, with the thread's CPU clock and the
 * wall clock. Reading the CPU clock costs some 200 to 300 ns and is part of the figures. In virtual
 * machines the CPU clock now and then jumps by whole ticks, to more than the wall clock saw; a call
 * cannot have used more than that. In turn with blocks of events come blocks of calls that do
 * nothing, timed in the same way: what they show is the machine. Blocks, and not every other call,
 * because a writer that falls behind must not be given time to catch up. */
#include "event.h"

enum { kBlocks = 10 };

typedef struct {
  uint64_t cpu;
  uint64_t wall;
  long over_100_us;
  long over_1_ms;
} Worst;

static __attribute__((noinline)) void no_event(int index, int mixed) {
  __asm__ volatile("" : : "r"(index), "r"(mixed) : "memory");
}

static inline __attribute__((always_inline)) void block(Worst* worst, long events,
                                                        void (*call)(int, int)) {
  for (long i = 0; i < events; ++i) {
    const uint64_t wall_before = clock_ns(CLOCK_MONOTONIC);
    const uint64_t cpu_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    call((int)i, 4096);
    uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    const uint64_t wall = clock_ns(CLOCK_MONOTONIC) - wall_before;
    if (cpu > wall) cpu = wall;
    if (cpu > worst->cpu) worst->cpu = cpu;
    if (wall > worst->wall) worst->wall = wall;
    worst->over_100_us += cpu > 100000;
    worst->over_1_ms += cpu > 1000000;
  }
}

static void print(const char* prefix, const Worst* worst) {
  printf("\"%sworst_cpu_ns\":%" PRIu64 ",\"%sworst_wall_ns\":%" PRIu64
         ",\"%sover_100_us\":%ld,"
         "\"%sover_1_ms\":%ld",
         prefix, worst->cpu, prefix, worst->wall, prefix, worst->over_100_us, prefix,
         worst->over_1_ms);
}

int main(int argc, char** argv) {
  const long events = argument(argc, argv, 1, 1000000) / kBlocks;
  Worst traced = {0, 0, 0, 0};
  Worst bare = {0, 0, 0, 0};
  DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
  for (int i = 0; i < kBlocks; ++i) {
    block(&traced, events, one_event);
    block(&bare, events, no_event);
  }
  DFTRACER_C_FINI();
  printf("{");
  print("", &traced);
  printf(",");
  print("bare_", &bare);
  printf("}\n");
  return 0;
}
