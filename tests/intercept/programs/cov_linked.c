/* Calls from a program that was linked in a certain way, before, during and after tracing:
 * main(before, during, after). Compiled for FUNCTION mode it also ends tracing itself. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "intercept.h"

static const struct Table {
  int (*open)(const char*, int, ...);
  ssize_t (*write)(int, const void*, size_t);
  int (*close)(int);
} kTable = {open, write, close};

static int work(const char* path) {
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

int main(int argc, char** argv) {
  if (argc != 4) return 9;
  int ret = work(argv[1]);
  START();
  ret += work(argv[2]);
#ifdef INIT
  DFTRACER_C_FINI();
#endif
  ret += work(argv[3]);
  return ret;
}
