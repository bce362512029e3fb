/* Functions that hardly anyone calls, and other spellings of those that everyone does. */
#include <aio.h>
#include <ftw.h>
#include <sys/statfs.h>
#include <wchar.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define FCLOSE(f, path) STDIO("fclose", path, fclose(f), "")
#define OPEN(f, name, how) \
  FILE* f = STDIO_POINTER(N("fopen"), P(name), fopen(name, how), "mode=%s", how)

static char a_[4200];
static char w_[4200];
static const char* a = a_;
static const char* w = w_;

static void wide(void) {
  wchar_t buffer[32];
  OPEN(f, "w", "w+");
  MUST(STDIO("fputwc_unlocked", w, (int)fputwc_unlocked(L'a', f), "ret_len=%d", 1) == 'a');
  MUST(STDIO("putwc_unlocked", w, (int)putwc_unlocked(L'b', f), "ret_len=%d", 1) == 'b');
  MUST(STDIO("fputws_unlocked", w, fputws_unlocked(L"cd\n", f), "ret_len=%d", 3) >= 0);
  STDIO_VOID("rewind", w, rewind(f), "");
  MUST(STDIO_EOF("fgetwc_unlocked", w, (int)fgetwc_unlocked(f), "ret_len=%d", 1) == 'a');
  MUST(STDIO_EOF("getwc_unlocked", w, (int)getwc_unlocked(f), "ret_len=%d", 1) == 'b');
  MUST(STDIO_POINTER("fgetws_unlocked", w, fgetws_unlocked(buffer, 32, f), "num=%d ret_len=%d", 32,
                     3) != NULL);
  MUST(STDIO_EOF("fgetwc", w, (int)fgetwc(f), "ret_len=%d", 0) == -1);
  MUST(STDIO("feof_unlocked", w, feof_unlocked(f), "") != 0);
  MUST(STDIO("ferror_unlocked", w, ferror_unlocked(f), "") == 0);
  STDIO_VOID("clearerr_unlocked", w, clearerr_unlocked(f), "");
  FCLOSE(f, w);
  wchar_t* text = NULL;
  size_t size = 0;
  f = STDIO_POINTER("open_wmemstream", NULL, open_wmemstream(&text, &size), "");
  MUST(STDIO("fputws", NULL, fputws(L"xyz", f), "ret_len=%d", 3) >= 0);
  FCLOSE(f, NULL);
  MUST(size == 3);
  free(text);
}

