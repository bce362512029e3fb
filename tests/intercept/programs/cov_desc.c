/* I5: positions, sizes, what is promised to the disk, and descriptors that are made from
 * descriptors. */
#include <sys/file.h>
#include <sys/resource.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")

static void positions(int fd, const char* a) {
  MUST(POSIX(N("lseek"), a, lseek(fd, 100, SEEK_SET), "offset=%d whence=%d", 100, SEEK_SET) == 100);
  MUST(POSIX(N("lseek"), a, lseek(fd, -10, SEEK_CUR), "offset=%d whence=%d", -10, SEEK_CUR) == 90);
  MUST(POSIX("lseek64", a, lseek64(fd, 5LL << 30, SEEK_SET), "offset=%lld whence=%d", 5LL << 30,
             SEEK_SET) == 5LL << 30);
  MUST(POSIX("lseek64", a, lseek64(fd, 0, SEEK_END), "offset=%d whence=%d", 0, SEEK_END) == 0);
  MUST(POSIX(N("lseek"), a, lseek(fd, -1, SEEK_SET), "offset=%d whence=%d", -1, SEEK_SET) == -1);
  MUST(POSIX(N("lseek"), NULL, lseek(-1, 3, SEEK_SET), "offset=%d whence=%d", 3, SEEK_SET) == -1);
}

static void sizes(int fd, const char* a) {
  MUST(POSIX(N("ftruncate"), a, ftruncate(fd, 3LL << 30), "length=%lld", 3LL << 30) == 0);
  MUST(POSIX("ftruncate64", a, ftruncate64(fd, 10), "length=%d", 10) == 0);
  MUST(POSIX(N("truncate"), a, truncate("a", 20), "length=%d", 20) == 0);
  MUST(POSIX("truncate64", a, truncate64("a", 30), "length=%d", 30) == 0);
  MUST(POSIX(N("truncate"), P("none"), truncate("none", 20), "length=%d", 20) == -1);
  POSIX(N("fallocate"), a, fallocate(fd, FALLOC_FL_KEEP_SIZE, 4096, 8192),
        "mode=%d offset=%d len=%d", FALLOC_FL_KEEP_SIZE, 4096, 8192);
  POSIX("fallocate64", a, fallocate64(fd, 0, 0, 100), "mode=%d offset=%d len=%d", 0, 0, 100);
  MUST(POSIX(N("fallocate"), a, fallocate(fd, 0, 0, 0), "mode=%d offset=%d len=%d", 0, 0, 0) == -1);
  MUST(POSIX_ERROR(N("posix_fallocate"), a, posix_fallocate(fd, 0, 200), "offset=%d len=%d", 0,
                   200) == 0);
  MUST(POSIX_ERROR("posix_fallocate64", a, posix_fallocate64(fd, 10, 200), "offset=%d len=%d", 10,
                   200) == 0);
  MUST(POSIX_ERROR(N("posix_fallocate"), a, posix_fallocate(fd, -1, 200), "offset=%d len=%d", -1,
                   200) == EINVAL);
}

static void promises(int fd, const char* a) {
  MUST(POSIX("fsync", a, fsync(fd), "") == 0);
  MUST(POSIX("fdatasync", a, fdatasync(fd), "") == 0);
  POSIX("sync_file_range", a, sync_file_range(fd, 0, 100, SYNC_FILE_RANGE_WRITE),
        "offset=%d count=%d flags=%d", 0, 100, SYNC_FILE_RANGE_WRITE);
  MUST(POSIX("syncfs", a, syncfs(fd), "") == 0);
  MUST(POSIX("fsync", NULL, fsync(-1), "") == -1);
  MUST(POSIX_ERROR(N("posix_fadvise"), a, posix_fadvise(fd, 0, 100, POSIX_FADV_DONTNEED),
                   "offset=%d len=%d advice=%d", 0, 100, POSIX_FADV_DONTNEED) == 0);
  MUST(POSIX_ERROR("posix_fadvise64", a, posix_fadvise64(fd, 0, 0, POSIX_FADV_SEQUENTIAL),
                   "offset=%d len=%d advice=%d", 0, 0, POSIX_FADV_SEQUENTIAL) == 0);
  POSIX("readahead", a, readahead(fd, 0, 100), "offset=%d count=%d", 0, 100);
  MUST(POSIX("flock", a, flock(fd, LOCK_EX), "operation=%d", LOCK_EX) == 0);
  MUST(POSIX("flock", a, flock(fd, LOCK_UN), "operation=%d", LOCK_UN) == 0);
  MUST(POSIX(N("lockf"), a, lockf(fd, F_TLOCK, 0), "cmd=%d len=%d", F_TLOCK, 0) == 0);
  MUST(POSIX("lockf64", a, lockf64(fd, F_ULOCK, 0), "cmd=%d len=%d", F_ULOCK, 0) == 0);
}

