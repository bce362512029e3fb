/* I15: names that are hard to write down, too long, wrong, or no names at all. */
#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define FLAGS (O_RDWR | O_CREAT)

static const char* const kNames[] = {
    "new\nline",
    "tab\tand\rreturn",
    "quo\"te",
    "back\\slash",
    "ends with\\",
    "apos'trophe",
    "{\"a\":[1]}",
    "\x01\x02\x1f\x7f",
    "\xff\xfe",
    "\xc3\x28 not utf-8",
    "\xed\xa0\x80 surrogate",
    "\xc0\xaf",
    "\xf4\x90\x80\x80",
    "gr\xc3\xb6\xc3\x9f\x65",
    "\xf0\x9f\x98\x80",
    "\xee\xbd\xbf \xef\xbe\x80",
    " ",
    "...",
    "a,b;c:d",
    "%s%n%d",
    "$(x)`y`",
    "-rf",
    "\xe2\x80\xa8",
    "nul\\0\\u0000",
};

static void hostile(void) {
  char full[512];
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    const char* name = kNames[i];
    int fd = POSIX("open", P(name), open(name, FLAGS, 0600), "flags=%d mode=%d", FLAGS, 0600);
    MUST(fd >= 0);
    MUST(POSIX("write", P(name), write(fd, "x", 1), "count=%d", 1) == 1);
    CLOSE(fd, P(name));
    snprintf(full, sizeof full, "./%s", name);
    struct stat s;
    MUST(POSIX("stat", P(name), stat(full, &s), "") == 0);
    FILE* f = STDIO_POINTER("fopen", P(name), fopen(name, "r"), "mode=%s", "r");
    STDIO("fclose", P(name), fclose(f), "");
    /* And as the kernel has it. */
    fd = (int)unseen(SYS_openat, AT_FDCWD, (long)name, O_RDWR, 0);
    MUST(POSIX("write", P(name), write(fd, "x", 1), "count=%d", 1) == 1);
    CLOSE(fd, P(name));
    MUST(POSIX("unlink", P(name), unlink(name), "") == 0);
  }
}

static void long_names(void) {
  static char name[6000];
  struct stat s;
  memset(name, 'n', sizeof name);
  name[255] = 0;
  int fd = POSIX("open", P(name), open(name, FLAGS, 0600), "flags=%d mode=%d", FLAGS, 0600);
  MUST(fd >= 0);
  CLOSE(fd, P(name));
  MUST(POSIX("unlink", P(name), unlink(name), "") == 0);
  memset(name, 'n', 256);
  name[256] = 0;
  MUST(POSIX("stat", P(name), stat(name, &s), "") == -1 && errno == ENAMETOOLONG);

  /* 4095 bytes are the most that the kernel takes: this file, by a long way round. */
  size_t used = (size_t)snprintf(name, sizeof name, "%s/", base);
  if (used % 2 != 0) name[used++] = '/';
  for (; used < 4094; used += 2) memcpy(name + used, "./", 2);
  memmove(name + used, "a", 2);
  MUST(strlen(name) == 4095);
  fd = POSIX("open", P("a"), open(name, FLAGS, 0600), "flags=%d mode=%d", FLAGS, 0600);
  MUST(fd >= 0);
  CLOSE(fd, P("a"));
  MUST(POSIX("access", P("a"), access(name, F_OK), "mode=%d", F_OK) == 0);
}

