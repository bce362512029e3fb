/* What a user of LTTng-UST has to write to see file I/O: its own libraries wrap allocation, threads
 * and dlopen, but no read. Built as a shared library, preloaded into the measured programs. */
#define _GNU_SOURCE
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "provider.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

enum { kDescriptors = 65536 };

static uint64_t g_files[kDescriptors];

static int (*g_open)(const char*, int, ...);
static int (*g_close)(int);
static ssize_t (*g_read)(int, void*, size_t);
static ssize_t (*g_pread)(int, void*, size_t, off_t);

static void find_all(void) {
  g_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
  g_read = (ssize_t (*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  g_pread = (ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  g_open = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
}

static uint64_t hash_of(const char* path) {
  uint64_t hash = 14695981039346656037u;
  for (; *path != 0; ++path) hash = (hash ^ (unsigned char)*path) * 1099511628211u;
  return hash;
}

static uint64_t* file_of(int fd) { return &g_files[fd >= 0 && fd < kDescriptors ? fd : 0]; }

static int open_file(const char* path, int flags, mode_t mode) {
  if (g_open == NULL) find_all();
  const uint64_t file = hash_of(path);
  tracepoint(bench_io, open_entry, path, flags, file);
  const int fd = g_open(path, flags, mode);
  if (fd >= 0) *file_of(fd) = file;
  tracepoint(bench_io, open_exit, fd);
  return fd;
}

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(path, flags | O_LARGEFILE, mode);
}

int close(int fd) {
  if (g_close == NULL) find_all();
  tracepoint(bench_io, close_entry, fd, *file_of(fd));
  const int ret = g_close(fd);
  tracepoint(bench_io, close_exit, ret);
  return ret;
}

ssize_t read(int fd, void* buffer, size_t count) {
  if (g_read == NULL) find_all();
  tracepoint(bench_io, transfer_entry, fd, count, *file_of(fd));
  const ssize_t ret = g_read(fd, buffer, count);
  tracepoint(bench_io, transfer_exit, ret);
  return ret;
}

static ssize_t pread_at(int fd, void* buffer, size_t count, off_t offset) {
  if (g_pread == NULL) find_all();
  tracepoint(bench_io, transfer_entry, fd, count, *file_of(fd));
  const ssize_t ret = g_pread(fd, buffer, count, offset);
  tracepoint(bench_io, transfer_exit, ret);
  return ret;
}

ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
  return pread_at(fd, buffer, count, offset);
}

ssize_t pread64(int fd, void* buffer, size_t count, off64_t offset) {
  return pread_at(fd, buffer, count, offset);
}
