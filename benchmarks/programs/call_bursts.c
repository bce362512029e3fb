/* call_bursts KIND BURSTS CALLS PAUSE_US FILE
 * What a tracer adds to a call on the calling thread. A burst is CALLS calls through libc and as
 * many straight to the kernel, in turn and a few hundred at a time, so that a busy moment of the
 * machine hits both; before each burst a pause, in which a writer thread can catch up. Prints the
 * medians of both and of their difference, in ns of the thread's CPU time. */
#include "io.h"

enum { kParts = 8 };

static double part(void (*call)(File*), File* file, long calls) {
  const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 0; i < calls; ++i) call(file);
  return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / (double)calls;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const Kind* kind = kind_of(argv[1]);
  const size_t parts = (size_t)argument(argc, argv, 2, 1) * kParts;
  const long calls = argument(argc, argv, 3, kParts) / kParts;
  const unsigned long pause = (unsigned long)argument(argc, argv, 4, 0);
  File* file = open_file(argv[5]);
  double* call_ns = calloc(parts * 3, sizeof *call_ns);
  double* raw_ns = call_ns + parts;
  double* added_ns = raw_ns + parts;
  for (size_t i = 0; i < parts; ++i) {
    if (i % kParts == 0) {
      pause_us(pause);
      part(kind->raw, file, calls); /* awake again, and the file in the caches */
    }
    if (i % 2 == 0) call_ns[i] = part(kind->call, file, calls);
    raw_ns[i] = part(kind->raw, file, calls);
    if (i % 2 == 1) call_ns[i] = part(kind->call, file, calls);
    added_ns[i] = call_ns[i] - raw_ns[i];
  }
  printf("{\"events\":%ld,\"call_ns\":%.2f,\"raw_ns\":%.2f,\"added_ns\":%.2f}\n",
         (long)parts * calls, median(call_ns, parts), median(raw_ns, parts),
         median(added_ns, parts));
  return 0;
}
