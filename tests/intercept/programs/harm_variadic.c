/* Functions with a variable number of arguments: each argument must arrive.

     harm_variadic open|fcntl|ioctl|syscall|stdio|wide
     harm_variadic execl|execle|execlp|execv...     becomes `harm_variadic show` with 20 words
     harm_variadic show WORDS...                    prints its words and its environment */
#include "harm.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <wchar.h>

extern char** environ;

static unsigned mode_of(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 ? info.st_mode & 07777 : 0;
}

static void opens(void) {
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  umask(0);
  SHOW(open("a", O_RDWR | O_CREAT | O_EXCL, 0641));
  SHOW(open("a", O_RDWR | O_CREAT | O_EXCL, 0641));
  SHOW(open64("b", O_RDWR | O_CREAT, 06711));
  SHOW(openat(here, "c", O_RDWR | O_CREAT, 0123));
  SHOW(openat64(here, "d", O_RDWR | O_CREAT, 0456));
  SHOW(creat("e", 0765));
  umask(027);
  SHOW(open("f", O_RDWR | O_CREAT, 0777));
  SHOW(open("a", O_RDWR)); /* no third argument */
  const int unnamed = open(".", O_RDWR | O_TMPFILE, 0604);
  struct stat info;
  if (unnamed >= 0) {
    SHOW(fstat(unnamed, &info));
    say("unnamed %o", info.st_mode & 07777);
  }
  for (const char* letter = "abcdef"; *letter; ++letter) {
    const char path[2] = {*letter, 0};
    say("%s %o", path, mode_of(path));
  }
  SHOW(open("none", O_RDONLY));
  SHOW(openat(9999, "none", O_RDONLY));
  SHOW(openat(unnamed, "none", O_RDONLY));
  umask(0);
  char name[40]; /* of this process: others may run beside it */
  snprintf(name, sizeof name, "/dftracer_harm.%d", getpid());
  const int shared = shm_open(name, O_RDWR | O_CREAT, 0615);
  if (shared >= 0) {
    fstat(shared, &info);
    say("shm %o", info.st_mode & 07777);
    SHOW(shm_unlink(name));
  }
  sem_t* semaphore = sem_open(name, O_CREAT, 0600, 5);
  if (semaphore != SEM_FAILED) {
    int value = 0;
    sem_getvalue(semaphore, &value);
    say("sem %d", value);
    sem_close(semaphore);
    sem_unlink(name);
  }
  struct mq_attr attributes = {.mq_maxmsg = 3, .mq_msgsize = 77};
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
  if (queue != (mqd_t)-1) {
    struct mq_attr found = {0};
    mq_getattr(queue, &found);
    say("mq %ld %ld", found.mq_maxmsg, found.mq_msgsize);
    mq_close(queue);
    mq_unlink(name);
  }
}

