/* I6: names: made, changed, removed; attributes by name and by descriptor; where the program
 * stands. */
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
extern int __xmknod(int, const char*, mode_t, dev_t*);
extern int __xmknodat(int, int, const char*, mode_t, dev_t*);

static void touch(const char* name) {
  int fd = POSIX(N("open"), P(name), open(name, O_WRONLY | O_CREAT, 0600), "flags=%d mode=%d",
                 O_WRONLY | O_CREAT, 0600);
  CLOSE(fd, P(name));
}

static void made(int dir) {
  MUST(POSIX("mkdir", P("m"), mkdir("m", 0700), "mode=%d", 0700) == 0);
  MUST(POSIX("mkdir", P("m"), mkdir("m/", 0700), "mode=%d", 0700) == -1);
  MUST(POSIX("mkdirat", P("d/m"), mkdirat(dir, "m", 0755), "dirfd=%d mode=%d", dir, 0755) == 0);
  MUST(POSIX("mkfifo", P("p"), mkfifo("p", 0600), "mode=%d", 0600) == 0);
  MUST(POSIX("mkfifoat", P("d/p"), mkfifoat(dir, "p", 0600), "dirfd=%d mode=%d", dir, 0600) == 0);
  MUST(POSIX("mknod", P("n"), mknod("n", S_IFREG | 0600, 0), "mode=%d dev=%d", S_IFREG | 0600, 0) ==
       0);
  MUST(POSIX("mknodat", P("d/n"), mknodat(dir, "n", S_IFREG | 0600, 0), "dirfd=%d mode=%d dev=%d",
             dir, S_IFREG | 0600, 0) == 0);
  dev_t none = 0;
  MUST(POSIX("__xmknod", P("o"), __xmknod(0, "o", S_IFREG | 0600, &none), "mode=%d",
             S_IFREG | 0600) == 0);
  MUST(POSIX("__xmknodat", P("d/o"), __xmknodat(0, dir, "o", S_IFREG | 0600, &none),
             "dirfd=%d mode=%d", dir, S_IFREG | 0600) == 0);
}

static void changed(int dir) {
  touch("a");
  MUST(POSIX("rename", P("a"), rename("a", "b"), "newpath_hash=%s", P("b")) == 0);
  MUST(POSIX("renameat", P("b"), renameat(AT_FDCWD, "b", dir, "c"),
             "olddirfd=%d newdirfd=%d newpath_hash=%s", AT_FDCWD, dir, P("d/c")) == 0);
  MUST(POSIX("renameat2", P("d/c"), renameat2(dir, "c", AT_FDCWD, "a", RENAME_NOREPLACE),
             "olddirfd=%d newdirfd=%d flags=%d newpath_hash=%s", dir, AT_FDCWD, RENAME_NOREPLACE,
             P("a")) == 0);
  MUST(POSIX("rename", P("none"), rename("none", "d/x"), "newpath_hash=%s", P("d/x")) == -1);
  MUST(POSIX("link", P("a"), link("a", "l"), "newpath_hash=%s", P("l")) == 0);
  MUST(POSIX("link", P("a"), link("a", "l"), "newpath_hash=%s", P("l")) == -1);
  MUST(POSIX("linkat", P("a"), linkat(AT_FDCWD, "a", dir, "l", 0),
             "fd1=%d fd2=%d flag=%d path2_hash=%s", AT_FDCWD, dir, 0, P("d/l")) == 0);
}

