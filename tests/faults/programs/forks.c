/* Forks while threads record. forks TRACE COUNTERS THREADS FORKS HOW
 * Each child records three events as 1000 + its number, and leaves by _exit or exit, in turns.
 * HOW: fork, or clone (without fork handlers). */
#include "faults.h"

#include <pthread.h>
#include <signal.h>

static uint64_t* counters;
static volatile int stop;

static void* worker(void* argument) {
  const long who = (long)argument;
  for (long i = 0; !stop; ++i) {
    record(who, i, 0);
    set_counter(&counters[who], (uint64_t)i + 1);
    if (i % 25 == 0) usleep(4000); /* full speed in between */
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 6) return 80;
  const long threads = atol(argv[3]);
  const long forks = atol(argv[4]);
  const int raw = strcmp(argv[5], "clone") == 0;
  counters = shared_counters(argv[2], (size_t)threads);
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  pthread_t thread[64];
  for (long t = 0; t < threads; ++t) {
    if (pthread_create(&thread[t], NULL, worker, (void*)t) != 0) return 82;
  }
  int bad = 0;
  long running = 0;
  for (long n = 0; n < forks; ++n) {
    const pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child < 0) return 83;
    if (child == 0) {
      for (long i = 0; i < 3; ++i) record(1000 + n, i, 0);
      /* After a raw clone libc's own locks may be taken for ever: then only _exit is safe. */
      if (n % 2 == 0 || raw) _exit(0);
      exit(0);
    }
    int status = 0;
    if (++running >= 4) {
      if (wait(&status) < 0 || status != 0) ++bad;
      --running;
    }
  }
  int status = 0;
  while (wait(&status) > 0) bad += status != 0;
  stop = 1;
  for (long t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
  print("bad %d", bad);
  dftracer_finalize();
  return bad != 0;
}