/* The name is not looked at beyond what the kernel looks at. */
static void too_long(void) {
  long page = sysconf(_SC_PAGESIZE);
  char* map =
      mmap(NULL, (size_t)(3 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(map != MAP_FAILED && munmap(map + 2 * page, (size_t)page) == 0);
  memset(map, 'y', (size_t)(2 * page));
  char* edge = map + 2 * page;
  struct stat s;
  MUST(stat(edge - 4096, &s) == -1 && errno == ENAMETOOLONG);
  MUST(open(edge - 4096, O_RDONLY) == -1 && errno == ENAMETOOLONG);
  MUST(rename(edge - 4096, "a") == -1 && errno == ENAMETOOLONG);
  MUST(rename("a", edge - 4096) == -1 && errno == ENAMETOOLONG);
  MUST(fopen(edge - 4096, "r") == NULL && errno == ENAMETOOLONG);
  MUST(mkdir(edge - 4096, 0700) == -1 && errno == ENAMETOOLONG);
  MUST(opendir(edge - 4096) == NULL && errno == ENAMETOOLONG);
  MUST(stat(edge - 10, &s) == -1 && errno == EFAULT);
  MUST(open(edge - 1, O_RDONLY) == -1 && errno == EFAULT);
  static char huge[100001];
  memset(huge, 'z', sizeof huge - 1);
  MUST(stat(huge, &s) == -1 && errno == ENAMETOOLONG);
  MUST(open(huge, O_RDONLY) == -1 && errno == ENAMETOOLONG);
  munmap(map, (size_t)(2 * page));
}

/* Pointers that the kernel refuses, and those that it never looks at. */
static void wrong(void) {
  char* bad = (char*)8;
  char* null = NULL;
  char buffer[16];
  struct stat s;
  struct statx x;
  struct timespec times[2] = {{0, 0}, {0, 0}};
  __asm__("" : "+r"(bad), "+r"(null));
  MUST(open(bad, O_RDONLY) == -1 && errno == EFAULT);
  MUST(open(null, O_RDONLY) == -1 && errno == EFAULT);
  MUST(stat(bad, &s) == -1 && errno == EFAULT);
  MUST(stat(null, &s) == -1 && errno == EFAULT);
  MUST(rename("a", bad) == -1 && errno == EFAULT);
  MUST(rename(bad, "a") == -1 && errno == EFAULT);
  MUST(symlink(bad, "b") == -1 && errno == EFAULT);
  MUST(symlink("a", bad) == -1 && errno == EFAULT);
  MUST(unlink(bad) == -1 && errno == EFAULT);
  MUST(access(bad, 0xff) == -1 && errno == EINVAL);
  MUST(truncate(bad, -1) == -1 && errno == EINVAL);
  MUST(readlink(bad, buffer, 0) == -1 && errno == EINVAL);
  MUST(open(bad, O_TMPFILE | O_RDONLY, 0) == -1 && errno == EINVAL);
  MUST(unlinkat(AT_FDCWD, bad, ~0) == -1 && errno == EINVAL);
  MUST(fstatat(AT_FDCWD, bad, &s, 0x40000000) == -1 && errno == EINVAL);
  MUST(statx(AT_FDCWD, bad, 0x40000000, STATX_ALL, &x) == -1 && errno == EINVAL);
  MUST(linkat(AT_FDCWD, bad, AT_FDCWD, bad, 0x40000000) == -1 && errno == EINVAL);
  MUST(renameat2(AT_FDCWD, bad, AT_FDCWD, bad, 0x40000000) == -1 && errno == EINVAL);
  MUST(utimensat(AT_FDCWD, bad, times, 0x40000000) == -1 && errno == EINVAL);
  MUST(fchownat(AT_FDCWD, bad, 0, 0, 0x40000000) == -1 && errno == EINVAL);
  /* The second one is never looked at. */
  MUST(rename("none/none", bad) == -1 && (errno == EFAULT || errno == ENOENT));
  MUST(link("none/none", bad) == -1 && (errno == EFAULT || errno == ENOENT));
}

static void special(void) {
  struct stat s;
  char target[64];
  MUST(POSIX("symlink", P("loop"), symlink("loop", "loop"), "path2_hash=%s target=%s", P("loop"),
             "loop") == 0);
  MUST(POSIX("open", P("loop"), open("loop", O_RDONLY), "flags=%d", O_RDONLY) == -1 &&
       errno == ELOOP);
  MUST(POSIX("open", P("a/b/c"), open("a/b/c", O_RDONLY), "flags=%d", O_RDONLY) == -1 &&
       errno == ENOTDIR);
  MUST(POSIX("stat", "/", stat("/../..//.", &s), "") == 0);
  MUST(POSIX("stat", "/proc/self/status", stat("/proc/self/./status", &s), "") == 0);
  MUST(POSIX("readlink", "/proc/self/exe", readlink("/proc/self/exe", target, sizeof target),
             "bufsize=%d", (int)sizeof target) > 0);
  int null = POSIX("open", "/dev/null", open("/dev/null", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("write", "/dev/null", write(null, "x", 1), "count=%d", 1) == 1);
  CLOSE(null, "/dev/null");
  int terminal = POSIX("open", "/dev/ptmx", open("/dev/ptmx", O_RDWR | O_NOCTTY), "flags=%d",
                       O_RDWR | O_NOCTTY);
  if (terminal >= 0) CLOSE(terminal, "/dev/ptmx");
  int fifo = POSIX("mkfifo", P("fifo"), mkfifo("fifo", 0600), "mode=%d", 0600);
  fifo = POSIX("open", P("fifo"), open("fifo", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("write", P("fifo"), write(fifo, "x", 1), "count=%d", 1) == 1);
  CLOSE(fifo, P("fifo"));
}

int main(int argc, char** argv) {
  BEGIN(argv);
  if (argc > 2 && strcmp(argv[2], "wrong") == 0) {
    too_long();
    wrong();
    return 0;
  }
  hostile();
  long_names();
  special();
  return finish();
}
