/* What a program does and what its trace must say about it, side by side: every step goes through
 * one of these macros, which notes the call's name, its file, and its arguments as printf shows
 * them, and adds the result. finish() writes the notes to the file `expected`; nothing is written
 * before, so that the program's calls are only those of its steps. */
#ifndef COV_H
#define COV_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "intercept.h"

/* The path is looked at after the call and may speak of its result, ret_. */

/* Calls that return a number: `ret`, and `errno` when it is -1. */
#define POSIX(name, path, call, ...) NUMBER_("POSIX", 1, name, path, call, __VA_ARGS__)
#define STDIO(name, path, call, ...) NUMBER_("STDIO", 1, name, path, call, __VA_ARGS__)
/* ... whose -1 only says that nothing is left. */
#define STDIO_EOF(name, path, call, ...) NUMBER_("STDIO", 0, name, path, call, __VA_ARGS__)
/* ... which return the error itself and leave errno alone. */
#define POSIX_ERROR(name, path, call, ...)              \
  ({                                                    \
    long ret_ = (long)(call);                           \
    note("POSIX", name, path, 1, ret_, 0, __VA_ARGS__); \
    ret_;                                               \
  })
/* Calls that return a pointer: `errno` when it is NULL. */
#define POSIX_POINTER(name, path, call, ...) POINTER_("POSIX", name, path, call, __VA_ARGS__)
#define STDIO_POINTER(name, path, call, ...) POINTER_("STDIO", name, path, call, __VA_ARGS__)
#define POSIX_VOID(name, path, call, ...)            \
  ({                                                 \
    call;                                            \
    note("POSIX", name, path, 0, 0, 0, __VA_ARGS__); \
  })
#define STDIO_VOID(name, path, call, ...)            \
  ({                                                 \
    call;                                            \
    note("STDIO", name, path, 0, 0, 0, __VA_ARGS__); \
  })

#define NUMBER_(cat, fails, name, path, call, ...)                                             \
  ({                                                                                           \
    errno = STALE;                                                                             \
    __typeof__(call) ret_ = (call);                                                            \
    int error_ = errno;                                                                        \
    note(cat, name, path, 1, (long)ret_, fails && (long)ret_ == -1 ? error_ : 0, __VA_ARGS__); \
    errno = error_;                                                                            \
    ret_;                                                                                      \
  })
#define POINTER_(cat, name, path, call, ...)                                           \
  ({                                                                                   \
    errno = STALE;                                                                     \
    __typeof__(call) ret_ = (call);                                                    \
    int error_ = errno;                                                                \
    int failed_ = (void*)ret_ == NULL || (void*)ret_ == MAP_FAILED;                    \
    note(cat, name, path, 0, 0, failed_ && error_ != STALE ? error_ : 0, __VA_ARGS__); \
    errno = error_;                                                                    \
    ret_;                                                                              \
  })

/* An errno that no call sets: what is left from before must not be taken for a failure. */
#define STALE 3999

/* The name that a function has in this program: with 64 where offsets are said to have 64 bits. */
#if defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define N(name) name "64"
#else
#define N(name) name
#endif

static char notes[1 << 20];
static size_t noted;
static char base[4096];

__attribute__((format(printf, 1, 2), unused)) static void add(const char* format, ...) {
  va_list list;
  va_start(list, format);
  noted += (size_t)vsnprintf(notes + noted, sizeof notes - noted, format, list);
  va_end(list);
  if (noted >= sizeof notes) abort();
}

/* A file of the program's directory, absolute. Good for the next 63 calls. */
__attribute__((unused)) static const char* P(const char* name) {
  static char ring[64][8192];
  static unsigned next;
  char* place = ring[next++ % 64];
  if ((size_t)snprintf(place, sizeof ring[0], "%s/%s", base, name) >= sizeof ring[0]) abort();
  return place;
}

/* A system call that nothing which looks at libraries can see. */
__attribute__((unused)) static long unseen(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  long ret;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return ret;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
#error "how is a system call made on this machine?"
#endif
}

/* What /proc says about a descriptor. */
__attribute__((unused)) static const char* FD(int fd) {
  static char ring[16][4096];
  static unsigned next;
  char link[64];
  char* place = ring[next++ % 16];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long size = unseen(SYS_readlinkat, AT_FDCWD, (long)link, (long)place, sizeof ring[0] - 1 - 4);
  place[size < 0 ? 0 : size] = 0;
  /* The programs have no sockets but pairs. */
  if (strncmp(place, "socket:", 7) == 0) {
    memmove(place + 10, place + 6, (size_t)size - 5);
    memcpy(place, "socketpair", 10);
  }
  return place;
}

__attribute__((format(printf, 7, 8), unused)) static void note(const char* cat, const char* name,
                                                               const char* path, int has_ret,
                                                               long ret, int error,
                                                               const char* format, ...) {
  va_list list;
  add("%s\t%s\t", cat, name);
  if (path == NULL || *path == 0) add("-");
  for (; path != NULL && *path != 0; ++path) add("%02x", (unsigned char)*path);
  add("\t");
  va_start(list, format);
  noted += (size_t)vsnprintf(notes + noted, sizeof notes - noted, format, list);
  va_end(list);
  if (has_ret) add(" ret=%ld", ret);
  if (error != 0) add(" errno=%d", error);
  add("\n");
}

/* main(directory, ...): the program runs in that directory and names its files by it. */
#define BEGIN(argv)                               \
  do {                                            \
    START();                                      \
    snprintf(base, sizeof base, "%s", (argv)[1]); \
  } while (0)

__attribute__((unused)) static int finish(void) {
  int fd = open("expected", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, notes, noted) != (ssize_t)noted || close(fd) != 0) abort();
  return 0;
}

/* A step that is right only with this result: says where it was not. */
#define MUST(condition)                                                               \
  do {                                                                                \
    if (!(condition)) {                                                               \
      dprintf(2, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)
#endif
