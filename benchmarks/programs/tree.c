/* tree make DIRECTORY FILES | tree walk DIRECTORY FILES
 * A tree of many names. `walk` opens and closes each of them, twice over: the first time every name
 * is new to a tracer, the second time every name is known. It prints what that cost above the same
 * calls straight to the kernel, a file, in the first and the last tenth of both walks, and the
 * greatest resident size. */
#include "io.h"

#include <sys/stat.h>

enum { kOfOneDirectory = 1000, kTenths = 10, kAtATime = 20 };

static void name_of(char* name, size_t size, const char* root, long index) {
  snprintf(name, size, "%s/part-%05ld/sample-%08ld.npz", root, index / kOfOneDirectory, index);
}

static int make(const char* root, long files) {
  char name[4096];
  if (mkdir(root, 0700) != 0) return 1;
  for (long i = 0; i < files; ++i) {
    name_of(name, sizeof name, root, i);
    if (i % kOfOneDirectory == 0) {
      char* slash = strrchr(name, '/');
      *slash = 0;
      if (mkdir(name, 0700) != 0) return 1;
      *slash = '/';
    }
    const int fd = open(name, O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || close(fd) != 0) return 1;
  }
  return 0;
}

static uint64_t some(void (*call)(File*), const char* root, long begin, long end) {
  static char name[4096];
  static File file = {.path = name};
  const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (long i = begin; i < end; ++i) {
    name_of(name, sizeof name, root, i);
    call(&file);
  }
  return clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
}

/* A few names at a time, and once untimed: the calls that are compared find the kernel's caches
 * equally warm. */
static double walk(const char* root, long files, double* above) {
  uint64_t sum = 0;
  for (int tenth = 0; tenth < kTenths; ++tenth) {
    const long begin = files * tenth / kTenths;
    const long end = files * (tenth + 1) / kTenths;
    uint64_t traced = 0;
    uint64_t raw = 0;
    for (long i = begin; i < end; i += kAtATime) {
      const long stop = i + kAtATime < end ? i + kAtATime : end;
      some(raw_open, root, i, stop);
      traced += some(one_open, root, i, stop);
      raw += some(raw_open, root, i, stop);
    }
    above[tenth] = ((double)traced - (double)raw) / (double)(end - begin);
    sum += traced;
  }
  return (double)sum / (double)files;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* root = argv[2];
  const long files = strtol(argv[3], NULL, 10);
  double first[kTenths];
  double again[kTenths];
  if (strcmp(argv[1], "make") == 0) return make(root, files);
  const double call_ns = walk(root, files, first);
  walk(root, files, again);
  printf(
      "{\"events\":%ld,\"call_ns\":%.1f,\"new_first_ns\":%.1f,\"new_last_ns\":%.1f,"
      "\"known_first_ns\":%.1f,\"known_last_ns\":%.1f,\"peak_kb\":%" PRIu64 "}\n",
      2 * files, call_ns, first[0], first[kTenths - 1], again[0], again[kTenths - 1],
      memory_kb("VmHWM:"));
  return 0;
}