static void links(int dir) {
  char buffer[64];
  /* What a symbolic link says is its text: not a path until someone follows it. */
  MUST(POSIX("symlink", P("s"), symlink("d/../a", "s"), "path2_hash=%s target=%s", P("s"),
             "d/../a") == 0);
  MUST(POSIX("symlinkat", P("d/s"), symlinkat("../a", dir, "s"), "fd=%d path2_hash=%s target=%s",
             dir, P("d/s"), "../a") == 0);
  MUST(POSIX("readlink", P("s"), readlink("s", buffer, sizeof buffer), "bufsize=%d",
             (int)sizeof buffer) == 6);
  MUST(POSIX("readlinkat", P("d/s"), readlinkat(dir, "s", buffer, 3), "dirfd=%d bufsize=%d", dir,
             3) == 3);
  MUST(POSIX("readlink", P("a"), readlink("a", buffer, sizeof buffer), "bufsize=%d",
             (int)sizeof buffer) == -1);
  char resolved[4096];
  MUST(POSIX_POINTER("realpath", P("s"), realpath("s", resolved), "") != NULL);
  MUST(strcmp(resolved, P("a")) == 0);
  char* found =
      POSIX_POINTER("canonicalize_file_name", P("d/s"), canonicalize_file_name("d/s"), "");
  MUST(found != NULL && strcmp(found, P("a")) == 0);
  free(found);
  MUST(POSIX_POINTER("realpath", P("none/x"), realpath("none/x", resolved), "") == NULL);
}

