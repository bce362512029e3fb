/* COUNT spans, nested at random, with a little work of random length between begins and ends.
 * With "cross" as second argument ends come in random order, so that spans cross each other. */
#include <dftracer/dftracer.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 24

static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

/* From nothing to a few microseconds, nothing being the most frequent. */
static void work(void) {
  const uint64_t turns = next() % 4 == 0 ? next() % 1500 : 0;
  for (volatile uint64_t i = 0; i < turns; ++i) {
  }
}

int main(int argc, char** argv) {
  static const char* const names[] = {"alpha", "beta", "gamma", "delta"};
  dftracer_region regions[DEEPEST]; /* a region stays where it is, so pointers move */
  dftracer_region* open[DEEPEST];
  long left = argc > 1 ? atol(argv[1]) : 1000;
  const int cross = argc > 2 && strcmp(argv[2], "cross") == 0;
  int depth = 0;
  for (int i = 0; i < DEEPEST; ++i) open[i] = &regions[i];
  if (dftracer_initialize("t.pfw", NULL, NULL) != 0) return 1;
  while (left > 0 || depth > 0) {
    work();
    if (left > 0 && depth < DEEPEST && (depth == 0 || next() % 2 == 0)) {
      dftracer_region_begin(open[depth], NULL, names[next() % 4], "app");
      dftracer_region_int(open[depth++], NULL, "left", left--);
    } else {
      const int which = cross ? (int)(next() % (uint64_t)depth) : depth - 1;
      dftracer_region* ended = open[which];
      dftracer_region_end(ended);
      --depth;
      memmove(&open[which], &open[which + 1], sizeof open[0] * (size_t)(depth - which));
      open[depth] = ended;
    }
  }
  dftracer_finalize();
  return 0;
}