static int wide_to(FILE* f, const wchar_t* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = f != NULL ? vfwprintf(f, format, list) : vwprintf(format, list);
  va_end(list);
  return ret;
}
static int narrow(int out, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = out ? vprintf(format, list) : vscanf(format, list);
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

/* The standard streams, first as bytes, then wide; each becomes a file before. */
static void standard(void) {
  int number = 0;
  STDIO_POINTER(N("freopen"), a, freopen("a", "w+", stdout), "mode=%s", "w+");
  MUST(STDIO("vprintf", a, narrow(1, "%d %g\n", 12, 2.5), "") == 7);
  STDIO_POINTER(N("freopen"), w, freopen("w", "w+", stdout), "mode=%s", "w+");
  MUST(STDIO("wprintf", w, wprintf(L"%d %g\n", 34, 2.5), "") == 7);
  MUST(STDIO("vwprintf", w, wide_to(NULL, L"%ls\n", L"ab"), "") == 3);
  MUST(STDIO("vfwprintf", w, wide_to(stdout, L"%ls\n", L"ab"), "") == 3);
  MUST(STDIO("putwchar", w, (int)putwchar(L'c'), "ret_len=%d", 1) == 'c');
  FCLOSE(stdout, w);
  STDIO_POINTER(N("freopen"), a, freopen("a", "r", stdin), "mode=%s", "r");
  MUST(STDIO_EOF("vscanf", a, narrow(0, "%d", &number), "") == 1 && number == 12);
  STDIO_POINTER(N("freopen"), w, freopen("w", "r", stdin), "mode=%s", "r");
  MUST(STDIO_EOF("getwchar", w, (int)getwchar(), "ret_len=%d", 1) == '3');
  FCLOSE(stdin, w);
  STDIO_POINTER(N("freopen"), a, freopen("a", "w", stderr), "mode=%s", "w");
  STDIO_VOID("perror", a, perror("text"), "");
  FCLOSE(stderr, a);
  int fd = POSIX(N("open"), a, open("a", O_WRONLY), "flags=%d", O_WRONLY);
  MUST(POSIX("vdprintf", a, to_descriptor(fd, "%d\n", 1), "") == 2);
  CLOSE(fd, a);
}

static int visits;
static int visit(const char* path, const struct stat* about, int flag) {
  (void)path, (void)about, (void)flag;
  ++visits;
  return 0;
}
static int visit64(const char* path, const struct stat64* about, int flag) {
  (void)path, (void)about, (void)flag;
  ++visits;
  return 0;
}
static int step(const char* path, const struct stat* about, int flag, struct FTW* place) {
  (void)place;
  return visit(path, about, flag);
}
static int step64(const char* path, const struct stat64* about, int flag, struct FTW* place) {
  (void)place;
  return visit64(path, about, flag);
}

static void trees(void) {
  const char* d = P("d");
  MUST(POSIX("mkdir", d, mkdir("d", 0700), "mode=%d", 0700) == 0);
  MUST(POSIX("mkdir", P("d/e"), mkdir("d/e", 0700), "mode=%d", 0700) == 0);
  MUST(POSIX(N("ftw"), d, ftw("d", visit, 5), "nopenfd=%d", 5) == 0);
  MUST(POSIX("ftw64", d, ftw64("d", visit64, 6), "nopenfd=%d", 6) == 0);
  MUST(POSIX(N("nftw"), d, nftw("d", step, 7, FTW_PHYS), "nopenfd=%d flags=%d", 7, FTW_PHYS) == 0);
  MUST(POSIX("nftw64", d, nftw64("d", step64, 8, FTW_CHDIR), "nopenfd=%d flags=%d", 8, FTW_CHDIR) ==
       0);
  MUST(POSIX(N("ftw"), P("none"), ftw("none", visit, 5), "nopenfd=%d", 5) == -1);
  MUST(visits == 8);
  char buffer[1024];
  off_t base_position = 0;
  off64_t base_position64 = 0;
  int fd = POSIX(N("open"), d, open("d", O_RDONLY), "flags=%d", O_RDONLY);
  MUST(POSIX(N("getdirentries"), d, getdirentries(fd, buffer, sizeof buffer, &base_position),
             "count=%d", 1024) > 0);
  MUST(POSIX("getdirentries64", d, getdirentries64(fd, buffer, sizeof buffer, &base_position64),
             "count=%d", 1024) == 0);
  CLOSE(fd, d);
  char* text = POSIX_POINTER("get_current_dir_name", base, get_current_dir_name(), "");
  MUST(text != NULL);
  free(text);
  POSIX("lchmod", P("none"), lchmod("none", 0600), "mode=%d", 0600);
  MUST(POSIX("chroot", P("none"), chroot("none"), "") == -1);
  POSIX_VOID("sync", NULL, sync(), "");
}

static void asynchronous(void) {
  char buffer[64] = "";
  int fd = POSIX(N("open"), a, open("a", O_RDWR | O_TRUNC), "flags=%d", O_RDWR | O_TRUNC);
#define REQUEST(kind, suffix, bytes, at)         \
  struct aiocb##suffix kind##suffix;             \
  memset(&kind##suffix, 0, sizeof kind##suffix); \
  kind##suffix.aio_fildes = fd;                  \
  kind##suffix.aio_buf = buffer;                 \
  kind##suffix.aio_nbytes = bytes;               \
  kind##suffix.aio_offset = at
#define WAIT(one, suspend, name) MUST(POSIX(name, NULL, suspend(&one, 1, NULL), "nr=%d", 1) == 0)
  REQUEST(write, , 50, 10);
  const struct aiocb* first = &write;
  MUST(POSIX(N("aio_write"), a, aio_write(&write), "count=%d offset=%d", 50, 10) == 0);
  WAIT(first, aio_suspend, N("aio_suspend"));
  MUST(POSIX(N("aio_return"), a, aio_return(&write), "offset=%d joined=%d", 10, 1) == 50);
  REQUEST(write, 64, 20, 40);
  const struct aiocb64* second = &write64;
  MUST(POSIX("aio_write64", a, aio_write64(&write64), "count=%d offset=%d", 20, 40) == 0);
  WAIT(second, aio_suspend64, "aio_suspend64");
  MUST(POSIX("aio_return64", a, aio_return64(&write64), "offset=%d joined=%d", 40, 1) == 20);
  REQUEST(read, , 64, 0);
  first = &read;
  MUST(POSIX(N("aio_read"), a, aio_read(&read), "count=%d offset=%d", 64, 0) == 0);
  WAIT(first, aio_suspend, N("aio_suspend"));
  MUST(POSIX(N("aio_return"), a, aio_return(&read), "offset=%d joined=%d", 0, 1) == 60);
  REQUEST(read, 64, 64, 50);
  second = &read64;
  MUST(POSIX("aio_read64", a, aio_read64(&read64), "count=%d offset=%d", 64, 50) == 0);
  WAIT(second, aio_suspend64, "aio_suspend64");
  MUST(POSIX("aio_return64", a, aio_return64(&read64), "offset=%d joined=%d", 50, 1) == 10);
  MUST(POSIX(N("aio_fsync"), a, aio_fsync(O_SYNC, &write), "operation=%d", O_SYNC) == 0);
  first = &write;
  WAIT(first, aio_suspend, N("aio_suspend"));
  MUST(POSIX(N("aio_return"), a, aio_return(&write), "offset=%d joined=%d", 10, 1) == 0);
  MUST(POSIX("aio_fsync64", a, aio_fsync64(O_SYNC, &write64), "operation=%d", O_SYNC) == 0);
  second = &write64;
  WAIT(second, aio_suspend64, "aio_suspend64");
  MUST(POSIX("aio_return64", a, aio_return64(&write64), "offset=%d joined=%d", 40, 1) == 0);
  struct aiocb* list[1] = {&read};
  struct aiocb64* list64[1] = {&read64};
  read.aio_lio_opcode = LIO_READ;
  read64.aio_lio_opcode = LIO_READ;
  MUST(POSIX(N("lio_listio"), NULL, lio_listio(LIO_WAIT, list, 1, NULL), "mode=%d nr=%d", LIO_WAIT,
             1) == 0);
  MUST(POSIX("lio_listio64", NULL, lio_listio64(LIO_WAIT, list64, 1, NULL), "mode=%d nr=%d",
             LIO_WAIT, 1) == 0);
  CLOSE(fd, a);
}

/* As libraries beside libc import them. */
extern int __open(const char*, int, ...);
extern int __open64(const char*, int, ...);
extern int __close(int);
extern ssize_t __read(int, void*, size_t);
extern ssize_t __write(int, const void*, size_t);
extern ssize_t __pread64(int, void*, size_t, off64_t);
extern ssize_t __pwrite64(int, const void*, size_t, off64_t);
extern off_t __lseek(int, off_t, int);
extern int __fcntl(int, int, ...);
extern int __dup2(int, int);
extern int __pipe(int*);
extern int __statfs(const char*, struct statfs*);
extern ssize_t __getdelim(char**, size_t*, int, FILE*);

/* As binaries do that were made long ago. */
extern FILE* _IO_fopen(const char*, const char*);
extern int _IO_fclose(FILE*);
extern int _IO_fflush(FILE*);
extern char* _IO_fgets(char*, int, FILE*);
extern int _IO_fprintf(FILE*, const char*, ...);
extern int _IO_vfprintf(FILE*, const char*, va_list);
extern int _IO_fputs(const char*, FILE*);
extern size_t _IO_fread(void*, size_t, size_t, FILE*);
extern size_t _IO_fwrite(const void*, size_t, size_t, FILE*);
extern long _IO_ftell(FILE*);
extern int _IO_getc(FILE*);
extern int _IO_putc(int, FILE*);
extern int _IO_printf(const char*, ...);
extern int _IO_puts(const char*);
extern int old_scanf(const char*, ...) __asm__("scanf");
extern int old_vscanf(const char*, va_list) __asm__("vscanf");
/* The compiler has no use for these where the buffer is not its business. */
extern int __vprintf_chk(int, const char*, va_list);
extern int __vfwprintf_chk(FILE*, int, const wchar_t*, va_list);

static int old_list(int which, FILE* f, const void* format, ...) {
  va_list list;
  va_start(list, format);
  int ret = which == 0   ? _IO_vfprintf(f, format, list)
            : which == 1 ? __vfwprintf_chk(f, 1, format, list)
            : which == 2 ? __vprintf_chk(1, format, list)
                         : old_vscanf(format, list);
  va_end(list);
  return ret;
}

static void old_spellings(void) {
  char line[16];
  int number = 0;
  FILE* f = STDIO_POINTER("fopen", a, _IO_fopen("a", "w+"), "mode=%s", "w+");
  MUST(STDIO("fwrite", a, _IO_fwrite("1234", 2, 2, f), "size=%d count=%d", 2, 2) == 2);
  MUST(STDIO("fputs", a, _IO_fputs("5678\n", f), "ret_len=%d", 5) >= 0);
  MUST(STDIO("putc", a, _IO_putc('9', f), "") == '9');
  MUST(STDIO("fprintf", a, _IO_fprintf(f, "%d %g\n", 1, 2.5), "") == 6);
  MUST(STDIO("vfprintf", a, old_list(0, f, "%d %g\n", 3, 4.5), "") == 6);
  MUST(STDIO("fflush", a, _IO_fflush(f), "") == 0);
  MUST(STDIO("ftell", a, _IO_ftell(f), "") == 22);
  STDIO_VOID("rewind", a, rewind(f), "");
  MUST(STDIO("fread", a, _IO_fread(line, 1, 4, f), "size=%d count=%d", 1, 4) == 4);
  MUST(STDIO_EOF("getc", a, _IO_getc(f), "") == '5');
  MUST(STDIO_POINTER("fgets", a, _IO_fgets(line, 16, f), "num=%d ret_len=%d", 16, 4) != NULL);
  MUST(STDIO("fclose", a, _IO_fclose(f), "") == 0);
  OPEN(g, "w", "w");
  MUST(STDIO("vfwprintf", w, old_list(1, g, L"%d\n", 5), "") == 2);
  FCLOSE(g, w);
  STDIO_POINTER(N("freopen"), a, freopen("a", "w+", stdout), "mode=%s", "w+");
  MUST(STDIO("printf", a, _IO_printf("%d\n", 67), "") == 3);
  MUST(STDIO("puts", a, _IO_puts("89"), "ret_len=%d", 3) >= 0);
  MUST(STDIO("vprintf", a, old_list(2, NULL, "%d\n", 10), "") == 3);
  STDIO_POINTER(N("freopen"), a, freopen("a", "r", stdin), "mode=%s", "r");
  STDIO("fflush", a, fflush(stdout), "");
  MUST(STDIO_EOF("scanf", a, old_scanf("%d", &number), "") == 1 && number == 67);
  MUST(STDIO_EOF("vscanf", a, old_list(3, NULL, "%d", &number), "") == 1 && number == 89);
}

static void aliases(void) {
  char data[16] = "";
  int ends[2];
  struct statfs about;
  int fd = POSIX("open", a, __open("a", O_RDWR | O_TRUNC), "flags=%d", O_RDWR | O_TRUNC);
  MUST(POSIX("write", a, __write(fd, "0123\n", 5), "count=%d", 5) == 5);
  MUST(POSIX("pwrite64", a, __pwrite64(fd, "0123\n", 5, 5), "count=%d offset=%d", 5, 5) == 5);
  MUST(POSIX("lseek", a, __lseek(fd, 0, SEEK_SET), "offset=%d whence=%d", 0, SEEK_SET) == 0);
  MUST(POSIX("read", a, __read(fd, data, 16), "count=%d", 16) == 10);
  MUST(POSIX("pread64", a, __pread64(fd, data, 16, 8), "count=%d offset=%d", 16, 8) == 2);
  MUST(POSIX("fcntl", a, __fcntl(fd, F_GETFD), "cmd=%d", F_GETFD) == 0);
  int other = POSIX("open64", w, __open64("w", O_RDWR), "flags=%d", O_RDWR);
  MUST(POSIX("dup2", a, __dup2(fd, other), "oldfd=%d newfd=%d", fd, other) == other);
  MUST(POSIX("write", a, write(other, "x", 1), "count=%d", 1) == 1);
  MUST(POSIX("close", a, __close(other), "") == 0);
  MUST(POSIX("close", a, __close(fd), "") == 0);
  MUST(POSIX("statfs", a, __statfs("a", &about), "") == 0);
  MUST(POSIX("pipe", NULL, __pipe(ends), "") == 0);
  const char* way = FD(ends[0]);
  CLOSE(ends[0], way);
  CLOSE(ends[1], way);
  char* line = NULL;
  size_t room = 0;
  OPEN(f, "a", "r");
  MUST(STDIO_EOF("getdelim", a, __getdelim(&line, &room, '\n', f), "delim=%d", '\n') == 5);
  free(line);
  FCLOSE(f, a);
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  strcpy(a_, P("a"));
  strcpy(w_, P("w"));
  CLOSE(POSIX(N("creat"), a, creat("a", 0600), "mode=%d", 0600), a);
  wide();
  trees();
  asynchronous();
  aliases();
  old_spellings();
  standard();
  return finish();
}
