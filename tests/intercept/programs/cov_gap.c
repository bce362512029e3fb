/* Threads that write and end before and after a child that writes as well and is waited for. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept.h"

static void* write_file(void* name) {
  char block[100] = {0};
  int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < 1000; ++i)
    if (write(fd, block, sizeof block) != sizeof block) return name;
  close(fd);
  return 0;
}

static void in_threads(char* first, char* second) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, write_file, first);
  pthread_create(&threads[1], 0, write_file, second);
  pthread_join(threads[0], 0);
  pthread_join(threads[1], 0);
}

int main(void) {
  START();
  in_threads("a", "b");
  pid_t child = fork();
  if (child == 0) {
    in_threads("c", "d");
    _exit(0);
  }
  waitpid(child, 0, 0);
  in_threads("e", "f");
  write_file("g");
  return 0;
}
