/* A program that knows which descriptor numbers it will get, while other threads record.
 * descriptors TRACE COUNTERS THREADS BYTES ROUNDS: prints how often a number was not the expected
 * one. */
#include "faults.h"

#include <pthread.h>

static uint64_t* counters;
static size_t bytes;
static volatile int stop;

static void* worker(void* argument) {
  const long who = (long)argument;
  for (long i = 0; !stop; ++i) {
    record(who, i, bytes);
    set_counter(&counters[who], (uint64_t)i + 1);
    for (volatile int p = 0; p < 3000; ++p) continue;
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 6) return 80;
  const long threads = atol(argv[3]);
  bytes = (size_t)atol(argv[4]);
  const long rounds = atol(argv[5]);
  counters = shared_counters(argv[2], (size_t)threads + 1);
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  pthread_t thread[16];
  for (long t = 0; t < threads; ++t) {
    if (pthread_create(&thread[t], NULL, worker, (void*)t) != 0) return 82;
  }
  int wrong = 0;
  int vanished = 0;
  for (long round = 0; round < rounds; ++round) {
    record(threads, round, bytes);
    set_counter(&counters[threads], (uint64_t)round + 1);
    close(0);
    const int zero = open("/dev/null", O_RDONLY);
    const int three = open("/dev/null", O_RDONLY);
    wrong += zero != 0;
    wrong += three != 3;
    vanished += fcntl(zero, F_GETFD) < 0;
    vanished += fcntl(three, F_GETFD) < 0;
    if (three > 0) close(three);
    if (round % 10 == 0) syscall(SYS_close_range, 3, ~0u, 0);
    if (zero != 0) dup2(zero, 0);
  }
  stop = 1;
  for (long t = 0; t < threads; ++t) pthread_join(thread[t], NULL);
  print("%d %d", wrong, vanished);
  return 0;
}
