/* I1, I2, I4: what -D_FORTIFY_SOURCE=2 makes of the usual calls; the trace has the names that were
 * written. Sizes come from variables, or the compiler would see that there is nothing to check. */
#include <wchar.h>

#include "cov.h"

static volatile size_t ten = 10;
static volatile int some = O_RDONLY;

static int to_stream(FILE* f, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = vfprintf(f, format, list);
  va_end(list);
  return ret;
}
static int to_descriptor(int fd, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = vdprintf(fd, format, list);
  va_end(list);
  return ret;
}
static int to_output(const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = vprintf(format, list);
  va_end(list);
  return ret;
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  char buffer[64];
  wchar_t wide[64];
  char path[4096];
  char a_[4200];
  char t_[4200];
  const char* a = strcpy(a_, P("a"));
  const char* t = strcpy(t_, P("t"));
  const char* word = "word";
  int make = O_RDWR | O_CREAT;
  int fd = POSIX(N("open"), a, open("a", make, 0600), "flags=%d mode=%d", make, 0600);
  MUST(POSIX("write", a, write(fd, "0123456789abcdef", 16), "count=%d", 16) == 16);
  POSIX("close", a, close(fd), "");

  int dir = POSIX(N("open"), base, open(".", some), "flags=%d", O_RDONLY);
  fd = POSIX(N("open"), a, open("a", some), "flags=%d", O_RDONLY);
  POSIX("close", a, close(fd), "");
  fd = POSIX("open64", a, open64("a", some), "flags=%d", O_RDONLY);
  POSIX("close", a, close(fd), "");
  fd = POSIX(N("openat"), a, openat(dir, "a", some), "dirfd=%d flags=%d", dir, O_RDONLY);
  POSIX("close", a, close(fd), "");
  MUST(POSIX("open64", P("none"), open64("none", some), "flags=%d", O_RDONLY) == -1);
  fd = POSIX("openat64", a, openat64(dir, "a", some), "dirfd=%d flags=%d", dir, O_RDONLY);

  MUST(POSIX("read", a, read(fd, buffer, ten), "count=%d", 10) == 10);
  MUST(POSIX("read", a, read(fd, buffer, ten), "count=%d", 10) == 6);
  MUST(POSIX(N("pread"), a, pread(fd, buffer, ten, 3), "count=%d offset=%d", 10, 3) == 10);
  MUST(POSIX("pread64", a, pread64(fd, buffer, ten, 9), "count=%d offset=%d", 10, 9) == 7);
  POSIX("close", a, close(fd), "");
  MUST(POSIX("symlink", P("s"), symlink("a", "s"), "path2_hash=%s target=%s", P("s"), "a") == 0);
  MUST(POSIX("readlink", P("s"), readlink("s", buffer, ten), "bufsize=%d", 10) == 1);
  MUST(POSIX("readlinkat", P("s"), readlinkat(dir, "s", buffer, ten), "dirfd=%d bufsize=%d", dir,
             10) == 1);
  POSIX("close", base, close(dir), "");
  size_t room = ten + 4000;
  MUST(POSIX_POINTER("getcwd", base, getcwd(path, room), "size=%zu", room) != NULL);
  char* resolved = realpath("s", path);
  note("POSIX", "realpath", P("s"), 0, 0, 0, "");
  MUST(resolved == path);

  FILE* f = STDIO_POINTER(N("fopen"), t, fopen("t", "w+"), "mode=%s", "w+");
  MUST(STDIO("fprintf", t, fprintf(f, "%s %d\n", word, 1), "") == 7);
  MUST(STDIO("vfprintf", t, to_stream(f, "%s %d\n", word, 2), "") == 7);
  STDIO_VOID("rewind", t, rewind(f), "");
  MUST(STDIO_POINTER("fgets", t, fgets(buffer, (int)ten, f), "num=%d ret_len=%d", 10, 7) != NULL);
  MUST(STDIO_POINTER("fgets_unlocked", t, fgets_unlocked(buffer, (int)ten, f), "num=%d ret_len=%d",
                     10, 7) != NULL);
  STDIO_VOID("rewind", t, rewind(f), "");
  MUST(STDIO("fread", t, fread(buffer, 1, ten, f), "size=%d count=%d", 1, 10) == 10);
  MUST(STDIO("fread_unlocked", t, fread_unlocked(buffer, 2, ten, f), "size=%d count=%d", 2, 10) ==
       2);
  STDIO("fclose", t, fclose(f), "");

  fd = POSIX(N("open"), t, open("t", O_WRONLY | O_TRUNC), "flags=%d", O_WRONLY | O_TRUNC);
  MUST(POSIX("dprintf", t, dprintf(fd, "%s %d\n", word, 3), "") == 7);
  MUST(POSIX("vdprintf", t, to_descriptor(fd, "%s %d\n", word, 4), "") == 7);
  POSIX("close", t, close(fd), "");

  STDIO_POINTER(N("freopen"), t, freopen("t", "w", stdout), "mode=%s", "w");
  MUST(STDIO("printf", t, printf("%s %d\n", word, 5), "") == 7);
  /* The header has no vprintf to check: it is vfprintf by then. */
  MUST(STDIO("vfprintf", t, to_output("%s %d\n", word, 6), "") == 7);
  STDIO("fclose", t, fclose(stdout), "");

  f = STDIO_POINTER(N("fopen"), t, fopen("t", "w+"), "mode=%s", "w+");
  MUST(fwprintf(f, L"%d\n", 12) == 3);
  STDIO_VOID("rewind", t, rewind(f), "");
  MUST(STDIO_POINTER("fgetws", t, fgetws(wide, (int)ten, f), "num=%d ret_len=%d", 10, 3) != NULL);
  STDIO("fclose", t, fclose(f), "");
  return finish();
}
