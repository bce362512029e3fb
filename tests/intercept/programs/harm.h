/* What the harm_ programs share. A program prints what each call gave, and the test compares the
   lines of a bare run with those of a traced one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line at once, so that a crash shows how far it came; errno is kept. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char* format, ...) {
  const int saved = errno;
  char line[8192];
  va_list args;
  va_start(args, format);
  const int wanted = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  size_t size = wanted < (int)sizeof line - 1 ? (size_t)wanted : sizeof line - 2;
  line[size++] = '\n';
  for (size_t done = 0; done < size;) {
    const ssize_t n = write(1, line + done, size - done);
    if (n <= 0) {
      break;
    }
    done += (size_t)n;
  }
  errno = saved;
}

/* The result of a call and errno after it, also of one that succeeded: it must not have changed. */
#define SHOW(call)                                    \
  do {                                                \
    errno = 77;                                       \
    const long shown_ = (long)(call);                 \
    const int error_ = errno;                         \
    say("%s = %ld, errno %d", #call, shown_, error_); \
  } while (0)

/* The same for a pointer, of which only counts whether there is one. */
#define SHOW_POINTER(call)                                                  \
  do {                                                                      \
    errno = 77;                                                             \
    const void* shown_ = (const void*)(call);                               \
    const int error_ = errno;                                               \
    say("%s = %s, errno %d", #call, shown_ ? "something" : "null", error_); \
  } while (0)

#define NEED(condition)                                                         \
  do {                                                                          \
    if (!(condition)) {                                                         \
      say("%s:%d: %s failed, errno %d", __FILE__, __LINE__, #condition, errno); \
      exit(99);                                                                 \
    }                                                                           \
  } while (0)

/* Marks: reads that say who made them (count) and which one it is (offset). */
__attribute__((unused)) static void marks(int fd, int who, int from, int to) {
  static char buffer[1 << 16]; /* shared by threads on purpose: nobody looks at it */
  for (int i = from; i < to; ++i) {
    if (pread(fd, buffer, (size_t)who, i) < 0) {
      say("mark %d %d: errno %d", who, i, errno);
    }
  }
}
