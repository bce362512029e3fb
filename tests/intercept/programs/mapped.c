/* mapped FILE HOW: touches pages of a mapped file and prints, as "key value", what getrusage counted meanwhile.
 * HOW: all (every page), some (every 16th MiB), threads (4 threads, a quarter each), child (a forked child),
 *      write (stores into a shared mapping), hole (unmaps the middle), exec (execs true while mapped), close (closes
 *      every descriptor first), late (a thread touches after the mapping thread has ended), killed (by itself). */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept.h"

static char* g_at;
static size_t g_size;
enum { kPage = 4096, kThreads = 4, kMany = 16 << 20 };

static long touch(size_t from, size_t to, size_t step) {
  volatile long sum = 0;
  for (size_t at = from; at < to; at += step) sum += g_at[at];
  return sum;
}

static void* quarter(void* number) {
  const size_t which = (size_t)number;
  touch(which * (g_size / kThreads), (which + 1) * (g_size / kThreads), kPage);
  return NULL;
}

static void* after_main(void* unused) {
  (void)unused;
  usleep(50000);
  touch(0, g_size, kPage);
  return NULL;
}

static long faults(void) {
  struct rusage now;
  getrusage(RUSAGE_SELF, &now);
  return now.ru_minflt + now.ru_majflt;
}

static long faults_of_thread(void) {
  struct rusage now;
  getrusage(RUSAGE_THREAD, &now);
  return now.ru_minflt + now.ru_majflt;
}

int main(int count, char** words) {
  START();
  if (count < 3) return 2;
  const char* how = words[2];
  const int writes = strcmp(how, "write") == 0;
  const int fd = open(words[1], writes ? O_RDWR : O_RDONLY);
  g_size = (size_t)lseek(fd, 0, SEEK_END);
  g_at = mmap(NULL, g_size, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (g_at == MAP_FAILED) return 1;
  close(fd);
  const long before = faults_of_thread();
  if (strcmp(how, "all") == 0 || strcmp(how, "exec") == 0 || strcmp(how, "killed") == 0) {
    touch(0, g_size, kPage);
  } else if (strcmp(how, "close") == 0) {
    for (int i = 3; i < 1024; ++i) close(i);
    touch(0, g_size, kPage);
  } else if (strcmp(how, "some") == 0) {
    touch(0, g_size, kMany);
  } else if (writes) {
    for (size_t at = 0; at < g_size / 2; at += kPage) g_at[at] = 'x';
  } else if (strcmp(how, "hole") == 0) {
    touch(0, g_size / 2, kPage);
    munmap(g_at + g_size / 4, g_size / 2);
  } else if (strcmp(how, "threads") == 0) {
    const long all = faults();
    pthread_t threads[kThreads];
    for (size_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, quarter, (void*)i);
    for (size_t i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    printf("all %ld\n", faults() - all);
  } else if (strcmp(how, "late") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, after_main, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
  } else if (strcmp(how, "child") == 0) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      char one;
      const int other = open(words[1], O_RDONLY);
      if (read(other, &one, 1) != 1) _exit(1);
      touch(0, g_size, kPage);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  printf("faults %ld\n", faults_of_thread() - before);
  fflush(stdout);
  if (strcmp(how, "exec") == 0) execl("/bin/true", "true", (char*)NULL);
  if (strcmp(how, "killed") == 0) {
    usleep(2500000);
    raise(SIGKILL);
  }
  return 0;
}
