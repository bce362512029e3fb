/* Copies of the file `in`, each by another call; argv[1] says which. */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "harm.h"
#include "intercept.h"

static void copy(int in, int out, const char* way) {
  ssize_t n;
  if (strcmp(way, "copy_file_range") == 0) {
    while ((n = copy_file_range(in, NULL, out, NULL, 300000, 0)) > 0) {
    }
  } else if (strcmp(way, "sendfile") == 0) {
    while ((n = sendfile(out, in, NULL, 300000)) > 0) {
    }
  } else {
    int ends[2];
    if (pipe(ends) != 0) abort();
    while ((n = splice(in, NULL, ends[1], NULL, 60000, 0)) > 0) {
      if (splice(ends[0], NULL, out, NULL, (size_t)n, 0) != n) abort();
    }
  }
  if (n != 0) abort();
}

int main(int argc, char** argv) {
  START();
  if (argc < 2) return 2;
  int in = open("in", O_RDONLY);
  int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  copy(in, out, argv[1]);
  close(in);
  close(out);
  return 0;
}
