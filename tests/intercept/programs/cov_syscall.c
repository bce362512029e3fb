/* I12, what libc lets us see of it: system calls by number, through syscall(). */
#include <linux/openat2.h>
#include <sys/uio.h>

#include "cov.h"

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  char data[100];
  const char* a = P("a");
  int make = O_RDWR | O_CREAT;
  struct iovec vector = {data, 30};
  int fd = (int)POSIX("openat", a, syscall(SYS_openat, AT_FDCWD, "a", make, 0600),
                      "dirfd=%d flags=%d mode=%d", AT_FDCWD, make, 0600);
  MUST(fd >= 0);
  MUST(POSIX("write", a, syscall(SYS_write, fd, data, 100), "count=%d", 100) == 100);
  MUST(POSIX("pwrite64", a, syscall(SYS_pwrite64, fd, data, 50, 5L << 32), "count=%d offset=%ld",
             50, 5L << 32) == 50);
  MUST(POSIX("lseek", a, syscall(SYS_lseek, fd, 10, SEEK_SET), "offset=%d whence=%d", 10,
             SEEK_SET) == 10);
  MUST(POSIX("read", a, syscall(SYS_read, fd, data, 20), "count=%d", 20) == 20);
  MUST(POSIX("pread64", a, syscall(SYS_pread64, fd, data, 20, 90), "count=%d offset=%d", 20, 90) ==
       20);
  MUST(POSIX("writev", a, syscall(SYS_writev, fd, &vector, 1), "iovcnt=%d", 1) == 30);
  MUST(POSIX("readv", a, syscall(SYS_readv, fd, &vector, 1), "iovcnt=%d", 1) == 30);
  MUST(POSIX("fsync", a, syscall(SYS_fsync, fd), "") == 0);
  MUST(POSIX("read", NULL, syscall(SYS_read, -1, data, 20), "count=%d", 20) == -1 &&
       errno == EBADF);
  int copy = (int)POSIX("dup", a, syscall(SYS_dup, fd), "oldfd=%d", fd);
  MUST(POSIX("write", a, syscall(SYS_write, copy, data, 10), "count=%d", 10) == 10);
  /* Over a number that meant another file. */
  const char* b = P("b");
  int other = POSIX(N("open"), b, open("b", make, 0600), "flags=%d mode=%d", make, 0600);
  MUST(POSIX("dup3", a, syscall(SYS_dup3, fd, other, 0), "oldfd=%d newfd=%d flags=%d", fd, other,
             0) == other);
  MUST(POSIX("write", a, write(other, data, 10), "count=%d", 10) == 10);
#ifdef SYS_dup2
  int again = POSIX(N("open"), b, open("b", make, 0600), "flags=%d mode=%d", make, 0600);
  MUST(POSIX("dup2", b, syscall(SYS_dup2, again, other), "oldfd=%d newfd=%d", again, other) ==
       other);
  MUST(POSIX("write", b, write(other, data, 10), "count=%d", 10) == 10);
  MUST(POSIX("close", b, close(again), "") == 0);
  MUST(POSIX("close", b, close(other), "") == 0);
#else
  MUST(POSIX("close", a, close(other), "") == 0);
#endif
  /* Somewhere else. */
  MUST(POSIX("mkdir", P("d"), mkdir("d", 0700), "mode=%d", 0700) == 0);
  MUST(POSIX("access", a, access("a", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX("chdir", P("d"), syscall(SYS_chdir, "d"), "") == 0);
  MUST(POSIX("access", P("d/a"), access("a", F_OK), "mode=%d", F_OK) == -1);
  MUST(POSIX("chdir", base, chdir(".."), "") == 0);
  MUST(POSIX("close", a, syscall(SYS_close, copy), "") == 0);
  MUST(POSIX("close", a, syscall(SYS_close, fd), "") == 0);

  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = O_RDWR;
  how.resolve = RESOLVE_BENEATH;
  fd = (int)syscall(SYS_openat2, AT_FDCWD, "a", &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) {
    MUST(fd >= 0);
    note("POSIX", "openat2", a, 1, fd, 0, "dirfd=%d flags=%d mode=%d resolve=%d", AT_FDCWD, O_RDWR,
         0, RESOLVE_BENEATH);
    MUST(POSIX("read", a, read(fd, data, 10), "count=%d", 10) == 10);
    MUST(POSIX("close", a, close(fd), "") == 0);
  }
  /* All that is no I/O goes through with all of its arguments. */
  MUST(syscall(SYS_getpid) == getpid());
  char* map = (char*)syscall(SYS_mmap, NULL, 8192L, (long)PROT_READ,
                             (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
  MUST(map != MAP_FAILED && map[4096] == 0);
  return finish();
}
