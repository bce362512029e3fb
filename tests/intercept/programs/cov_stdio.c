/* I4: streams: opened in every way, read and written by bytes, lines, blocks and formats, moved in,
 * closed. */
#include <stdio_ext.h>
#include <wchar.h>

#include "cov.h"

#define FCLOSE(f, path) STDIO("fclose", path, fclose(f), "")
#define OPEN(f, name, how) \
  FILE* f = STDIO_POINTER(N("fopen"), P(name), fopen(name, how), "mode=%s", how)

/* Programs made before C99's scanf get this one. */
extern int old_fscanf(FILE*, const char*, ...) __asm__("fscanf");
extern int old_vfscanf(FILE*, const char*, va_list) __asm__("vfscanf");

static char a_[4200];
static const char* a = a_;

static int formatted(FILE* f, const char* name, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = name[1] == 'f' && name[2] == 'p' ? vfprintf(f, format, list) : vfscanf(f, format, list);
  va_end(list);
  return ret;
}
static int formatted_old(FILE* f, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = old_vfscanf(f, format, list);
  va_end(list);
  return ret;
}

static void opened(void) {
  FILE* f = STDIO_POINTER("fopen64", a, fopen64("a", "w+"), "mode=%s", "w+");
  FCLOSE(f, a);
  f = STDIO_POINTER(N("fopen"), a, fopen("./a", "re"), "mode=%s", "re");
  f = STDIO_POINTER(N("freopen"), P("b"), freopen("b", "w", f), "mode=%s", "w");
  MUST(STDIO("fputs", P("b"), fputs("text", f), "ret_len=%d", 4) >= 0);
  f = STDIO_POINTER("freopen64", a, freopen64("a", "r+", f), "mode=%s", "r+");
  FCLOSE(f, a);
  MUST(STDIO_POINTER(N("fopen"), P("none"), fopen("none", "r"), "mode=%s", "r") == NULL);
  MUST(STDIO_POINTER("fopen64", P("none/x"), fopen64("none/x", "w"), "mode=%s", "w") == NULL);
  int fd = POSIX(N("open"), a, open("a", O_RDWR), "flags=%d", O_RDWR);
  f = STDIO_POINTER("fdopen", a, fdopen(fd, "r+"), "fd=%d mode=%s", fd, "r+");
  MUST(fileno(f) == fd);
  FCLOSE(f, a);
  MUST(STDIO_POINTER("fdopen", NULL, fdopen(-1, "r"), "fd=%d mode=%s", -1, "r") == NULL);
}

static void written(void) {
  OPEN(f, "a", "w");
  MUST(STDIO("setvbuf", a, setvbuf(f, NULL, _IOFBF, 16384), "mode=%d size=%d", _IOFBF, 16384) == 0);
  MUST(STDIO("fwrite", a, fwrite("0123456789", 2, 5, f), "size=%d count=%d", 2, 5) == 5);
  MUST(STDIO("fwrite", a, fwrite("0123456789", 0, 5, f), "size=%d count=%d", 0, 5) == 0);
  MUST(STDIO("fwrite_unlocked", a, fwrite_unlocked("01234", 1, 5, f), "size=%d count=%d", 1, 5) ==
       5);
  MUST(STDIO("fputs", a, fputs("line\n", f), "ret_len=%d", 5) >= 0);
  MUST(STDIO("fputs_unlocked", a, fputs_unlocked("line\n", f), "ret_len=%d", 5) >= 0);
  MUST(STDIO("fputc", a, fputc('1', f), "") == '1');
  MUST(STDIO("fputc_unlocked", a, fputc_unlocked('2', f), "") == '2');
  MUST(STDIO("putc", a, putc('3', f), "") == '3');
  MUST(STDIO("putc_unlocked", a, putc_unlocked('4', f), "") == '4');
  MUST(STDIO("putw", a, putw(0x20202020, f), "") == 0);
  MUST(STDIO("fprintf", a, fprintf(f, "%d %s %g %ld\n", 7, "seven", 7.5, 7L), "") == 14);
  MUST(STDIO("vfprintf", a, formatted(f, "vfprintf", "%d %g\n", 8, 8.25), "") == 7);
  MUST(STDIO("fflush", a, fflush(f), "") == 0);
  MUST(STDIO("fflush_unlocked", a, fflush_unlocked(f), "") == 0);
  FCLOSE(f, a);
  MUST(POSIX(N("truncate"), a, truncate("a", 60), "length=%d", 60) == 0);
}

