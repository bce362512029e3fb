/* Eight threads, each with its own file and its own number of reads; a ninth descriptor is used by
 * all. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "intercept.h"

#define THREADS 8

static int shared;

static void* work(void* number) {
  char name[16];
  char data[64] = {0};
  long n = (long)number;
  snprintf(name, sizeof name, "own%ld", n);
  int fd = open(name, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || write(fd, data, sizeof data) != sizeof data) return (void*)-1L;
  for (long i = 0; i < 100 * (n + 1); ++i) {
    if (pread(fd, data, (size_t)(n + 1), i % 32) != n + 1) return (void*)-1L;
    if (pread(shared, data, 32, n) != 32) return (void*)-1L;
  }
  return close(fd) == 0 ? NULL : (void*)-1L;
}

int main(void) {
  pthread_t threads[THREADS];
  char data[64] = {0};
  START();
  shared = open("shared", O_RDWR | O_CREAT, 0600);
  if (shared < 0 || write(shared, data, sizeof data) != sizeof data) return 1;
  for (long i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) return 1;
  }
  int ret = 0;
  for (int i = 0; i < THREADS; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    if (result != NULL) ret = 1;
  }
  return ret;
}
