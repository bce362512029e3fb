/* writer FILE COUNT [kill]: writes COUNT numbers into FILE, and ends or kills itself. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return 1;
  for (int i = 0; i < atoi(argv[2]); ++i) {
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", i);
    if (pwrite(fd, text, (size_t)length, i * 8L) != length) return 2;
  }
  if (argc > 3) raise(SIGKILL);
  return close(fd);
}