/* Arguments of all kinds and more than registers hold, both ways. */
static void long_formats(void) {
  char m_[4200];
  const char* m = strcpy(m_, P("m"));
  static const char kMany[] = "%d %d %d %d %d %d %d %d %g %g %g %g %g %g %g %g %g %g %s %Lg %d\n";
  char wanted[512];
  char got[512] = "";
#define MANY \
  1, 2, 3, 4, 5, 6, 7, 8, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, "text", 1.25L, 9
  int length = snprintf(wanted, sizeof wanted, kMany, MANY);
  OPEN(f, "m", "w+");
  MUST(STDIO("fprintf", m, fprintf(f, kMany, MANY), "") == length);
  MUST(STDIO("fprintf", m, fprintf(f, "%3$s %1$d %2$g\n", 1, 2.5, "three"), "") == 12);
  STDIO_VOID("rewind", m, rewind(f), "");
  MUST(STDIO_POINTER("fgets", m, fgets(got, sizeof got, f), "num=%d ret_len=%d", 512, length) !=
       NULL);
  MUST(strcmp(wanted, got) == 0);
  MUST(STDIO_POINTER("fgets", m, fgets(got, sizeof got, f), "num=%d ret_len=%d", 512, 12) != NULL);
  MUST(strcmp(got, "three 1 2.5\n") == 0);
  STDIO_VOID("rewind", m, rewind(f), "");
  int n[9];
  double d[10];
  long double l = 0;
  char s[16];
  MUST(STDIO_EOF(
           "fscanf", m,
           fscanf(f, "%d %d %d %d %d %d %d %d %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %15s %Lf %d",
                  n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, d, d + 1, d + 2, d + 3, d + 4,
                  d + 5, d + 6, d + 7, d + 8, d + 9, s, &l, n + 8),
           "") == 21);
  MUST(n[0] == 1 && n[7] == 8 && n[8] == 9 && d[0] == .5 && d[9] == 9.5 && l == 1.25L);
  MUST(strcmp(s, "text") == 0);
  FCLOSE(f, m);
  int fd = POSIX(N("open"), m, open("m", O_RDWR | O_TRUNC), "flags=%d", O_RDWR | O_TRUNC);
  MUST(POSIX("dprintf", m, dprintf(fd, kMany, MANY), "") == length);
  MUST(POSIX(N("pread"), m, pread(fd, got, sizeof got, 0), "count=%d offset=%d", 512, 0) == length);
  MUST(memcmp(wanted, got, (size_t)length) == 0);
  POSIX("close", m, close(fd), "");
}

