/* I1: every way to open a file by its name, and to make one that has none. */
#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define MAKE (O_RDWR | O_CREAT | O_TRUNC)

static void plain(void) {
  int fd = POSIX(N("open"), P("a"), open("a", MAKE, 0640), "flags=%d mode=%d", MAKE, 0640);
  CLOSE(fd, P("a"));
  fd = POSIX(N("open"), P("a"), open("a", O_RDONLY), "flags=%d", O_RDONLY);
  CLOSE(fd, P("a"));
  fd = POSIX(N("open"), P("a"), open(P("a"), O_WRONLY | O_APPEND | O_CLOEXEC), "flags=%d",
             O_WRONLY | O_APPEND | O_CLOEXEC);
  CLOSE(fd, P("a"));
  fd = POSIX("open64", P("b"), open64("./b", MAKE, 0600), "flags=%d mode=%d", MAKE, 0600);
  CLOSE(fd, P("b"));
  fd = POSIX("open64", P("b"), open64("b", O_RDONLY), "flags=%d", O_RDONLY);
  CLOSE(fd, P("b"));
  fd = POSIX(N("creat"), P("c"), creat("c", 0644), "mode=%d", 0644);
  CLOSE(fd, P("c"));
  fd = POSIX("creat64", P("c"), creat64("c", 0600), "mode=%d", 0600);
  CLOSE(fd, P("c"));
  /* Failures, each with the path that was asked for. */
  MUST(POSIX(N("open"), P("none/x"), open("none/x", O_RDONLY), "flags=%d", O_RDONLY) == -1);
  MUST(POSIX("open64", P("none"), open64("none", O_RDWR), "flags=%d", O_RDWR) == -1);
  MUST(POSIX(N("open"), P("a"), open("a", O_RDWR | O_CREAT | O_EXCL, 0600), "flags=%d mode=%d",
             O_RDWR | O_CREAT | O_EXCL, 0600) == -1);
  MUST(POSIX(N("open"), base, open(".", O_WRONLY), "flags=%d", O_WRONLY) == -1);
  MUST(POSIX(N("open"), P("a"), open("a", O_DIRECTORY), "flags=%d", O_DIRECTORY) == -1);
  MUST(POSIX(N("creat"), P("none/y"), creat("none/y", 0600), "mode=%d", 0600) == -1);
}

static void at(void) {
  MUST(POSIX("mkdir", P("d"), mkdir("d", 0755), "mode=%d", 0755) == 0);
  int dir = POSIX(N("open"), P("d"), open("d", O_RDONLY | O_DIRECTORY), "flags=%d",
                  O_RDONLY | O_DIRECTORY);
  int fd = POSIX(N("openat"), P("d/e"), openat(dir, "e", MAKE, 0640), "dirfd=%d flags=%d mode=%d",
                 dir, MAKE, 0640);
  CLOSE(fd, P("d/e"));
  fd = POSIX(N("openat"), P("d/e"), openat(dir, "e", O_RDONLY), "dirfd=%d flags=%d", dir, O_RDONLY);
  CLOSE(fd, P("d/e"));
  fd = POSIX(N("openat"), P("a"), openat(AT_FDCWD, "a", O_RDONLY), "dirfd=%d flags=%d", AT_FDCWD,
             O_RDONLY);
  CLOSE(fd, P("a"));
  /* With an absolute path the directory counts for nothing, not even whether there is one. */
  fd = POSIX(N("openat"), P("a"), openat(-7, P("a"), O_RDONLY), "dirfd=%d flags=%d", -7, O_RDONLY);
  CLOSE(fd, P("a"));
  fd =
      POSIX(N("openat"), P("a"), openat(dir, "../a", O_RDONLY), "dirfd=%d flags=%d", dir, O_RDONLY);
  CLOSE(fd, P("a"));
  fd = POSIX("openat64", P("d/f"), openat64(dir, ".//f", MAKE, 0600), "dirfd=%d flags=%d mode=%d",
             dir, MAKE, 0600);
  CLOSE(fd, P("d/f"));
  fd = POSIX("openat64", P("d"), openat64(dir, ".", O_RDONLY), "dirfd=%d flags=%d", dir, O_RDONLY);
  CLOSE(fd, P("d"));
  MUST(POSIX(N("openat"), P("d/none"), openat(dir, "none", O_RDONLY), "dirfd=%d flags=%d", dir,
             O_RDONLY) == -1);
  MUST(POSIX("openat64", P("d/none"), openat64(dir, "none", O_RDONLY), "dirfd=%d flags=%d", dir,
             O_RDONLY) == -1);
  CLOSE(dir, P("d"));
}

