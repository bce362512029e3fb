/* I6, second half: directories, read entry by entry and whole. */
#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define FILES 5
#if defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define READDIR_R "readdir64_r"
#else
#define READDIR_R "readdir_r"
#endif

static int all(const struct dirent* entry) {
  (void)entry;
  return 1;
}
static int all64(const struct dirent64* entry) {
  (void)entry;
  return 1;
}

static void entries(void) {
  const char* d = P("d");
  DIR* stream = POSIX_POINTER("opendir", d, opendir("d"), "");
  int count = 0;
  while (POSIX_POINTER(N("readdir"), d, readdir(stream), "") != NULL) ++count;
  MUST(count == FILES + 2);
  POSIX_VOID("rewinddir", d, rewinddir(stream), "");
  POSIX_POINTER("readdir64", d, readdir64(stream), "");
  long place = POSIX("telldir", d, telldir(stream), "");
  POSIX_POINTER("readdir64", d, readdir64(stream), "");
  POSIX_VOID("seekdir", d, seekdir(stream, place), "loc=%ld", place);
  MUST(POSIX("closedir", d, closedir(stream), "") == 0);
  MUST(POSIX_POINTER("opendir", P("none"), opendir("none"), "") == NULL);
  MUST(POSIX_POINTER("opendir", P("d/0"), opendir("d/0"), "") == NULL && errno == ENOTDIR);

  int fd =
      POSIX(N("open"), d, open("d", O_RDONLY | O_DIRECTORY), "flags=%d", O_RDONLY | O_DIRECTORY);
  stream = POSIX_POINTER("fdopendir", d, fdopendir(fd), "fd=%d", fd);
  struct dirent room;
  struct dirent64 room64;
  struct dirent* one;
  struct dirent64* one64;
  POSIX(READDIR_R, d, readdir_r(stream, &room, &one), "");
  POSIX("readdir64_r", d, readdir64_r(stream, &room64, &one64), "");
  MUST(POSIX("closedir", d, closedir(stream), "") == 0);
  MUST(POSIX_POINTER("fdopendir", NULL, fdopendir(-1), "fd=%d", -1) == NULL);

  fd = POSIX(N("open"), d, open("d", O_RDONLY | O_DIRECTORY), "flags=%d", O_RDONLY | O_DIRECTORY);
  char buffer[4096];
  MUST(POSIX("getdents64", d, getdents64(fd, buffer, sizeof buffer), "count=%d",
             (int)sizeof buffer) > 0);
  MUST(POSIX("getdents64", d, getdents64(fd, buffer, sizeof buffer), "count=%d",
             (int)sizeof buffer) == 0);
  CLOSE(fd, d);
}

static void whole(void) {
  const char* d = P("d");
  struct dirent** list;
  struct dirent64** list64;
  MUST(POSIX(N("scandir"), d, scandir("d", &list, all, alphasort), "") == FILES + 2);
  MUST(POSIX("scandir64", d, scandir64("d", &list64, all64, alphasort64), "") == FILES + 2);
  MUST(POSIX(N("scandirat"), d, scandirat(AT_FDCWD, "d", &list, all, alphasort), "dirfd=%d",
             AT_FDCWD) == FILES + 2);
  MUST(POSIX("scandirat64", d, scandirat64(AT_FDCWD, "d", &list64, all64, NULL), "dirfd=%d",
             AT_FDCWD) == FILES + 2);
  MUST(POSIX(N("scandir"), P("none"), scandir("none", &list, all, alphasort), "") == -1);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  MUST(POSIX("mkdir", P("d"), mkdir("d", 0755), "mode=%d", 0755) == 0);
  for (int i = 0; i < FILES; ++i) {
    char name[8];
    snprintf(name, sizeof name, "d/%d", i);
    int fd = POSIX(N("creat"), P(name), creat(name, 0600), "mode=%d", 0600);
    CLOSE(fd, P(name));
  }
  entries();
  whole();
  return finish();
}
