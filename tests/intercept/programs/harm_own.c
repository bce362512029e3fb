/* A program whose own functions have the names of calls: they are its own, also for the libraries
   that are bound to it, and everything else works. Made with -rdynamic as well. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int opened, reads, closed;

int open(const char* path, int flags, ...) {
  ++opened;
  return (int)syscall(SYS_openat, -100, path, flags, 0644);
}

ssize_t read(int fd, void* buffer, size_t size) {
  ++reads;
  return syscall(SYS_read, fd, buffer, size);
}

int close(int fd) {
  ++closed;
  return (int)syscall(SYS_close, fd);
}

/* Not what libc's does at all. */
int rename(const char* from, const char* to) { return (int)(strlen(from) * 100 + strlen(to)); }

int main(void) {
  char bytes[10] = "";
  const int fd = open("data", 0);
  const ssize_t got = read(fd, bytes, sizeof bytes);
  close(fd);
  printf("%d %zd %d %d %d %d\n", fd, got, opened, reads, closed, rename("abc", "de"));
  FILE* file = fopen("data", "r");
  printf("%zu", fread(bytes, 1, 10, file));
  printf(" %d\n", bytes[3]);
  fclose(file);
  if (access("data", R_OK) != 0 || pread(0, bytes, 0, 0) > 0) {
    return 1;
  }
  printf("%d %d %d\n", opened, reads, closed);
  return 0;
}
