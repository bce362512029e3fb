/* Does one small thing for each word: o<path> opens, writes a byte and closes; f<path> likewise
 * with a stream; s<path> asks for its size; c<path> goes there; d<directory>,<name> opens the one
 * below the other; m<path> makes a directory; r<old>,<new> renames; p writes to a pipe; w<number>
 * writes a byte to a descriptor; x starts a child and waits for it. What fails is left out: failing
 * is an outcome, too. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept.h"
#ifdef INIT
#undef START
#define START() DFTRACER_C_INIT(NULL, getenv("TOUCH_DIRECTORIES"), NULL)
#endif

static void put(int fd) {
  if (fd < 0) return;
  if (write(fd, "x", 1) != 1) return;
  close(fd);
}

int main(int argc, char** argv) {
  START();
  for (int i = 1; i < argc; ++i) {
    char* word = argv[i] + 1;
    char* second = strchr(word, ',');
    struct stat about;
    int ends[2];
    switch (argv[i][0]) {
      case 'o':
        put(open(word, O_WRONLY | O_CREAT | O_APPEND, 0600));
        break;
      case 'f': {
        FILE* file = fopen(word, "a");
        if (file == NULL) break;
        if (fwrite("x", 1, 1, file) != 1) return 1;
        fclose(file);
        break;
      }
      case 's':
        if (stat(word, &about) != 0) break;
        break;
      case 'c':
        if (chdir(word) != 0) return 1;
        break;
      case 'd': {
        *second = 0;
        int directory = open(word, O_RDONLY | O_DIRECTORY);
        put(openat(directory, second + 1, O_WRONLY | O_CREAT, 0600));
        close(directory);
        break;
      }
      case 'm':
        if (mkdir(word, 0700) != 0) return 1;
        break;
      case 'r':
        *second = 0;
        if (rename(word, second + 1) != 0) return 1;
        break;
      case 'p':
        if (pipe(ends) != 0) return 1;
        put(ends[1]);
        close(ends[0]);
        break;
      case 'w':
        if (write(atoi(word), "x", 1) != 1) return 1;
        break;
      case 'x':
        if (fork() == 0) _exit(0);
        wait(NULL);
        break;
      default:
        return 2;
    }
  }
  return 0;
}