static int other_locks(int command, short type) {
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 5, .l_len = 10};
    const int fd = open("data", O_RDWR);
    const int got = fcntl(fd, command, &lock);
    _exit(got == 0 ? 0 : errno);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static void fcntls(void) {
  const int fd = open("data", O_RDWR);
  int ends[2];
  NEED(pipe(ends) == 0);
  SHOW(fcntl(fd, F_DUPFD, 0));
  SHOW(fcntl(fd, F_DUPFD, 20));
  SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 30));
  SHOW(fcntl(fd, F_DUPFD, -1));
  SHOW(fcntl(20, F_GETFD));
  SHOW(fcntl(30, F_GETFD));
  SHOW(fcntl(20, F_SETFD, FD_CLOEXEC));
  SHOW(fcntl(20, F_GETFD));
  SHOW(fcntl(fd, F_GETFL));
  SHOW(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
  SHOW(fcntl(fd, F_GETFL));
  SHOW(fcntl(fd, F_SETFL, 0));

  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100};
  SHOW(fcntl(fd, F_SETLK, &lock));
  SHOW(other_locks(F_SETLK, F_WRLCK));
  lock.l_type = F_UNLCK;
  SHOW(fcntl(fd, F_SETLKW, &lock));
  SHOW(other_locks(F_SETLK, F_WRLCK));
  lock = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_END, .l_start = -10, .l_len = 5};
  SHOW(fcntl(fd, F_OFD_SETLK, &lock));
  struct flock seen = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  SHOW(fcntl(fd, F_GETLK, &seen));
  say("lock %d %d %ld %ld %d", seen.l_type, seen.l_whence, (long)seen.l_start, (long)seen.l_len,
      seen.l_pid);
  struct flock64 seen64 = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  SHOW(fcntl64(fd, F_OFD_GETLK, &seen64));
  say("lock64 %d %ld", seen64.l_type, (long)seen64.l_start);
  seen.l_pid = 0;
  SHOW(fcntl(fd, F_OFD_SETLKW, &seen));
  SHOW(flock(fd, LOCK_EX | LOCK_NB));

  SHOW(fcntl(ends[0], F_SETOWN, getpid()));
  SHOW(fcntl(ends[0], F_GETOWN) == getpid());
  struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = getpid()};
  SHOW(fcntl(ends[0], F_SETOWN_EX, &owner));
  memset(&owner, 0, sizeof owner);
  SHOW(fcntl(ends[0], F_GETOWN_EX, &owner));
  say("owner %d %d", owner.type, owner.pid == getpid());
  SHOW(fcntl(ends[0], F_SETSIG, SIGUSR1));
  SHOW(fcntl(ends[0], F_GETSIG));
  SHOW(fcntl(ends[0], F_SETPIPE_SZ, 8192));
  SHOW(fcntl(ends[0], F_GETPIPE_SZ));
  SHOW(fcntl(fd, F_GETLEASE));
  SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
  uint64_t hint = 2;
  SHOW(fcntl(fd, F_SET_RW_HINT, &hint));
  hint = 0;
  SHOW(fcntl(fd, F_GET_RW_HINT, &hint));
  say("hint %llu", (unsigned long long)hint);
  const int memory = memfd_create("sealed", MFD_ALLOW_SEALING);
  SHOW(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW));
  SHOW(fcntl(memory, F_GET_SEALS));
  SHOW(ftruncate(memory, 1000));
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  signal(SIGIO, SIG_IGN);
  SHOW(fcntl(here, F_NOTIFY, (long)DN_CREATE));
  SHOW(fcntl(9999, F_GETFD));
  SHOW(fcntl(fd, 12345, 1L));
}

static void ioctls(void) {
  int ends[2];
  NEED(pipe(ends) == 0);
  NEED(write(ends[1], "0123456", 7) == 7);
  int number = -1;
  SHOW(ioctl(ends[0], FIONREAD, &number));
  say("%d", number);
  number = 1;
  SHOW(ioctl(ends[0], FIONBIO, &number));
  say("%d", fcntl(ends[0], F_GETFL) & O_NONBLOCK);
  SHOW(ioctl(ends[0], FIOCLEX));
  say("%d", fcntl(ends[0], F_GETFD));
  SHOW(ioctl(ends[0], FIONCLEX));
  const int fd = open("data", O_RDWR);
  number = -1;
  SHOW(ioctl(fd, FIGETBSZ, &number));
  say("%d", number > 0);
  struct winsize size = {.ws_row = 33, .ws_col = 77};
  SHOW(ioctl(fd, TIOCGWINSZ, &size));
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0) {
    SHOW(ioctl(terminal, TIOCSWINSZ, &size));
    memset(&size, 0, sizeof size);
    SHOW(ioctl(terminal, TIOCGWINSZ, &size));
    say("%d %d", size.ws_row, size.ws_col);
    SHOW(isatty(terminal));
    const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    SHOW(other >= 0);
    SHOW(write(terminal, "typed\n", 6));
    char line[20] = "";
    SHOW(read(other, line, sizeof line));
    say("%.5s", line);
  }
  SHOW(ioctl(9999, FIONREAD, &number));
  struct file_clone_range range = {.src_fd = fd, .src_length = 1};
  const int copy = open("copy", O_RDWR | O_CREAT, 0600);
  SHOW(ioctl(copy, FICLONERANGE, &range) < 0);
  SHOW(ioctl(copy, FICLONE, 9999));
}

