/* call_loop CALLS KIND PAUSE_EVERY PAUSE_US FILE [FILE ...]
 * Makes CALLS calls as fast as it can, on one thread for each FILE, and says what one cost: CPU and
 * wall time of the calling threads. Pauses, which are part of the wall time, let a writer thread
 * keep up where instructions are counted. */
#include "io.h"

#include <pthread.h>

static struct {
  void (*call)(File*);
  long calls; /* of one thread */
  long pause_every;
  unsigned long pause;
  pthread_barrier_t start;
} g;

typedef struct {
  pthread_t id;
  const char* path;
  uint64_t cpu_ns;
  uint64_t wall_ns;
} Thread;

static void* thread_main(void* argument_of_thread) {
  Thread* thread = argument_of_thread;
  File* file = open_file(thread->path);
  pthread_barrier_wait(&g.start);
  const uint64_t wall = clock_ns(CLOCK_MONOTONIC);
  const uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 1; i <= g.calls; ++i) {
    g.call(file);
    if (g.pause_every != 0 && i % g.pause_every == 0) pause_us(g.pause);
  }
  thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
  thread->wall_ns = clock_ns(CLOCK_MONOTONIC) - wall;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const long threads = argc - 5;
  g.call = kind_of(argv[2])->call;
  g.calls = argument(argc, argv, 1, 1) / threads;
  g.pause_every = argument(argc, argv, 3, 0);
  g.pause = (unsigned long)argument(argc, argv, 4, 0);
  pthread_barrier_init(&g.start, NULL, (unsigned)threads);
  Thread* list = calloc((size_t)threads, sizeof *list);
  for (long i = 0; i < threads; ++i) {
    list[i].path = argv[5 + i];
    if (i > 0) pthread_create(&list[i].id, NULL, thread_main, &list[i]);
  }
  thread_main(&list[0]);
  uint64_t cpu = list[0].cpu_ns;
  uint64_t wall = list[0].wall_ns;
  for (long i = 1; i < threads; ++i) {
    pthread_join(list[i].id, NULL);
    cpu += list[i].cpu_ns;
    wall += list[i].wall_ns;
  }
  const double calls = (double)(g.calls * threads);
  printf("{\"events\":%ld,\"cpu_ns\":%.2f,\"wall_ns\":%.2f}\n", g.calls * threads,
         (double)cpu / calls, (double)wall / calls);
  return 0;
}
