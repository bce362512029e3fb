/* Descriptors: their numbers belong to the program.

     harm_fds lowest          every new one has the lowest free number, however long it runs
     harm_fds closefrom HOW   closes all but the first three: closefrom, close_range, loop, unshare
     harm_fds limit           at most 16 descriptors, all of them used
     harm_fds steal           takes every free number up to 1023 and checks what is behind each
     harm_fds closed          standard streams are closed, files take their numbers
     harm_fds own2            descriptor 2 is a file of the program at its end */
#include "harm.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void* watch(void* given) {
  volatile int* wrong = given;
  for (int i = 0; i < 3000; ++i) {
    const int fd = open("data", O_RDONLY);
    if (fd != 4) {
      *wrong = fd;
    }
    close(fd);
  }
  return NULL;
}

static void lowest(void) {
  const int fd = open("data", O_RDONLY);
  SHOW(fd);
  char byte;
  for (int i = 0; i < 30000; ++i) {
    NEED(read(fd, &byte, 1) >= 0);
    if (i % 100 == 0) {
      const int next = open("data", O_RDONLY);
      if (next != 4 || close(next) != 0) {
        say("after %d: %d", i, next);
      }
    }
  }
  /* Opened by one thread while another one fills the tracer's buffers. */
  volatile int wrong = 0;
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, watch, (void*)&wrong) == 0);
  for (int i = 0; i < 30000; ++i) {
    lseek(fd, 0, SEEK_SET);
  }
  pthread_join(thread, NULL);
  say("wrong %d", wrong);
  int ends[2];
  SHOW(pipe(ends));
  say("%d %d", ends[0], ends[1]);
  SHOW(dup(fd));
  SHOW(fcntl(fd, F_DUPFD, 0));
  FILE* file = fopen("data", "r");
  SHOW(fileno(file));
}

static void close_all(const char* how) {
  const int fd = open("data", O_RDONLY);
  marks(fd, 1000, 0, 1000);
  for (int round = 0; round < 3; ++round) {
    if (strcmp(how, "closefrom") == 0) {
      closefrom(3);
    } else if (strcmp(how, "close_range") == 0) {
      SHOW(close_range(3, ~0u, 0));
    } else if (strcmp(how, "unshare") == 0) {
      SHOW(close_range(3, ~0u, CLOSE_RANGE_UNSHARE));
    } else {
      for (int number = 3; number < 1024; ++number) {
        close(number);
      }
    }
    SHOW(open("data", O_RDONLY));
    marks(3, 1001 + round, 0, 3000);
    const pid_t child = fork();
    if (child == 0) {
      closefrom(3);
      const int again = open("data", O_RDONLY);
      marks(again, 1100 + round, 0, 100);
      _exit(again);
    }
    int status = -1;
    waitpid(child, &status, 0);
    say("child %d", status);
  }
}

static void limit(void) {
  const struct rlimit sixteen = {16, 16};
  NEED(setrlimit(RLIMIT_NOFILE, &sixteen) == 0);
  int last = 0;
  for (;;) {
    errno = 0;
    const int fd = open("data", O_RDONLY);
    if (fd < 0) {
      break;
    }
    last = fd;
  }
  say("last %d, errno %d", last, errno);
  marks(last, 1000, 0, 5000); /* the tracer cannot open anything now */
  SHOW(dup(last));
  SHOW_POINTER(fopen("data", "r"));
  int ends[2];
  SHOW(pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    marks(last, 1001, 0, 5000);
    exit(5);
  }
  int status = -1;
  SHOW(waitpid(child, &status, 0) == child);
  say("child %d", status);
  SHOW(close(last));
  SHOW(open("data", O_RDONLY));
}

static void steal(void) {
  struct stat wanted, found;
  stat("data", &wanted);
  const int data = open("data", O_RDONLY);
  int made = 0, wrong = 0;
  for (int number = 3; number < 1024; ++number) {
    if (number != data && dup2(data, number) == number) {
      ++made;
    }
  }
  marks(data, 1000, 0, 5000);
  char bytes[4];
  for (int number = 3; number < 1024; ++number) {
    if (fstat(number, &found) != 0 || found.st_ino != wanted.st_ino ||
        pread(number, bytes, 4, 100) != 4 || bytes[0] != 100) {
      ++wrong;
    }
  }
  say("made %d, wrong %d", made, wrong);
}

static void closed(void) {
  close(0);
  close(1);
  close(2);
  const int first = open("data", O_RDONLY);
  const int second = open("second", O_RDWR | O_CREAT, 0600);
  const int third = open("third", O_RDWR | O_CREAT, 0600);
  marks(first, 1000, 0, 3000);
  dprintf(second, "%d %d %d\n", first, second, third);
  /* stdout is the file now. */
  printf("printed\n");
  SHOW(fflush(stdout));
  fprintf(stderr, "to the third\n");
  const pid_t child = fork();
  if (child == 0) {
    marks(first, 1001, 0, 100);
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  dprintf(second, "child %d\n", status);
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  const char* what = argv[1];
  if (strcmp(what, "lowest") == 0) {
    lowest();
  } else if (strcmp(what, "closefrom") == 0) {
    close_all(argv[2]);
  } else if (strcmp(what, "limit") == 0) {
    limit();
  } else if (strcmp(what, "steal") == 0) {
    steal();
  } else if (strcmp(what, "closed") == 0) {
    closed();
  } else if (strcmp(what, "own2") == 0) {
    close(2);
    const int fd = open("errors", O_RDWR | O_CREAT, 0600);
    say("%d", fd);
    marks(open("data", O_RDONLY), 1000, 0, 10);
    NEED(write(fd, "mine", 4) == 4);
  }
  return 0;
}
