/* A library that is loaded while the program runs. work(path) makes nine calls on a file: as
 * compiled code does, through pointers in a table as sqlite and others have it, and with a stream.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const struct Table {
  int (*open)(const char*, int, ...);
  ssize_t (*write)(int, const void*, size_t);
  int (*close)(int);
} kTable = {open, write, close};

int work(const char* path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0 || write(fd, "direct\n", 7) != 7 || close(fd) != 0) return 1;
  const struct Table* table = &kTable;
  __asm__(""
          : "+r"(table)); /* or the compiler sees through it and calls the functions themselves */
  fd = table->open(path, O_WRONLY | O_APPEND);
  if (fd < 0 || table->write(fd, "table\n", 6) != 6 || table->close(fd) != 0) return 2;
  FILE* file = fopen(path, "a");
  if (file == NULL || fwrite("stream\n", 1, 7, file) != 7 || fclose(file) != 0) return 3;
  return 0;
}

/* Has its own way to the next `write`. */
int work_next(const char* path) {
  ssize_t (*next)(int, const void*, size_t);
  *(void**)&next = dlsym(RTLD_NEXT, "write");
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0 || next == NULL || next(fd, "next\n", 5) != 5 || close(fd) != 0) return 1;
  return 0;
}

/* Loads another one. */
int work_below(const char* library, const char* path) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  int (*below)(const char*);
  if (handle == NULL) return 1;
  *(void**)&below = dlsym(handle, "work");
  return below(path) + dlclose(handle);
}

#ifdef WRAPS
/* Stands before libc, as memory checkers and other tracers do. */
int wrapped;
ssize_t write(int fd, const void* data, size_t size) {
  static ssize_t (*next)(int, const void*, size_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "write");
  ++wrapped;
  return next(fd, data, size);
}
#endif