/* Names that the library chooses. */
static void temporary(void) {
#define TEMPLATE(call, name, fmt, ...)                       \
  do {                                                       \
    int fd = POSIX(name, P(made), call, fmt, ##__VA_ARGS__); \
    MUST(fd >= 0);                                           \
    CLOSE(fd, P(made));                                      \
  } while (0)
  char made[32];
#define NEW(text) strcpy(made, text)
  TEMPLATE(mkstemp(NEW("m1XXXXXX")), N("mkstemp"), "");
  TEMPLATE(mkstemp64(NEW("m2XXXXXX")), "mkstemp64", "");
  TEMPLATE(mkostemp(NEW("m3XXXXXX"), O_APPEND), N("mkostemp"), "flags=%d", O_APPEND);
  TEMPLATE(mkostemp64(NEW("m4XXXXXX"), O_CLOEXEC), "mkostemp64", "flags=%d", O_CLOEXEC);
  TEMPLATE(mkstemps(NEW("m5XXXXXX.txt"), 4), N("mkstemps"), "suffixlen=%d", 4);
  TEMPLATE(mkstemps64(NEW("m6XXXXXX.t"), 2), "mkstemps64", "suffixlen=%d", 2);
  TEMPLATE(mkostemps(NEW("m7XXXXXX.txt"), 4, O_SYNC), N("mkostemps"), "suffixlen=%d flags=%d", 4,
           O_SYNC);
  TEMPLATE(mkostemps64(NEW("m8XXXXXX.t"), 2, O_CLOEXEC), "mkostemps64", "suffixlen=%d flags=%d", 2,
           O_CLOEXEC);
  MUST(POSIX(N("mkstemp"), P("bad"), mkstemp(NEW("bad")), "") == -1);
  MUST(POSIX_POINTER("mkdtemp", P(made), mkdtemp(NEW("m9XXXXXX")), "") != NULL);
}

/* Files without a name. */
static void nameless(void) {
  int fd = POSIX(N("open"), base, open(".", O_TMPFILE | O_RDWR, 0600), "flags=%d mode=%d",
                 O_TMPFILE | O_RDWR, 0600);
  MUST(fd >= 0);
  const char* path = FD(fd);
  MUST(POSIX("write", path, write(fd, "tmp", 3), "count=%d", 3) == 3);
  CLOSE(fd, path);

  fd = POSIX("memfd_create", NULL, memfd_create("mine", MFD_CLOEXEC), "name=%s flags=%d", "mine",
             MFD_CLOEXEC);
  path = FD(fd);
  MUST(strstr(path, "memfd:mine") != NULL);
  MUST(POSIX("write", path, write(fd, "mem", 3), "count=%d", 3) == 3);
  CLOSE(fd, path);

  char name[64];
  char full[96];
  snprintf(name, sizeof name, "/dftracer-cov-%d", (int)getpid());
  snprintf(full, sizeof full, "/dev/shm%s", name);
  fd = POSIX("shm_open", NULL, shm_open(name, O_RDWR | O_CREAT, 0600), "name=%s flags=%d mode=%d",
             name, O_RDWR | O_CREAT, 0600);
  MUST(fd >= 0);
  MUST(POSIX(N("ftruncate"), full, ftruncate(fd, 4096), "length=%d", 4096) == 0);
  CLOSE(fd, full);
  MUST(POSIX("shm_unlink", NULL, shm_unlink(name), "name=%s", name) == 0);

  FILE* stream = STDIO_POINTER(N("tmpfile"), NULL, tmpfile(), "");
  MUST(stream != NULL);
  path = FD(stream->_fileno);
  STDIO("fclose", path, fclose(stream), "");
  stream = STDIO_POINTER("tmpfile64", NULL, tmpfile64(), "");
  path = FD(stream->_fileno);
  STDIO("fclose", path, fclose(stream), "");
}

int main(int argc, char** argv) {
  BEGIN(argv);
  (void)argc;
  plain();
  at();
  temporary();
  nameless();
  return finish();
}
