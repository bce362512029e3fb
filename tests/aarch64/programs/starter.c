/* starter fork|vfork|posix_spawn WORD...: runs the words as a program, and ends as it does. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 3) return 100;
  pid_t child = -1;
  if (strcmp(argv[1], "posix_spawn") == 0) {
    if (posix_spawn(&child, argv[2], NULL, NULL, argv + 2, environ) != 0) return 101;
  } else {
    child = strcmp(argv[1], "vfork") == 0 ? vfork() : fork();
    if (child == 0) {
      execv(argv[2], argv + 2);
      _exit(102);
    }
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 103;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 104;
}