static void attributes(int dir) {
  unsigned me = getuid();
  unsigned us = getgid();
  struct timespec times[2] = {{1000, 0}, {2000, 0}};
  struct timeval values[2] = {{1000, 0}, {2000, 0}};
  struct utimbuf simple = {1000, 2000};
  int fd = POSIX(N("open"), P("a"), open("a", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("chmod", P("a"), chmod("a", 0640), "mode=%d", 0640) == 0);
  MUST(POSIX("fchmod", P("a"), fchmod(fd, 0600), "mode=%d", 0600) == 0);
  MUST(POSIX("fchmodat", P("d/l"), fchmodat(dir, "l", 0600, 0), "dirfd=%d mode=%d flags=%d", dir,
             0600, 0) == 0);
  MUST(POSIX("chmod", P("none"), chmod("none", 0640), "mode=%d", 0640) == -1);
  MUST(POSIX("chown", P("a"), chown("a", me, us), "owner=%u group=%u", me, us) == 0);
  MUST(POSIX("lchown", P("s"), lchown("s", me, us), "owner=%u group=%u", me, us) == 0);
  MUST(POSIX("fchown", P("a"), fchown(fd, me, us), "owner=%u group=%u", me, us) == 0);
  MUST(POSIX("fchownat", P("d/l"), fchownat(dir, "l", me, us, AT_SYMLINK_NOFOLLOW),
             "dirfd=%d owner=%u group=%u flags=%d", dir, me, us, AT_SYMLINK_NOFOLLOW) == 0);
  MUST(POSIX("utimensat", P("d/l"), utimensat(dir, "l", times, 0), "dirfd=%d flags=%d", dir, 0) ==
       0);
  MUST(POSIX("futimens", P("a"), futimens(fd, times), "") == 0);
  MUST(POSIX("utimes", P("a"), utimes("a", values), "") == 0);
  MUST(POSIX("lutimes", P("s"), lutimes("s", values), "") == 0);
  MUST(POSIX("futimes", P("a"), futimes(fd, values), "") == 0);
  MUST(POSIX("futimesat", P("d/l"), futimesat(dir, "l", values), "dirfd=%d", dir) == 0);
  MUST(POSIX("utime", P("a"), utime("a", &simple), "") == 0);
  CLOSE(fd, P("a"));
}

/* Some file systems have none: the result is what it is. */
static void extended(void) {
  char value[16];
  int fd = POSIX(N("open"), P("a"), open("a", O_RDWR), "flags=%d", O_RDWR);
  POSIX("setxattr", P("a"), setxattr("a", "user.x", "1", 1, 0), "size=%d flags=%d", 1, 0);
  POSIX("lsetxattr", P("a"), lsetxattr("a", "user.y", "22", 2, 0), "size=%d flags=%d", 2, 0);
  POSIX("fsetxattr", P("a"), fsetxattr(fd, "user.z", "333", 3, 0), "size=%d flags=%d", 3, 0);
  POSIX("getxattr", P("a"), getxattr("a", "user.x", value, sizeof value), "size=%d", 16);
  POSIX("lgetxattr", P("a"), lgetxattr("a", "user.y", value, sizeof value), "size=%d", 16);
  POSIX("fgetxattr", P("a"), fgetxattr(fd, "user.z", value, sizeof value), "size=%d", 16);
  POSIX("getxattr", P("a"), getxattr("a", "user.none", value, sizeof value), "size=%d", 16);
  POSIX("listxattr", P("a"), listxattr("a", NULL, 0), "size=%d", 0);
  POSIX("llistxattr", P("a"), llistxattr("a", NULL, 0), "size=%d", 0);
  POSIX("flistxattr", P("a"), flistxattr(fd, NULL, 0), "size=%d", 0);
  POSIX("removexattr", P("a"), removexattr("a", "user.x"), "");
  POSIX("lremovexattr", P("a"), lremovexattr("a", "user.y"), "");
  POSIX("fremovexattr", P("a"), fremovexattr(fd, "user.z"), "");
  CLOSE(fd, P("a"));
}

/* Relative names count from where the program stands, wherever it came from. */
static void standing(int dir) {
  char here[4096];
  int up = POSIX(N("open"), base, open(".", O_RDONLY), "flags=%d", O_RDONLY);
  MUST(POSIX("chdir", P("d"), chdir("d"), "") == 0);
  MUST(POSIX_POINTER("getcwd", P("d"), getcwd(here, sizeof here), "size=%d", (int)sizeof here) !=
       NULL);
  MUST(POSIX("access", P("d/l"), access("l", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX("chdir", P("d/none"), chdir("none"), "") == -1);
  MUST(POSIX("access", P("d/l"), access("./l", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX("fchdir", base, fchdir(up), "") == 0);
  MUST(POSIX("access", P("l"), access("l", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX("chdir", P("d/m"), chdir("d/m"), "") == 0);
  MUST(POSIX("access", P("a"), access("../../a", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX("fchdir", P("d"), fchdir(dir), "") == 0);
  MUST(POSIX("chdir", base, chdir(".."), "") == 0);
  MUST(POSIX("access", P("a"), access("a", F_OK), "mode=%d", F_OK) == 0);
  MUST(POSIX_POINTER("getcwd", base, getcwd(here, 2), "size=%d", 2) == NULL && errno == ERANGE);
  CLOSE(up, base);
  POSIX("umask", NULL, (int)umask(022), "mask=%d", 022);
}

static void removed(int dir) {
  MUST(POSIX("unlink", P("l"), unlink("l"), "") == 0);
  MUST(POSIX("unlink", P("l"), unlink("l"), "") == -1);
  MUST(POSIX("unlinkat", P("d/l"), unlinkat(dir, "l", 0), "dirfd=%d flags=%d", dir, 0) == 0);
  MUST(POSIX("unlinkat", P("d/m"), unlinkat(dir, "m", AT_REMOVEDIR), "dirfd=%d flags=%d", dir,
             AT_REMOVEDIR) == 0);
  MUST(POSIX("rmdir", P("m"), rmdir("m"), "") == 0);
  MUST(POSIX("rmdir", P("d"), rmdir("d"), "") == -1 && errno == ENOTEMPTY);
  MUST(POSIX("remove", P("s"), remove("s"), "") == 0);
  MUST(POSIX("remove", P("none"), remove("none"), "") == -1);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  MUST(POSIX("mkdir", P("d"), mkdir("d", 0755), "mode=%d", 0755) == 0);
  int dir = POSIX(N("open"), P("d"), open("d", O_RDONLY | O_DIRECTORY), "flags=%d",
                  O_RDONLY | O_DIRECTORY);
  made(dir);
  changed(dir);
  links(dir);
  attributes(dir);
  extended();
  standing(dir);
  removed(dir);
  CLOSE(dir, P("d"));
  return finish();
}
