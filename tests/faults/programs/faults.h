/* What the programs of the fault tests share: events that can be told apart, and a memory of how
 * many were recorded that outlives the process. */
#ifndef FAULTS_H
#define FAULTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dftracer/dftracer.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char filler[4096];

__attribute__((constructor)) static void fill(void) {
  static const char text[] =
      "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt "
      "ut labore";
  for (size_t i = 0; i < sizeof filler; ++i) filler[i] = text[i % (sizeof text - 1)];
}

/* Event number `number` of `who`, with `bytes` of text to make it as long as is wanted. */
__attribute__((unused)) static void record(long who, long number, size_t bytes) {
  static dftracer_site site, who_key, number_key, text_key;
  dftracer_region region;
  dftracer_region_begin(&region, &site, "e", "FAULTS");
  dftracer_region_int(&region, &who_key, "w", who);
  dftracer_region_int(&region, &number_key, "i", number);
  if (bytes > 0) {
    dftracer_region_bytes(&region, &text_key, "s", filler,
                          bytes < sizeof filler ? bytes : sizeof filler);
  }
  dftracer_region_end(&region);
}

/* Numbers in a file that everybody sees, also after the process was killed. */
__attribute__((unused)) static uint64_t* shared_counters(const char* path, size_t count) {
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || ftruncate(fd, (off_t)(count * sizeof(uint64_t))) != 0) exit(90);
  void* got = mmap(NULL, count * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (got == MAP_FAILED) exit(91);
  close(fd);
  return (uint64_t*)got;
}

__attribute__((unused)) static void set_counter(uint64_t* counter, uint64_t value) {
  __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

/* A line on standard output, unbuffered: a process that dies has said what it said. */
__attribute__((unused, format(printf, 1, 2))) static void print(const char* format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  line[n] = '\n';
  if (write(1, line, (size_t)n + 1) < 0) _exit(92);
}

#endif
