/* I2: reading and writing by descriptor: whole, short, nothing, too much, interrupted, refused. */
#include <limits.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#if defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define N2(name) name "64v2"
#else
#define N2(name) name "2"
#endif

static char data[65536];

static void whole(int fd) {
  const char* a = P("a");
  MUST(POSIX("write", a, write(fd, data, 4096), "count=%d", 4096) == 4096);
  MUST(POSIX("write", a, write(fd, data, 1), "count=%d", 1) == 1);
  MUST(POSIX("write", a, write(fd, data, 0), "count=%d", 0) == 0);
  MUST(POSIX(N("pwrite"), a, pwrite(fd, data, 1000, 50), "count=%d offset=%d", 1000, 50) == 1000);
  MUST(POSIX("pwrite64", a, pwrite64(fd, data, 1000, 5LL << 30), "count=%d offset=%lld", 1000,
             5LL << 30) == 1000);
  MUST(POSIX("pread64", a, pread64(fd, data, 4000, (5LL << 30) + 10), "count=%d offset=%lld", 4000,
             (5LL << 30) + 10) == 990);
  MUST(POSIX(N("ftruncate"), a, ftruncate(fd, 4097), "length=%d", 4097) == 0);
  MUST(POSIX(N("lseek"), a, lseek(fd, 0, SEEK_SET), "offset=%d whence=%d", 0, SEEK_SET) == 0);
  MUST(POSIX("read", a, read(fd, data, 100), "count=%d", 100) == 100);
  MUST(POSIX("read", a, read(fd, data, 0), "count=%d", 0) == 0);
  MUST(POSIX("read", a, read(fd, data, sizeof data), "count=%d", (int)sizeof data) == 3997);
  MUST(POSIX("read", a, read(fd, data, sizeof data), "count=%d", (int)sizeof data) == 0);
  MUST(POSIX(N("pread"), a, pread(fd, data, 200, 4000), "count=%d offset=%d", 200, 4000) == 97);
  MUST(POSIX(N("pread"), a, pread(fd, data, 200, 9000), "count=%d offset=%d", 200, 9000) == 0);
}

static void vectors(int fd) {
  const char* a = P("a");
  struct iovec three[3] = {{data, 10}, {data + 10, 0}, {data + 20, 30}};
  MUST(POSIX(N("lseek"), a, lseek(fd, 0, SEEK_SET), "offset=%d whence=%d", 0, SEEK_SET) == 0);
  MUST(POSIX("writev", a, writev(fd, three, 3), "iovcnt=%d", 3) == 40);
  MUST(POSIX("readv", a, readv(fd, three, 1), "iovcnt=%d", 1) == 10);
  MUST(POSIX("readv", a, readv(fd, three, 0), "iovcnt=%d", 0) == 0);
  MUST(POSIX(N("pwritev"), a, pwritev(fd, three, 3, 100), "iovcnt=%d offset=%d", 3, 100) == 40);
  MUST(POSIX("pwritev64", a, pwritev64(fd, three, 2, 200), "iovcnt=%d offset=%d", 2, 200) == 10);
  MUST(POSIX(N("preadv"), a, preadv(fd, three, 3, 4070), "iovcnt=%d offset=%d", 3, 4070) == 27);
  MUST(POSIX("preadv64", a, preadv64(fd, three, 3, 7), "iovcnt=%d offset=%d", 3, 7) == 40);
  MUST(POSIX(N2("pwritev"), a, pwritev2(fd, three, 3, 300, RWF_DSYNC),
             "iovcnt=%d offset=%d flags=%d", 3, 300, RWF_DSYNC) == 40);
  MUST(POSIX("pwritev64v2", a, pwritev64v2(fd, three, 1, -1, 0), "iovcnt=%d offset=%d flags=%d", 1,
             -1, 0) == 10);
  MUST(POSIX(N2("preadv"), a, preadv2(fd, three, 3, 300, RWF_HIPRI), "iovcnt=%d offset=%d flags=%d",
             3, 300, RWF_HIPRI) == 40);
  MUST(POSIX("preadv64v2", a, preadv64v2(fd, three, 2, 0, 0), "iovcnt=%d offset=%d flags=%d", 2, 0,
             0) == 10);
}

