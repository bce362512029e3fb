/* Another library that is preloaded and wraps calls, as tools of this kind do. It counts them and
   says at the end, on a file of its own, what it saw.

     -DEARLY: looks the next functions up in its constructor, and only there */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int (*next_open)(const char*, int, ...);
static ssize_t (*next_read)(int, void*, size_t);
static ssize_t (*next_pread)(int, void*, size_t, off_t);
static int (*next_close)(int);
static FILE* (*next_fopen)(const char*, const char*);
static int seen[5];

static void look_up(void) {
  next_open = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  next_read = (ssize_t (*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  next_pread = (ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  next_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
  next_fopen = (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen");
}

#ifdef EARLY
#define NEED_NEXT(name) ((void)0)
#else
#define NEED_NEXT(name) (name ? (void)0 : look_up())
#endif

__attribute__((constructor)) static void begin(void) {
#ifdef EARLY
  look_up();
#endif
  const int fd = open("/dev/null", O_RDONLY); /* it does I/O itself, through whoever is there */
  char byte;
  (void)!read(fd, &byte, 1);
  close(fd);
  for (int i = 0; i < 5; ++i) {
    seen[i] = 0;
  }
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("PEER_COUNTS");
  if (path) {
    char line[100];
    const int size = snprintf(line, sizeof line, "%d %d %d %d %d\n", seen[0], seen[1], seen[2],
                              seen[3], seen[4]);
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    (void)!syscall(SYS_write, fd, line, size);
    syscall(SYS_close, fd);
  }
}

int open(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = va_arg(args, mode_t);
  va_end(args);
  NEED_NEXT(next_open);
  __atomic_add_fetch(&seen[0], 1, __ATOMIC_RELAXED);
  return next_open(path, flags, mode);
}

ssize_t read(int fd, void* buffer, size_t size) {
  NEED_NEXT(next_read);
  __atomic_add_fetch(&seen[1], 1, __ATOMIC_RELAXED);
  return next_read(fd, buffer, size);
}

ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  NEED_NEXT(next_pread);
  __atomic_add_fetch(&seen[2], 1, __ATOMIC_RELAXED);
  return next_pread(fd, buffer, size, offset);
}

int close(int fd) {
  NEED_NEXT(next_close);
  __atomic_add_fetch(&seen[3], 1, __ATOMIC_RELAXED);
  return next_close(fd);
}

FILE* fopen(const char* path, const char* mode) {
  NEED_NEXT(next_fopen);
  __atomic_add_fetch(&seen[4], 1, __ATOMIC_RELAXED);
  return next_fopen(path, mode);
}
