/* A library for a name space of its own: its libc is not the program's. Each function does one kind
 * of thing to a file and says what came of it, with the errno of its own libc. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAY(...) snprintf(said, room, __VA_ARGS__)

extern char** environ;

void descriptors(const char* path, char* said, size_t room) {
  char text[8] = "";
  struct stat info;
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
  ssize_t written = write(fd, "abcdef", 6);
  int copy = dup(fd);
  close(fd);
  off_t at = lseek(copy, 2, SEEK_SET);
  ssize_t got = read(copy, text, sizeof text);
  int told = fstat(copy, &info);
  SAY("%zd %ld %zd %.4s %d %ld %d", written, (long)at, got, text, told, (long)info.st_size,
      close(copy));
}

void streams(const char* path, char* said, size_t room) {
  char word[16] = "";
  double number = 0;
  FILE* stream = fopen(path, "w+");
  int put = fprintf(stream, "%s %d %.3f %s %d %d %d %d %ld\n", "word", 1, 2.5, "x", 3, 4, 5, 6, 7L);
  fflush(stream);
  rewind(stream);
  int found = fscanf(stream, "%15s %*d %lf", word, &number);
  SAY("%d %d %s %.2f %d", put, found, word, number, fclose(stream));
}

void failures(const char* path, char* said, size_t room) {
  char missing[512];
  snprintf(missing, sizeof missing, "%s.not", path);
  errno = 0;
  int fd = open(missing, O_RDONLY);
  int opened = errno;
  ssize_t got = pread(-1, missing, 1, 0);
  int read_error = errno;
  int told = unlink(missing);
  int unlinked = errno;
  int wrong = open((const char*)8, O_RDONLY);
  SAY("%d %d, %zd %d, %d %d, %d %d", fd, opened, got, read_error, told, unlinked, wrong, errno);
}

/* A jump, not a call: whoever is returned to is the program. */
ssize_t pass_on(int fd, const void* data, size_t size) { return write(fd, data, size); }

void by_number(const char* path, char* said, size_t room) {
  long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
  long put = syscall(SYS_write, fd, "12345", 5);
  errno = 0;
  long wrong = syscall(SYS_write, -1, "1", 1);
  int why = errno;
  SAY("%ld %ld %d %ld", put, wrong, why, syscall(SYS_close, fd));
}

void mapped(const char* path, char* said, size_t room) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  int grown = ftruncate(fd, 8192);
  char* at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  at[5000] = 'x';
  int synced = msync(at, 8192, MS_SYNC);
  int gone = munmap(at, 8192);
  SAY("%d %d %d %d", grown, synced, gone, close(fd));
}

void forks(const char* path, char* said, size_t room) {
  pid_t child = fork();
  if (child == 0) {
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    _exit(write(fd, "child", 5) == 5 ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  SAY("%d", WEXITSTATUS(status));
}

void runs(const char* path, char* said, size_t room) {
  char* words[] = {"touch", (char*)path, NULL};
  int status[3] = {-1, -1, -1};
  pid_t child = vfork();
  if (child == 0) {
    close(0);
    execvp("touch", words);
    _exit(1);
  }
  waitpid(child, &status[0], 0);
  child = fork();
  if (child == 0) {
    execlp("sh", "sh", "-c", "exit $(($1 + $2))", "name", "4", "5", (char*)NULL);
    _exit(1);
  }
  waitpid(child, &status[1], 0);
  posix_spawnp(&child, "touch", NULL, NULL, words, environ);
  waitpid(child, &status[2], 0);
  errno = 0;
  int none = execv("/not/there", words);
  SAY("%d %d %d %d %d", status[0], WEXITSTATUS(status[1]), status[2], none, errno);
}

static void* in_thread(void* path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (int i = 0; i < 100; ++i)
    if (write(fd, "t", 1) != 1) return path;
  close(fd);
  return NULL;
}
void threads(const char* path, char* said, size_t room) {
  pthread_t thread[3];
  void* result[3];
  for (int i = 0; i < 3; ++i) pthread_create(&thread[i], NULL, in_thread, (void*)path);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], &result[i]);
  SAY("%d %d %d", result[0] == NULL, result[1] == NULL, result[2] == NULL);
}

static volatile sig_atomic_t handled;
static char handled_path[512];
static void handle(int number) {
  int fd = open(handled_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  handled += write(fd, "h", 1) == 1 && number == SIGUSR1;
  close(fd);
  errno = 77;
}
void signals(const char* path, char* said, size_t room) {
  snprintf(handled_path, sizeof handled_path, "%s", path);
  signal(SIGUSR1, handle);
  for (int i = 0; i < 10; ++i) raise(SIGUSR1);
  int why = errno;
  SAY("%d %d", (int)handled, why);
  signal(SIGUSR1, SIG_DFL);
}

/* Another library, which comes into the same name space. */
void loads(const char* path, char* said, size_t room) {
  void* handle = dlopen(getenv("BELOW"), RTLD_NOW);
  int (*work)(const char*) = NULL;
  if (handle != NULL) *(void**)&work = dlsym(handle, "work");
  SAY("%d", work == NULL ? -1 : work(path));
}
