/* Threads that come and go. threads TRACE HOW THREADS EVENTS
 *   waves     forty at a time, until THREADS have been
 *   alive     all at once; none ends before all have recorded
 *   cancel    threads that are cancelled while they wait; COUNTERS as the last argument
 *   cancel_now  the same, cancelled in the middle of their own computing
 *   keys      also in the destructors of thread-specific data, made before and after ours */
#include "faults.h"

#include <pthread.h>

static long events;
static uint64_t* counters;
static pthread_barrier_t barrier;
static pthread_key_t early;
static pthread_key_t late;
static const char* how;

static void in_destructor(void* value) {
  const long who = (long)value - 1; /* a null pointer would not be passed */
  record(100000 + who, 0, 0);
}
/* Asks to be called again as long as libc allows: four rounds. */
static __thread int rounds;
static void again_in_destructor(void* value) {
  const long who = (long)value - 1;
  record(200000 + who, rounds++, 0);
  if (rounds < 4) pthread_setspecific(late, value);
}

static void* plain(void* argument) {
  const long who = (long)argument;
  for (long i = 0; i < events; ++i) {
    record(who, i, 0);
    if (strcmp(how, "alive") == 0 && i == events / 2) pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void* with_keys(void* argument) {
  pthread_setspecific(early, (void*)((long)argument + 1));
  pthread_setspecific(late, (void*)((long)argument + 1));
  return plain(argument);
}

static void* endless(void* argument) {
  const long who = (long)argument;
  int old;
  const int now = strcmp(how, "cancel_now") == 0;
  for (long i = 0;; ++i) {
    record(who, i, 0);
    set_counter(&counters[who], (uint64_t)i + 1);
    if (i % 16 == 0 && strcmp(how, "cancel") == 0) usleep(10);
    if (now) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (volatile int p = 0; p < 5000; ++p) continue;
    if (now) pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 80;
  how = argv[2];
  const long count = atol(argv[3]);
  events = atol(argv[4]);
  pthread_key_create(&early, in_destructor);
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  pthread_key_create(&late, again_in_destructor);
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  const int endless_ones = strncmp(how, "cancel", 6) == 0;
  if (endless_ones) counters = shared_counters(argv[5], (size_t)count);
  const long at_once = strcmp(how, "waves") == 0 ? 40 : count;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  pthread_t* thread = calloc((size_t)count, sizeof *thread);
  for (long from = 0; from < count; from += at_once) {
    const long to = from + at_once < count ? from + at_once : count;
    for (long t = from; t < to; ++t) {
      void* (*body)(void*) = endless_ones ? endless : strcmp(how, "keys") == 0 ? with_keys : plain;
      if (pthread_create(&thread[t], &small, body, (void*)t) != 0) return 82;
    }
    for (long t = from; t < to; ++t) {
      if (endless_ones) {
        while (__atomic_load_n(&counters[t], __ATOMIC_ACQUIRE) < (uint64_t)(20 + 7 * t)) usleep(50);
        pthread_cancel(thread[t]);
      }
      pthread_join(thread[t], NULL);
    }
  }
  return 0;
}