static void read_back(void) {
  char buffer[256];
  char* line = NULL;
  size_t room = 0;
  int number = 0;
  char word[32];
  float fraction = 0;
  OPEN(w, "t", "w");
  STDIO("fputs", P("t"), fputs("first\nsecond;third\nx1 2.5 3\n4 5 6 7 8 end", w), "ret_len=%d",
        41);
  FCLOSE(w, P("t"));
  char t_[4200];
  const char* t = strcpy(t_, P("t"));
  OPEN(f, "t", "r");
  MUST(STDIO_POINTER("fgets", t, fgets(buffer, 4, f), "num=%d ret_len=%d", 4, 3) != NULL);
  MUST(STDIO_POINTER("fgets_unlocked", t, fgets_unlocked(buffer, 100, f), "num=%d ret_len=%d", 100,
                     3) != NULL);
  MUST(STDIO_EOF("getdelim", t, getdelim(&line, &room, ';', f), "delim=%d", ';') == 7);
  MUST(STDIO_EOF("getline", t, getline(&line, &room, f), "") == 6);
  MUST(STDIO_EOF("fgetc", t, fgetc(f), "") == 'x');
  MUST(STDIO("ungetc", t, ungetc('y', f), "") == 'y');
  MUST(STDIO_EOF("fgetc_unlocked", t, fgetc_unlocked(f), "") == 'y');
  MUST(STDIO_EOF("fscanf", t, fscanf(f, "%d %f", &number, &fraction), "") == 2);
  MUST(number == 1 && fraction == 2.5F);
  MUST(STDIO_EOF("fscanf", t, old_fscanf(f, "%d", &number), "") == 1 && number == 3);
  MUST(STDIO_EOF("vfscanf", t, formatted(f, "vfscanf", "%d", &number), "") == 1 && number == 4);
  MUST(STDIO_EOF("vfscanf", t, formatted_old(f, "%d", &number), "") == 1 && number == 5);
  MUST(STDIO_EOF("getc", t, getc(f), "") == ' ');
  MUST(STDIO_EOF("getc_unlocked", t, getc_unlocked(f), "") == '6');
  MUST(STDIO("fread", t, fread(buffer, 1, 2, f), "size=%d count=%d", 1, 2) == 2);
  MUST(STDIO("fread_unlocked", t, fread_unlocked(buffer, 2, 1, f), "size=%d count=%d", 2, 1) == 1);
  MUST(STDIO("fread", t, fread(buffer, 2, 100, f), "size=%d count=%d", 2, 100) == 2);
  /* The end: no call below fails, they only say that there is nothing. */
  MUST(STDIO("feof", t, feof(f), "") != 0);
  MUST(STDIO("ferror", t, ferror(f), "") == 0);
  MUST(STDIO_EOF("fgetc", t, fgetc(f), "") == EOF);
  MUST(STDIO_EOF("getc", t, getc(f), "") == EOF);
  MUST(STDIO_POINTER("fgets", t, fgets(buffer, 100, f), "num=%d ret_len=%d", 100, 0) == NULL);
  MUST(STDIO_EOF("getline", t, getline(&line, &room, f), "") == -1);
  MUST(STDIO("fread", t, fread(buffer, 1, 100, f), "size=%d count=%d", 1, 100) == 0);
  MUST(STDIO_EOF("fscanf", t, fscanf(f, "%31s", word), "") == EOF);
  STDIO_VOID("clearerr", t, clearerr(f), "");
  /* A stream that may not be written to: this is a failure. */
  MUST(STDIO("fputc", t, fputc('x', f), "") == EOF && errno == EBADF);
  MUST(STDIO("fputs", t, fputs("x", f), "ret_len=%d", 0) == EOF);
  FCLOSE(f, t);
  free(line);
}

static void moved(void) {
  fpos_t place;
  fpos64_t place64;
  OPEN(f, "a", "r+");
  MUST(STDIO("fseek", a, fseek(f, 10, SEEK_SET), "offset=%d whence=%d", 10, SEEK_SET) == 0);
  MUST(STDIO("ftell", a, ftell(f), "") == 10);
  MUST(STDIO(N("fseeko"), a, fseeko(f, -2, SEEK_CUR), "offset=%d whence=%d", -2, SEEK_CUR) == 0);
  MUST(STDIO(N("ftello"), a, ftello(f), "") == 8);
  MUST(STDIO("fseeko64", a, fseeko64(f, 6LL << 30, SEEK_SET), "offset=%lld whence=%d", 6LL << 30,
             SEEK_SET) == 0);
  MUST(STDIO("ftello64", a, ftello64(f), "") == 6LL << 30);
  MUST(STDIO("fseek", a, fseek(f, -1, SEEK_SET), "offset=%d whence=%d", -1, SEEK_SET) == -1);
  STDIO_VOID("rewind", a, rewind(f), "");
  MUST(STDIO(N("fgetpos"), a, fgetpos(f, &place), "") == 0);
  MUST(STDIO(N("fsetpos"), a, fsetpos(f, &place), "") == 0);
  MUST(STDIO("fgetpos64", a, fgetpos64(f, &place64), "") == 0);
  MUST(STDIO("fsetpos64", a, fsetpos64(f, &place64), "") == 0);
  MUST(STDIO_EOF("getw", a, getw(f), "ret_len=%d", 4) == 0x33323130);
  static char own[BUFSIZ];
  STDIO_VOID("setbuf", a, setbuf(f, own), "");
  STDIO_VOID("setbuffer", a, setbuffer(f, own, 512), "size=%d", 512);
  STDIO_VOID("setlinebuf", a, setlinebuf(f), "");
  STDIO_VOID("flockfile", a, flockfile(f), "");
  MUST(STDIO("ftrylockfile", a, ftrylockfile(f), "") == 0);
  STDIO_VOID("funlockfile", a, funlockfile(f), "");
  STDIO_VOID("funlockfile", a, funlockfile(f), "");
  FCLOSE(f, a);
}

