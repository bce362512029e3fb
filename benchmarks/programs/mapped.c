/* mapped FILE MIB ROUNDS: maps a file of that size, which is in memory, and touches each of its 4 KiB pages, as many
 * times. Prints the CPU time of the thread per page for every round, in nanoseconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int count, char** words) {
  if (count < 4) return 2;
  const size_t size = (size_t)atol(words[2]) << 20;
  const size_t page = 4096;
  const int fd = open(words[1], O_RDONLY);
  for (int round = 0; round < atoi(words[3]); ++round) {
    const char* at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return 1;
    volatile long sum = 0;
    const double before = cpu_ns();
    for (size_t i = 0; i < size; i += page) sum += at[i];
    printf("%.3f\n", (cpu_ns() - before) / (double)(size / page));
    munmap((void*)at, size);
  }
  close(fd);
  return 0;
}