static void syscalls(void) {
  const int fd = open("data", O_RDWR);
  char buffer[20] = "";
  struct {
    char* base;
    size_t length;
  } parts[2] = {{buffer, 4}, {buffer + 8, 4}};
  SHOW(syscall(SYS_preadv2, fd, parts, 2, 65L, 0L, 0));
  say("%.4s %.4s", buffer, buffer + 8);
  SHOW(syscall(SYS_getpid) == getpid());
  SHOW(syscall(SYS_openat, AT_FDCWD, "s", O_RDWR | O_CREAT, 0605));
  SHOW(syscall(SYS_read, 9999, buffer, 1));
  say("%o", mode_of("s"));
  char* memory =
      (char*)syscall(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);
  say("%d", memory[65]);
  char* target = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* moved = mremap(memory, 8192, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  SHOW(moved == target);
  say("%d", moved[65]);
  moved = mremap(moved, 4096, 16384, MREMAP_MAYMOVE);
  SHOW(moved != MAP_FAILED);
  SHOW(mremap(moved, 4096, 1ul << 60, 0) == MAP_FAILED);
  SHOW(prctl(PR_SET_NAME, "renamed", 0, 0, 0));
  char name[16] = "";
  SHOW(prctl(PR_GET_NAME, name, 0, 0, 0));
  say("%s", name);
  SHOW(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
  SHOW(prctl(PR_GET_SPECULATION_CTRL, 99, 1, 1, 1));
}

static void stdio(void) {
  FILE* file = fopen("text", "w+");
  const char* words[] = {"one", "two", "three", "four", "five", "six", "seven", "eight"};
  SHOW(fprintf(file,
               "%d %s %f %ld %s %g %lld %s %e %c %s %a %u %s %.3f %x %s %.10g %hhd %s %f %f\n", 1,
               words[0], 2.5, 3L, words[1], -4.25, 5LL, words[2], 6e77, '7', words[3], 0.75, 8u,
               words[4], 9.125, 10, words[5], 11.0 / 3, (char)12, words[6], 13.5, 14.5));
  SHOW(fprintf(file, "%Lf %d %Lg %f %s %Le\n", 1.25L, 2, 3.5e300L, 4.5, words[7], 5.5e-300L));
  SHOW(fprintf(file, "%*d %-*s| %.*f\n", 7, 42, 9, words[1], 3, 2.0 / 3));
  SHOW(fprintf(file, "%3$s %1$d %2$f\n", 1, 2.5, words[3]));
  SHOW(fprintf(file, "%ls %lc %n\n", L"wide", L'w', &(int){0}));
  SHOW(fflush(file));
  SHOW(dprintf(fileno(file), "%d %s %f %d %d %d %d %d %s %f\n", 1, words[0], 2.5, 3, 4, 5, 6, 7,
               words[1], 8.5));
  rewind(file);
  char line[400];
  while (fgets(line, sizeof line, file)) {
    say("%s", line);
  }
  FILE* numbers = fopen("numbers", "w+");
  fputs("1 2.5 word 3 4.5 5 6.5 7 8.5 9 10.5 11 12.5 last 13.75\n", numbers);
  rewind(numbers);
  int i[6] = {0};
  float f = 0;
  double d[4] = {0};
  long double ld = 0, end = 0;
  char word[20] = "", last[20] = "";
  SHOW(fscanf(numbers, "%d %f %s %d %lf %d %lf %d %lf %d %lf %d %Lf %19s %Lf", &i[0], &f, word,
              &i[1], &d[0], &i[2], &d[1], &i[3], &d[2], &i[4], &d[3], &i[5], &ld, last, &end));
  say("%d %f %s %d %f %d %f %d %f %d %f %d %Lf %s %Lf", i[0], (double)f, word, i[1], d[0], i[2],
      d[1], i[3], d[2], i[4], d[3], i[5], ld, last, end);
  SHOW(fscanf(numbers, "%d", &i[0]));
  SHOW(fclose(numbers));
  SHOW(fclose(file));
  printf("%s %d %f %Lf %d %d %d %d %d %f %s\n", "printed", 1, 2.5, 3.5L, 4, 5, 6, 7, 8, 9.5, "end");
  SHOW(fflush(stdout));
  int a = 0, b = 0;
  double c = 0;
  SHOW(scanf("%d %lf %d", &a, &c, &b));
  say("%d %f %d", a, c, b);
}

static void wide(void) {
  FILE* file = fopen("wide", "w+");
  SHOW(fwprintf(file, L"%d %ls %f %Lf %s\n", 1, L"two", 3.5, 4.5L, "five"));
  rewind(file);
  int number = 0;
  wchar_t word[20] = L"";
  double value = 0;
  SHOW(fwscanf(file, L"%d %19ls %lf", &number, word, &value));
  say("%d %ls %f", number, word, value);
  SHOW(fclose(file));
}

#define WORDS                                                                                    \
  "show", "2", "three 3", "", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", \
      "17", "18", "19", "\xff\xfe", "21"

static int become(const char* how, const char* self, char* by_name) {
  char* words[] = {"harm", WORDS, NULL};
  char* environment[] = {"ONE=1", "EMPTY=", "THREE=a b", NULL};
  if (strcmp(how, "execl") == 0) {
    return execl(self, "harm", WORDS, (char*)NULL);
  }
  if (strcmp(how, "execle") == 0) {
    return execle(self, "harm", WORDS, (char*)NULL, environment);
  }
  if (strcmp(how, "execlp") == 0) {
    return execlp(by_name, "harm", WORDS, (char*)NULL);
  }
  if (strcmp(how, "execv") == 0) {
    return execv(self, words);
  }
  if (strcmp(how, "execve") == 0) {
    return execve(self, words, environment);
  }
  if (strcmp(how, "execvp") == 0) {
    return execvp(by_name, words);
  }
  if (strcmp(how, "execvpe") == 0) {
    return execvpe(by_name, words, environment);
  }
  if (strcmp(how, "fexecve") == 0) {
    return fexecve(open(self, O_RDONLY | O_CLOEXEC), words, environment);
  }
  if (strcmp(how, "execveat") == 0) {
    return execveat(AT_FDCWD, self, words, environment, 0);
  }
  if (strcmp(how, "many") == 0) { /* more words than fit into a page */
    char** many = malloc(20001 * sizeof *many);
    for (int i = 0; i < 20000; ++i) {
      many[i] = "word";
    }
    many[0] = "harm";
    many[1] = "count";
    many[20000] = NULL;
    return execv(self, many);
  }
  if (strcmp(how, "fail") == 0) {
    SHOW(execl("/nonexistent/program", "word", "two", (char*)NULL));
    SHOW(execlp("nonexistent-program", "word", (char*)NULL));
    SHOW(execvp("nonexistent-program", words));
    SHOW(execv("data", words));
    SHOW(execv(".", words));
    return 0;
  }
  int status = -1, got = -1;
  pid_t child = 0;
  errno = 77;
  if (strcmp(how, "spawn") == 0) {
    got = posix_spawn(&child, self, NULL, NULL, words, environment);
  } else if (strcmp(how, "spawnp") == 0) {
    got = posix_spawnp(&child, by_name, NULL, NULL, words, environment);
  }
  const int error = errno;
  SHOW(waitpid(child, &status, 0) == child);
  say("spawn %d, errno %d; child %d", got, error, status);
  return 0;
}

static int show(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    say("argument %s", argv[i]);
  }
  for (char** variable = environ; *variable; ++variable) {
    /* Those that the test sets for a traced run differ; where the program says which variables
       there are (ONE), nothing may be added. */
    if (getenv("ONE") ||
        (strncmp(*variable, "DFTRACER_", 9) != 0 && strncmp(*variable, "LD_PRELOAD=", 11) != 0)) {
      say("variable %s", *variable);
    }
  }
  return 5;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "show") == 0) {
    return show(argc, argv);
  }
  if (strcmp(what, "count") == 0) {
    say("%d words", argc);
  } else if (strcmp(what, "open") == 0) {
    opens();
  } else if (strcmp(what, "fcntl") == 0) {
    fcntls();
  } else if (strcmp(what, "ioctl") == 0) {
    ioctls();
  } else if (strcmp(what, "syscall") == 0) {
    syscalls();
  } else if (strcmp(what, "stdio") == 0) {
    stdio();
  } else if (strcmp(what, "wide") == 0) {
    wide();
  } else {
    return become(what, argv[2], argv[3]);
  }
  return 0;
}