/* The three that every program has, as a file each. */
static void standard(void) {
  char line[64];
  const char* o = P("o");
  const char* i = P("t");
  STDIO_POINTER(N("freopen"), o, freopen("o", "w", stdout), "mode=%s", "w");
  MUST(STDIO("printf", o, printf("%d\n", 5), "") == 2);
  MUST(STDIO("puts", o, puts("text"), "ret_len=%d", 5) >= 0);
  MUST(STDIO("putchar", o, putchar('c'), "") == 'c');
  MUST(STDIO("putchar_unlocked", o, putchar_unlocked('c'), "") == 'c');
  MUST(STDIO("fflush", NULL, fflush(NULL), "") == 0);
  STDIO_POINTER(N("freopen"), i, freopen("t", "r", stdin), "mode=%s", "r");
  MUST(STDIO_EOF("getchar", i, getchar(), "") == 'f');
  MUST(STDIO_EOF("getchar_unlocked", i, getchar_unlocked(), "") == 'i');
  MUST(STDIO_EOF("scanf", i, scanf("%63s", line), "") == 1 && strcmp(line, "rst") == 0);
  MUST(FCLOSE(stdout, o) == 0);
  MUST(FCLOSE(stdin, i) == 0);
}

static void wide(void) {
  wchar_t buffer[32];
  char w_[4200];
  const char* w = strcpy(w_, P("w"));
  int number = 0;
  OPEN(f, "w", "w+");
  MUST(fwide(f, 1) > 0);
  MUST(STDIO("fputwc", w, (int)fputwc(L'a', f), "ret_len=%d", 1) == 'a');
  MUST(STDIO("putwc", w, (int)putwc(L'b', f), "ret_len=%d", 1) == 'b');
  MUST(STDIO("fputws", w, fputws(L"cd\n", f), "ret_len=%d", 3) >= 0);
  MUST(STDIO("fwprintf", w, fwprintf(f, L"%d\n", 12), "") == 3);
  STDIO_VOID("rewind", w, rewind(f), "");
  MUST(STDIO_EOF("fgetwc", w, (int)fgetwc(f), "ret_len=%d", 1) == 'a');
  MUST(STDIO_EOF("getwc", w, (int)getwc(f), "ret_len=%d", 1) == 'b');
  MUST(STDIO("ungetwc", w, (int)ungetwc(L'B', f), "") == 'B');
  MUST(STDIO_POINTER("fgetws", w, fgetws(buffer, 32, f), "num=%d ret_len=%d", 32, 4) != NULL);
  MUST(fwscanf(f, L"%d", &number) == 1 && number == 12);
  FCLOSE(f, w);
}

/* Streams without a descriptor. */
static void in_memory(void) {
  char buffer[64];
  char* text = NULL;
  size_t size = 0;
  FILE* f = STDIO_POINTER("fmemopen", NULL, fmemopen(buffer, sizeof buffer, "w+"), "size=%d", 64);
  MUST(STDIO("fputs", NULL, fputs("in memory", f), "ret_len=%d", 9) >= 0);
  FCLOSE(f, NULL);
  f = STDIO_POINTER("open_memstream", NULL, open_memstream(&text, &size), "");
  MUST(STDIO("fprintf", NULL, fprintf(f, "%d", 123), "") == 3);
  FCLOSE(f, NULL);
  MUST(size == 3);
  free(text);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  strcpy(a_, P("a"));
  opened();
  written();
  long_formats();
  read_back();
  moved();
  standard();
  wide();
  in_memory();
  return finish();
}
