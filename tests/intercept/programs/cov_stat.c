/* I3: what there is to know about a file, asked by new and by old programs. */
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "cov.h"

/* What programs call that were linked before glibc 2.33. */
extern int __xstat(int, const char*, struct stat*);
extern int __xstat64(int, const char*, struct stat64*);
extern int __lxstat(int, const char*, struct stat*);
extern int __lxstat64(int, const char*, struct stat64*);
extern int __fxstat(int, int, struct stat*);
extern int __fxstat64(int, int, struct stat64*);
extern int __fxstatat(int, int, const char*, struct stat*, int);
extern int __fxstatat64(int, int, const char*, struct stat64*, int);
#ifdef _STAT_VER
#define OLD _STAT_VER
#elif defined(__x86_64__)
#define OLD 1
#else
#define OLD 0
#endif

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  struct stat s;
  struct stat64 s64;
  struct statx x;
  struct statvfs v;
  struct statvfs64 v64;
  struct statfs f;
  struct statfs64 f64;
  const char* a = P("a");
  const char* none = P("none");
  int fd = POSIX(N("open"), a, open("a", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                 O_RDWR | O_CREAT, 0600);
  MUST(POSIX("write", a, write(fd, "12345", 5), "count=%d", 5) == 5);
  MUST(POSIX("symlink", P("l"), symlink("a", "l"), "path2_hash=%s target=%s", P("l"), "a") == 0);
  int dir = POSIX(N("open"), base, open(".", O_RDONLY), "flags=%d", O_RDONLY);

  MUST(POSIX(N("stat"), a, stat("a", &s), "") == 0 && s.st_size == 5);
  MUST(POSIX("stat64", a, stat64("./a", &s64), "") == 0 && s64.st_size == 5);
  MUST(POSIX(N("stat"), P("l"), stat("l", &s), "") == 0 && S_ISREG(s.st_mode));
  MUST(POSIX(N("lstat"), P("l"), lstat("l", &s), "") == 0 && S_ISLNK(s.st_mode));
  MUST(POSIX("lstat64", P("l"), lstat64("l", &s64), "") == 0 && S_ISLNK(s64.st_mode));
  MUST(POSIX(N("fstat"), a, fstat(fd, &s), "") == 0 && s.st_size == 5);
  MUST(POSIX("fstat64", a, fstat64(fd, &s64), "") == 0 && s64.st_size == 5);
  MUST(POSIX(N("fstatat"), a, fstatat(dir, "a", &s, 0), "dirfd=%d flags=%d", dir, 0) == 0);
  MUST(POSIX(N("fstatat"), a, fstatat(AT_FDCWD, "a", &s, AT_SYMLINK_NOFOLLOW), "dirfd=%d flags=%d",
             AT_FDCWD, AT_SYMLINK_NOFOLLOW) == 0);
  MUST(POSIX("fstatat64", a, fstatat64(fd, "", &s64, AT_EMPTY_PATH), "dirfd=%d flags=%d", fd,
             AT_EMPTY_PATH) == 0);
  MUST(POSIX("statx", a, statx(dir, "a", 0, STATX_SIZE, &x), "dirfd=%d flags=%d mask=%d", dir, 0,
             STATX_SIZE) == 0);
  MUST(POSIX("statx", a, statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &x), "dirfd=%d flags=%d mask=%d",
             fd, AT_EMPTY_PATH, STATX_ALL) == 0);
  MUST(x.stx_size == 5);

  MUST(POSIX("__xstat", a, __xstat(OLD, "a", &s), "") == 0 && s.st_size == 5);
  MUST(POSIX("__xstat64", a, __xstat64(OLD, "a", &s64), "") == 0 && s64.st_size == 5);
  MUST(POSIX("__lxstat", P("l"), __lxstat(OLD, "l", &s), "") == 0 && S_ISLNK(s.st_mode));
  MUST(POSIX("__lxstat64", P("l"), __lxstat64(OLD, "l", &s64), "") == 0 && S_ISLNK(s64.st_mode));
  MUST(POSIX("__fxstat", a, __fxstat(OLD, fd, &s), "") == 0 && s.st_size == 5);
  MUST(POSIX("__fxstat64", a, __fxstat64(OLD, fd, &s64), "") == 0 && s64.st_size == 5);
  MUST(POSIX("__fxstatat", a, __fxstatat(OLD, dir, "a", &s, 0), "dirfd=%d flags=%d", dir, 0) == 0);
  MUST(POSIX("__fxstatat64", a, __fxstatat64(OLD, dir, "a", &s64, AT_SYMLINK_NOFOLLOW),
             "dirfd=%d flags=%d", dir, AT_SYMLINK_NOFOLLOW) == 0);

  MUST(POSIX("access", a, access("a", R_OK), "mode=%d", R_OK) == 0);
  MUST(POSIX("faccessat", a, faccessat(dir, "a", F_OK, 0), "dirfd=%d mode=%d flags=%d", dir, F_OK,
             0) == 0);
  MUST(POSIX("faccessat", a, faccessat(AT_FDCWD, "a", W_OK, AT_EACCESS),
             "dirfd=%d mode=%d flags=%d", AT_FDCWD, W_OK, AT_EACCESS) == 0);
  MUST(POSIX("euidaccess", a, euidaccess("a", R_OK), "mode=%d", R_OK) == 0);
  MUST(POSIX("eaccess", a, eaccess("a", R_OK), "mode=%d", R_OK) == 0);

  MUST(POSIX(N("statvfs"), a, statvfs("a", &v), "") == 0);
  MUST(POSIX("statvfs64", a, statvfs64("a", &v64), "") == 0);
  MUST(POSIX(N("fstatvfs"), a, fstatvfs(fd, &v), "") == 0);
  MUST(POSIX("fstatvfs64", a, fstatvfs64(fd, &v64), "") == 0);
  MUST(POSIX(N("statfs"), a, statfs("a", &f), "") == 0);
  MUST(POSIX("statfs64", a, statfs64("a", &f64), "") == 0);
  MUST(POSIX(N("fstatfs"), a, fstatfs(fd, &f), "") == 0);
  MUST(POSIX("fstatfs64", a, fstatfs64(fd, &f64), "") == 0);

  MUST(POSIX(N("stat"), none, stat("none", &s), "") == -1);
  MUST(POSIX("__xstat", none, __xstat(OLD, "none", &s), "") == -1);
  MUST(POSIX(N("lstat"), P("a/b"), lstat("a/b", &s), "") == -1 && errno == ENOTDIR);
  MUST(POSIX(N("fstat"), NULL, fstat(-1, &s), "") == -1);
  MUST(POSIX("access", none, access("none", F_OK), "mode=%d", F_OK) == -1);
  MUST(POSIX("statx", none, statx(AT_FDCWD, "none", 0, STATX_ALL, &x), "dirfd=%d flags=%d mask=%d",
             AT_FDCWD, 0, STATX_ALL) == -1);
  /* A relative name and a directory that is none: there is no path to speak of. */
  MUST(POSIX(N("fstatat"), NULL, fstatat(-1, "a", &s, 0), "dirfd=%d flags=%d", -1, 0) == -1);
  POSIX("close", base, close(dir), "");
  POSIX("close", a, close(fd), "");
  return finish();
}
