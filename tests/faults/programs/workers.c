/* Threads that record, and a main thread that ends the process in one way or another.
 * workers TRACE COUNTERS THREADS BYTES EVENTS PAUSE ENDING
 * COUNTERS[t] is how many events thread t is known to have recorded. EVENTS 0: without end. */
#include "faults.h"

#include <pthread.h>

static uint64_t* counters;
static size_t bytes;
static long events;
static long pause_loops;
static int exit_from_thread;

static void* worker(void* argument) {
  const long who = (long)argument;
  for (long i = 0; events == 0 || i < events; ++i) {
    record(who, i, bytes);
    set_counter(&counters[who], (uint64_t)i + 1);
    for (volatile long p = 0; p < pause_loops; ++p) continue;
  }
  if (exit_from_thread && who == 0) exit(7);
  while (exit_from_thread) pause();
  return NULL;
}

static void wait_for_each(long threads, uint64_t least) {
  for (long t = 0; t < threads; ++t) {
    while (__atomic_load_n(&counters[t], __ATOMIC_ACQUIRE) < least) usleep(100);
  }
}

int main(int argc, char** argv) {
  if (argc != 8) return 80;
  const long threads = atol(argv[3]);
  bytes = (size_t)atol(argv[4]);
  events = atol(argv[5]);
  pause_loops = atol(argv[6]);
  const char* ending = argv[7];
  counters = shared_counters(argv[2], (size_t)threads);
  exit_from_thread = strcmp(ending, "exit_from_thread") == 0;
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  pthread_t thread[256];
  for (long t = 0; t < threads; ++t) {
    if (pthread_create(&thread[t], NULL, worker, (void*)t) != 0) return 82;
  }
  if (strcmp(ending, "join") == 0) {
    for (long t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
    return 0;
  }
  if (strcmp(ending, "main_ends") == 0) pthread_exit(NULL);
  if (exit_from_thread || strcmp(ending, "forever") == 0) {
    print("ready");
    for (;;) pause();
  }
  wait_for_each(threads, 50);
  if (strcmp(ending, "exit") == 0) exit(3);
  if (strcmp(ending, "return") == 0) return 3;
  if (strcmp(ending, "quick_exit") == 0) quick_exit(3);
  if (strcmp(ending, "_exit") == 0) _exit(3);
  if (strcmp(ending, "abort") == 0) abort();
  if (strcmp(ending, "finalize") == 0) {
    dftracer_finalize();
    _exit(3);
  }
  if (strcmp(ending, "exec") == 0) {
    execl("/bin/sh", "sh", "-c", "exit 3", (char*)NULL);
    return 83;
  }
  return 84;
}
