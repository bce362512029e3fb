/* burst BURSTS EVENTS [THREADS [PAUSE_US]]
 * Time on the calling thread where the writer is not in the way: bursts that the buffers take up,
 * and a pause after each. In turn with them the yardstick, two clock readings and a copy of 64
 * bytes. With several threads all begin a burst at the same moment, and EVENTS are those of one
 * thread. */
#include "event.h"

#include <pthread.h>

enum { kRing = 64 * 1024 };

static struct {
  long bursts;
  long events;
  unsigned long pause;
  pthread_barrier_t start;
} g;

typedef struct {
  pthread_t id;
  double* event_ns;
  double* yardstick_ns;
  double* clock_ns;
  unsigned char* ring;
} Thread;

static void yardstick(unsigned char* ring, long count) {
  unsigned char record[64];
  memset(record, 1, sizeof record);
  size_t at = 0;
  for (long i = 0; i < count; ++i) {
    struct timespec begin;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    __asm__ volatile("" : : : "memory");
    clock_gettime(CLOCK_MONOTONIC, &end);
    memcpy(record, &begin, sizeof begin);
    memcpy(record + sizeof begin, &end, sizeof end);
    memcpy(ring + at, record, sizeof record);
    __asm__ volatile("" : : : "memory");
    at = (at + sizeof record) % kRing;
  }
}

static void clock_alone(long count) {
  for (long i = 0; i < count; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    __asm__ volatile("" : : "r"(&now) : "memory");
  }
}

static double each(uint64_t before, long count) {
  return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / (double)count;
}

static void* thread_main(void* argument_of_thread) {
  Thread* thread = argument_of_thread;
  for (long burst = 0; burst < g.bursts; ++burst) {
    pthread_barrier_wait(&g.start);
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < g.events; ++i) one_event((int)i, 4096);
    thread->event_ns[burst] = each(before, g.events);
    pause_us(g.pause);
    before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    yardstick(thread->ring, g.events);
    thread->yardstick_ns[burst] = each(before, g.events);
    before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    clock_alone(g.events);
    thread->clock_ns[burst] = each(before, g.events);
  }
  return NULL;
}

int main(int argc, char** argv) {
  g.bursts = argument(argc, argv, 1, 50);
  g.events = argument(argc, argv, 2, 4000);
  const size_t threads = (size_t)argument(argc, argv, 3, 1);
  g.pause = (unsigned long)argument(argc, argv, 4, 3000);
  const size_t bursts = (size_t)g.bursts;

  DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
  pthread_barrier_init(&g.start, NULL, (unsigned)threads);
  Thread* list = calloc(threads, sizeof *list);
  double* figures = calloc(threads * bursts * 3, sizeof *figures);
  double* yardsticks = figures + threads * bursts;
  double* clocks = yardsticks + threads * bursts;
  for (size_t i = 0; i < threads; ++i) {
    list[i].event_ns = figures + i * bursts;
    list[i].yardstick_ns = yardsticks + i * bursts;
    list[i].clock_ns = clocks + i * bursts;
    list[i].ring = calloc(1, kRing);
    if (i > 0) pthread_create(&list[i].id, NULL, thread_main, &list[i]);
  }
  thread_main(&list[0]);
  for (size_t i = 1; i < threads; ++i) pthread_join(list[i].id, NULL);
  const int threads_at_end = thread_count();
  DFTRACER_C_FINI();
  printf("{\"event_ns\":%.2f,\"yardstick_ns\":%.2f,\"clock_ns\":%.2f,\"threads\":%d}\n",
         median(figures, threads * bursts), median(yardsticks, threads * bursts),
         median(clocks, threads * bursts), threads_at_end);
  return 0;
}