/* Every copy is the same file, also after the first of them is closed. */
static void copies(int fd, const char* a, const char* b) {
#define USE(one, path) MUST(POSIX("write", path, write(one, "x", 1), "count=%d", 1) == 1)
  int one = POSIX("dup", a, dup(fd), "oldfd=%d", fd);
  USE(one, a);
  int two = POSIX("dup2", a, dup2(one, 70), "oldfd=%d newfd=%d", one, 70);
  MUST(two == 70);
  CLOSE(one, a);
  USE(two, a);
  int three =
      POSIX("dup3", a, dup3(two, 80, O_CLOEXEC), "oldfd=%d newfd=%d flags=%d", two, 80, O_CLOEXEC);
  CLOSE(two, a);
  USE(three, a);
  int four = POSIX(N("fcntl"), a, fcntl(three, F_DUPFD, 100), "cmd=%d", F_DUPFD);
  MUST(four == 100);
  CLOSE(three, a);
  USE(four, a);
  int five = POSIX("fcntl64", a, fcntl64(four, F_DUPFD_CLOEXEC, 1000), "cmd=%d", F_DUPFD_CLOEXEC);
  MUST(five == 1000);
  CLOSE(four, a);
  USE(five, a);
  /* A number that another file had: dup2 and dup3 close it, and it is the new one from then on. */
  int other = POSIX(N("open"), b, open("b", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                    O_RDWR | O_CREAT, 0600);
  USE(other, b);
  MUST(POSIX("dup2", a, dup2(five, other), "oldfd=%d newfd=%d", five, other) == other);
  USE(other, a);
  int back = POSIX(N("open"), b, open("b", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("dup3", b, dup3(back, other, 0), "oldfd=%d newfd=%d flags=%d", back, other, 0) ==
       other);
  USE(other, b);
  MUST(POSIX("dup2", b, dup2(other, other), "oldfd=%d newfd=%d", other, other) == other);
  USE(other, b);
  /* A copy that fails changes nothing. */
  MUST(POSIX("dup2", NULL, dup2(-1, other), "oldfd=%d newfd=%d", -1, other) == -1);
  USE(other, b);
  MUST(POSIX("dup", NULL, dup(-1), "oldfd=%d", -1) == -1);
  MUST(POSIX("dup3", b, dup3(other, other, 0), "oldfd=%d newfd=%d flags=%d", other, other, 0) ==
       -1);
  MUST(POSIX(N("fcntl"), NULL, fcntl(-1, F_GETFD), "cmd=%d", F_GETFD) == -1);
  CLOSE(back, b);
  CLOSE(other, b);
  CLOSE(five, a);
}

/* A number belongs to the file that was opened last, however it got free. */
static void reused(const char* a, const char* b) {
  int first = POSIX(N("open"), a, open("a", O_RDWR), "flags=%d", O_RDWR);
  CLOSE(first, a);
  int second = POSIX(N("open"), b, open("b", O_RDWR), "flags=%d", O_RDWR);
  MUST(second == first);
  USE(second, b);
  MUST(POSIX("close_range", NULL, close_range(second, second, 0), "first=%d last=%d flags=%d",
             second, second, 0) == 0);
  MUST(POSIX("write", NULL, write(second, "x", 1), "count=%d", 1) == -1);
  first = POSIX(N("open"), a, open("a", O_RDWR), "flags=%d", O_RDWR);
  MUST(first == second);
  USE(first, a);
  POSIX("dup2", a, dup2(first, 1500), "oldfd=%d newfd=%d", first, 1500);
  POSIX_VOID("closefrom", NULL, closefrom(1000), "first=%d", 1000);
  MUST(POSIX("write", NULL, write(1500, "x", 1), "count=%d", 1) == -1);
  USE(first, a);
  CLOSE(first, a);
  MUST(POSIX("close", NULL, close(first), "") == -1);
  MUST(POSIX("close", NULL, close(-1), "") == -1);
  /* Only marked, not closed. */
  first = POSIX(N("open"), a, open("a", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("close_range", NULL, close_range(first, ~0U, CLOSE_RANGE_CLOEXEC),
             "first=%d last=%u flags=%d", first, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
  USE(first, a);
  CLOSE(first, a);
}

static void control(int fd, const char* a) {
  MUST(POSIX(N("fcntl"), a, fcntl(fd, F_SETFD, FD_CLOEXEC), "cmd=%d", F_SETFD) == 0);
  MUST(POSIX(N("fcntl"), a, fcntl(fd, F_GETFD), "cmd=%d", F_GETFD) == FD_CLOEXEC);
  POSIX(N("fcntl"), a, fcntl(fd, F_GETFL), "cmd=%d", F_GETFL);
  MUST(POSIX(N("fcntl"), a, fcntl(fd, F_SETFL, O_APPEND), "cmd=%d", F_SETFL) == 0);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  MUST(POSIX(N("fcntl"), a, fcntl(fd, F_SETLK, &lock), "cmd=%d", F_SETLK) == 0);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  struct rlimit many; /* numbers beyond 1024 are used below */
  MUST(getrlimit(RLIMIT_NOFILE, &many) == 0);
  if (many.rlim_cur < 2048) many.rlim_cur = 2048;
  MUST(setrlimit(RLIMIT_NOFILE, &many) == 0);
  const char* a = P("a");
  char keep_a[4200];
  char keep_b[4200];
  a = strcpy(keep_a, a);
  const char* b = strcpy(keep_b, P("b"));
  int fd = POSIX(N("open"), a, open("a", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                 O_RDWR | O_CREAT, 0600);
  positions(fd, a);
  sizes(fd, a);
  promises(fd, a);
  control(fd, a);
  copies(fd, a, b);
  CLOSE(fd, a);
  reused(a, b);
  return finish();
}