static void more_than_an_int(void) {
  size_t much = 3UL << 30;
  int fd = POSIX(N("open"), "/dev/null", open("/dev/null", O_WRONLY), "flags=%d", O_WRONLY);
  MUST(POSIX("write", "/dev/null", write(fd, data, much), "count=%zu", much) > INT_MAX / 2);
  MUST(POSIX(N("pwrite"), "/dev/null", pwrite(fd, data, much, 1L << 40), "count=%zu offset=%ld",
             much, 1L << 40) > INT_MAX / 2);
  CLOSE(fd, "/dev/null");
}

static void refused(int fd) {
  const char* a = P("a");
  void* bad = (void*)8;
  struct iovec none = {bad, 100};
  MUST(POSIX("read", NULL, read(-1, data, 10), "count=%d", 10) == -1);
  MUST(POSIX("write", NULL, write(987, data, 10), "count=%d", 10) == -1);
  MUST(POSIX(N("pread"), NULL, pread(-1, data, 10, 0), "count=%d offset=%d", 10, 0) == -1);
  MUST(POSIX(N("pread"), a, pread(fd, data, 10, -5), "count=%d offset=%d", 10, -5) == -1);
  MUST(POSIX("write", a, write(fd, bad, 10), "count=%d", 10) == -1);
  MUST(POSIX(N("pread"), a, pread(fd, bad, 10, 0), "count=%d offset=%d", 10, 0) == -1);
  MUST(POSIX("writev", a, writev(fd, &none, 1), "iovcnt=%d", 1) == -1);
  MUST(POSIX("writev", a, writev(fd, bad, 1), "iovcnt=%d", 1) == -1);
  MUST(POSIX("readv", a, readv(fd, bad, -3), "iovcnt=%d", -3) == -1);
  int dir = POSIX(N("open"), base, open(".", O_RDONLY), "flags=%d", O_RDONLY);
  MUST(POSIX("read", base, read(dir, data, 10), "count=%d", 10) == -1);
  CLOSE(dir, base);
}

static void nothing(int signal) { (void)signal; }

static void interrupted(void) {
  int ends[2];
  MUST(POSIX("pipe2", NULL, pipe2(ends, O_CLOEXEC), "flags=%d", O_CLOEXEC) == 0);
  const char* way = FD(ends[0]);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = nothing;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_REAL, &often, NULL);
  MUST(POSIX("read", way, read(ends[0], data, 100), "count=%d", 100) == -1);
  MUST(errno == EINTR);
  memset(&often, 0, sizeof often);
  setitimer(ITIMER_REAL, &often, NULL);
  MUST(POSIX("write", way, write(ends[1], data, 60), "count=%d", 60) == 60);
  MUST(POSIX("read", way, read(ends[0], data, 100), "count=%d", 100) == 60);
  CLOSE(ends[0], way);
  signal(SIGPIPE, SIG_IGN);
  MUST(POSIX("write", way, write(ends[1], data, 60), "count=%d", 60) == -1);
  MUST(errno == EPIPE);
  CLOSE(ends[1], way);
  MUST(POSIX("pipe2", NULL, pipe2(ends, O_NONBLOCK), "flags=%d", O_NONBLOCK) == 0);
  way = FD(ends[0]);
  MUST(POSIX("read", way, read(ends[0], data, 100), "count=%d", 100) == -1);
  MUST(errno == EAGAIN);
  CLOSE(ends[0], way);
  CLOSE(ends[1], way);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  int fd = POSIX(N("open"), P("a"), open("a", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                 O_RDWR | O_CREAT, 0600);
  whole(fd);
  vectors(fd);
  more_than_an_int();
  refused(fd);
  interrupted();
  for (int i = 0; i < 1000; ++i) {
    MUST(POSIX(N("pread"), P("a"), pread(fd, data, 16, i), "count=%d offset=%d", 16, i) == 16);
  }
  CLOSE(fd, P("a"));
  MUST(POSIX("close", NULL, close(fd), "") == -1);
  return finish();
}
