/* What every measured program shares: clocks, memory, arguments, medians. */
#ifndef BENCH_TOOLS_H
#define BENCH_TOOLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t process_cpu_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
         (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

/* A line of /proc/self/status in KiB, for instance "VmHWM:". */
static inline uint64_t memory_kb(const char* key) {
  char line[256];
  uint64_t kb = 0;
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, key, strlen(key)) == 0) kb = strtoull(line + strlen(key), NULL, 10);
  }
  fclose(file);
  return kb;
}

static inline int thread_count(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0;
  for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    count += entry->d_name[0] != '.';
  }
  closedir(tasks);
  return count;
}

static inline void pause_us(unsigned long us) {
  const struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
  nanosleep(&t, NULL);
}

static inline long argument(int argc, char** argv, int index, long fallback) {
  return index < argc ? strtol(argv[index], NULL, 10) : fallback;
}

static inline int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline double median(double* values, size_t count) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, compare_doubles);
  return values[count / 2];
}

#endif /* BENCH_TOOLS_H */
