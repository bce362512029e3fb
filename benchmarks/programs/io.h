/* The calls that the interception is measured with: a read of 4 KiB, and an open with its close.
 * Each exists twice, through libc and straight to the kernel. No tracer sees the second form, so it
 * says in the same process, at the same time, what the call costs by itself. */
#ifndef BENCH_IO_H
#define BENCH_IO_H

#include "tools.h"

#include <fcntl.h>
#include <sys/syscall.h>

enum { kBlock = 4096 };

typedef struct {
  const char* path;
  long blocks; /* of the file */
  long at;     /* the next one to read */
  int fd;
  char buffer[kBlock];
} File;

/* Not syscall(): that is a function of libc, which a tracer may wrap. */
static inline long raw(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
  return syscall(number, a, b, c, d);
#endif
}

static void fail(const char* what, const char* path) {
  fprintf(stderr, "%s %s failed\n", what, path);
  _exit(1);
}

/* At the end of the file back to its beginning, unseen by tracers. */
static inline void next_block(File* file) {
  if (file->at == file->blocks) {
    raw(SYS_lseek, file->fd, 0, SEEK_SET, 0);
    file->at = 0;
  }
  ++file->at;
}

static __attribute__((noinline)) void one_read(File* file) {
  next_block(file);
  if (read(file->fd, file->buffer, kBlock) != kBlock) fail("read", file->path);
}

static __attribute__((noinline)) void raw_read(File* file) {
  next_block(file);
  if (raw(SYS_read, file->fd, (long)file->buffer, kBlock, 0) != kBlock) fail("read", file->path);
}

static __attribute__((noinline)) void one_open(File* file) {
  const int fd = open(file->path, O_RDONLY);
  if (fd < 0 || close(fd) != 0) fail("open", file->path);
}

static __attribute__((noinline)) void raw_open(File* file) {
  const long fd = raw(SYS_openat, AT_FDCWD, (long)file->path, O_RDONLY, 0);
  if (fd < 0 || raw(SYS_close, fd, 0, 0, 0) != 0) fail("open", file->path);
}

typedef struct {
  const char* name;
  void (*call)(File*);
  void (*raw)(File*);
} Kind;

static inline const Kind* kind_of(const char* name) {
  static const Kind kinds[] = {{"read", one_read, raw_read}, {"open", one_open, raw_open}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  fail("kind", name);
  return NULL;
}

static inline File* open_file(const char* path) {
  File* file = calloc(1, sizeof *file);
  file->path = path;
  file->fd = open(path, O_RDONLY);
  if (file->fd < 0) fail("open", path);
  file->blocks = (long)(lseek(file->fd, 0, SEEK_END) / kBlock);
  lseek(file->fd, 0, SEEK_SET);
  for (long i = 0; i < file->blocks; ++i) raw_read(file);
  return file;
}

#endif /* BENCH_IO_H */
