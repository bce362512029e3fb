/* Linked by harm_stages: its constructors run before those of a preloaded library, its destructors
   after them. With -DIFUNC a resolver does I/O while nothing but libc is relocated. */
#include "harm.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

static void stage(int who) {
  const int fd = open("data", O_RDONLY);
  marks(fd, who, 0, 25);
  close(fd);
  say("stage %d", who);
}

static void* thread_stage(void* unused) {
  stage(1103);
  return unused;
}

__attribute__((constructor)) static void first(void) {
  stage(1101);
  const pid_t child = fork();
  if (child == 0) {
    stage(1102);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, thread_stage, NULL);
  pthread_join(thread, NULL);
}

__attribute__((destructor)) static void last(void) { stage(1104); }

#ifdef IFUNC
static int plain(void) { return 8; }
static int (*choose(void))(void) {
  const int fd = open("data", O_RDONLY);
  char bytes[1105];
  (void)!pread(fd, bytes, sizeof bytes, 0);
  close(fd);
  return plain;
}
int stage_library(void) __attribute__((ifunc("choose")));
#else
int stage_library(void) { return 8; }
#endif
