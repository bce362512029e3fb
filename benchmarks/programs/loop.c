/* loop EVENTS [THREADS [MIXED [PAUSE_EVERY PAUSE_US]]]
 * Records EVENTS events in all, as fast as it can, and says what that cost: CPU of the calling
 * threads, CPU of the whole process until the file is closed, memory, and the time that closing
 * takes. MIXED 1 gives the second argument unpredictable values. Pauses let a writer thread keep
 * up. */
#include "event.h"

#include <pthread.h>

static struct {
  long events; /* of one thread */
  int mixed;
  long pause_every;
  long pause_us;
  uint64_t half_kb;
} g;

static pthread_barrier_t g_start;

static uint64_t record(long events) {
  uint32_t random = 2463534242u;
  const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 0; i < events; ++i) {
    int value = 4096;
    if (g.mixed) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      value = (int)(random & 0xfffff);
    }
    one_event((int)i, value);
    if (g.pause_every != 0 && i % g.pause_every == g.pause_every - 1) {
      pause_us((unsigned long)g.pause_us);
    }
  }
  return clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
}

static void* thread_main(void* cpu_ns) {
  pthread_barrier_wait(&g_start);
  *(uint64_t*)cpu_ns = record(g.events);
  return NULL;
}

int main(int argc, char** argv) {
  const long threads = argument(argc, argv, 2, 1);
  g.events = argument(argc, argv, 1, 1000) / threads;
  g.mixed = (int)argument(argc, argv, 3, 0);
  g.pause_every = argument(argc, argv, 4, 0);
  g.pause_us = argument(argc, argv, 5, 0);

  DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
  const uint64_t cpu_before = process_cpu_ns();
  const uint64_t wall_before = clock_ns(CLOCK_MONOTONIC);
  uint64_t loop_cpu = 0;
  if (threads == 1) {
    loop_cpu = record(g.events / 2);
    g.half_kb = memory_kb("VmHWM:");
    loop_cpu += record(g.events - g.events / 2);
  } else {
    pthread_t* ids = calloc((size_t)threads, sizeof *ids);
    uint64_t* cpu = calloc((size_t)threads, sizeof *cpu);
    pthread_barrier_init(&g_start, NULL, (unsigned)threads);
    for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, thread_main, &cpu[i]);
    for (long i = 0; i < threads; ++i) {
      pthread_join(ids[i], NULL);
      loop_cpu += cpu[i];
    }
    free(ids);
    free(cpu);
  }
  const uint64_t wall_after = clock_ns(CLOCK_MONOTONIC);
  const int threads_at_end = thread_count();
  const uint64_t final_before = clock_ns(CLOCK_MONOTONIC);
  DFTRACER_C_FINI();
  const uint64_t final_after = clock_ns(CLOCK_MONOTONIC);
  printf("{\"events\":%ld,\"loop_cpu_ns\":%" PRIu64 ",\"loop_wall_ns\":%" PRIu64
         ",\"process_cpu_ns\":%" PRIu64 ",\"finalize_ns\":%" PRIu64 ",\"half_kb\":%" PRIu64
         ",\"peak_kb\":%" PRIu64 ",\"threads\":%d}\n",
         g.events * threads, loop_cpu, wall_after - wall_before, process_cpu_ns() - cpu_before,
         final_after - final_before, g.half_kb, memory_kb("VmHWM:"), threads_at_end);
  return 0;
}
