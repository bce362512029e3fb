/* Works in a directory that has no usable path: main("deep") far below, main("gone") one that is
 * removed; main("names") asks for 70,000 files that are not there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept.h"

static int work(void) {
  struct stat about;
  int fd = open("file", O_RDWR | O_CREAT, 0600);
  if (fd >= 0) {
    if (write(fd, "x", 1) != 1) return 1;
    close(fd);
  }
  if (stat("file", &about) != 0 && errno != ENOENT) return 1;
  if (access("../up", F_OK) == 0) return 1;
  int here = open(".", O_RDONLY | O_DIRECTORY);
  if (here < 0) return 1;
  fd = openat(here, "other", O_RDWR | O_CREAT, 0600);
  if (fd >= 0) close(fd);
  close(here);
  return 0;
}

int main(int argc, char** argv) {
  START();
  if (argc < 2) return 2;
  if (strcmp(argv[1], "names") == 0) {
    for (int i = 0; i < 70000; ++i) {
      char name[32];
      snprintf(name, sizeof name, "names/%d", i);
      if (access(name, F_OK) == 0) return 1;
    }
    return 0;
  }
  if (strcmp(argv[1], "gone") == 0) {
    if (mkdir("gone", 0700) != 0 || chdir("gone") != 0 || rmdir("../gone") != 0) return 1;
    return work();
  }
  char name[201];
  memset(name, 'd', 200);
  name[200] = 0;
  for (int i = 0; i < 25; ++i) {
    if (mkdir(name, 0700) != 0 || chdir(name) != 0) return 1;
  }
  return work();
}
