/* Uses the descriptors that it was started with: main(directory, "r3", "w4", ...). With "fork" or
 * "exec" among the words, what follows is done by a child, or by another image of the program. */
#include <sys/wait.h>

#include "cov.h"

int main(int argc, char** argv) {
  BEGIN(argv);
  char buffer[64];
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "exec") == 0) {
      char* words[64] = {argv[0], argv[1]};
      for (int j = i + 1; j <= argc; ++j) words[j - i + 1] = argv[j];
      execv("/proc/self/exe", words);
      return 1;
    }
    if (strcmp(argv[i], "fork") == 0) {
      int status;
      pid_t child = fork();
      if (child != 0) return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
      noted = 0; /* what the parent did is in its own trace */
      continue;
    }
    if (argv[i][0] == 'o') { /* opens a file, which stays open in what comes next */
      MUST(POSIX("open", P(argv[i] + 1), open(argv[i] + 1, O_RDWR), "flags=%d", O_RDWR) >= 0);
      continue;
    }
    int fd = atoi(argv[i] + 1);
    if (argv[i][0] == 'r') POSIX("read", FD(fd), read(fd, buffer, 10), "count=%d", 10);
    if (argv[i][0] == 'w') POSIX("write", FD(fd), write(fd, "0123456789", 10), "count=%d", 10);
    if (argv[i][0] == 's') {
      char* text = STDIO_POINTER("fgets", FD(0), fgets(buffer, 8, stdin), "num=%d ret_len=%d", 8,
                                 (int)strlen(ret_));
      MUST(text != NULL);
    }
  }
  return finish();
}
