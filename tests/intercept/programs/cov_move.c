/* I8: bytes that go from one descriptor to another without passing through the program. */
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")

static char data[10000];

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  const char* a = P("a");
  const char* b = P("b");
  int make = O_RDWR | O_CREAT;
  int in = POSIX(N("open"), a, open("a", make, 0600), "flags=%d mode=%d", make, 0600);
  int out = POSIX(N("open"), b, open("b", make, 0600), "flags=%d mode=%d", make, 0600);
  MUST(POSIX("write", a, write(in, data, sizeof data), "count=%d", 10000) == 10000);

  off_t from = 0;
  off64_t from64 = 9000;
  MUST(POSIX(N("sendfile"), b, sendfile(out, in, &from, 4000),
             "in_fd=%d in_fd_hash=%s off_in=%d count=%d", in, a, 0, 4000) == 4000);
  MUST(from == 4000);
  MUST(POSIX("sendfile64", b, sendfile64(out, in, &from64, 4000),
             "in_fd=%d in_fd_hash=%s off_in=%d count=%d", in, a, 9000, 4000) == 1000);
  MUST(POSIX(N("sendfile"), b, sendfile(out, in, NULL, 10), "in_fd=%d in_fd_hash=%s count=%d", in,
             a, 10) == 0);
  MUST(POSIX(N("sendfile"), b, sendfile(out, -1, NULL, 10), "in_fd=%d count=%d", -1, 10) == -1);

  off64_t here = 100;
  off64_t there = 20000;
  MUST(POSIX("copy_file_range", a, copy_file_range(in, &here, out, &there, 500, 0),
             "fd_out=%d fd_out_hash=%s off_in=%d off_out=%d len=%d", out, b, 100, 20000,
             500) == 500);
  POSIX("copy_file_range", a, copy_file_range(in, &here, out, &there, 500, 7),
        "fd_out=%d fd_out_hash=%s len=%d", out, b, 500);

  int ends[2];
  int more[2];
  MUST(POSIX("pipe", NULL, pipe(ends), "") == 0);
  MUST(POSIX("pipe2", NULL, pipe2(more, O_NONBLOCK), "flags=%d", O_NONBLOCK) == 0);
  const char* one = FD(ends[0]);
  const char* two = FD(more[0]);
  here = 0;
  MUST(POSIX("splice", a, splice(in, &here, ends[1], NULL, 1000, 0),
             "fd_out=%d fd_out_hash=%s off_in=%d len=%d flags=%d", ends[1], one, 0, 1000,
             0) == 1000);
  MUST(POSIX("tee", one, tee(ends[0], more[1], 600, 0), "fd_out=%d fd_out_hash=%s len=%d flags=%d",
             more[1], two, 600, 0) == 600);
  there = 0;
  MUST(POSIX("splice", two, splice(more[0], NULL, out, &there, 5000, SPLICE_F_MOVE),
             "fd_out=%d fd_out_hash=%s off_out=%d len=%d flags=%d", out, b, 0, 5000,
             SPLICE_F_MOVE) == 600);
  MUST(POSIX("splice", two, splice(more[0], NULL, out, NULL, 5000, SPLICE_F_NONBLOCK),
             "fd_out=%d fd_out_hash=%s len=%d flags=%d", out, b, 5000, SPLICE_F_NONBLOCK) == -1);
  struct iovec vector = {data, 300};
  MUST(POSIX("vmsplice", two, vmsplice(more[1], &vector, 1, 0), "count=%d flags=%d", 1, 0) == 300);
  for (int i = 0; i < 2; ++i) {
    CLOSE(ends[i], one);
    CLOSE(more[i], two);
  }

  /* Not every file system can; the request is seen in any case. */
  POSIX("ioctl", b, ioctl(out, FICLONE, in), "request=%lu", (unsigned long)FICLONE);
  int waiting = -1;
  MUST(POSIX("ioctl", a, ioctl(in, FIONREAD, &waiting), "request=%lu", (unsigned long)FIONREAD) ==
       0);
  CLOSE(in, a);
  CLOSE(out, b);

  /* Calls of POSIX on sockets; those of category NET are in cov_net.c. */
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  one = FD(ends[0]);
  two = FD(ends[1]);
  MUST(strncmp(one, "socketpair:[", 12) == 0);
  MUST(POSIX("write", one, write(ends[0], data, 50), "count=%d", 50) == 50);
  MUST(POSIX("read", two, read(ends[1], data, 100), "count=%d", 100) == 50);
  MUST(send(ends[0], data, 70, 0) == 70 && recv(ends[1], data, 100, 0) == 70);
  CLOSE(ends[0], one);
  CLOSE(ends[1], two);
  return finish();
}
