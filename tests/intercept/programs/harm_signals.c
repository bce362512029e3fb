/* Signals: calls that they interrupt, handlers that do I/O, and what they do by default.

     harm_signals eintr|restart|eagain|epipe|sigpipe|mask|nested
     harm_signals handler MARKS         a timer's handler makes so many; prints what main made
     harm_signals altstack SPARE MARKS  the same on a small stack of its own
     harm_signals jump TIMES            out of a read by siglongjmp
     harm_signals cookie TIMES          out of an fwrite by longjmp */
#include "harm.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void nothing(int number) { (void)number; }

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  NEED(sigaction(number, &action, NULL) == 0);
}

static void timer(int microseconds) {
  const struct itimerval every = {{0, microseconds}, {0, microseconds}};
  NEED(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

/* A pipe that is empty, or as full as it gets. */
static void make_pipe(int ends[2], int full) {
  static char page[4096];
  NEED(pipe(ends) == 0);
  if (full) {
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], page, sizeof page) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
  }
}

/* The timer comes again and again, so one that comes too early does not matter. */
static void interrupted(void) {
  handle(SIGALRM, nothing, 0);
  char buffer[4096];
  struct iovec part = {buffer, sizeof buffer};
  int empty[2], full[2];
  make_pipe(empty, 0);
  make_pipe(full, 1);
  const int fd = open("data", O_RDWR);
  NEED(mkfifo("fifo", 0600) == 0);
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int own = open("data", O_RDWR);
    NEED(fcntl(own, F_SETLK, &lock) == 0);
    NEED(flock(own, LOCK_EX) == 0);
    close(full[0]);
    NEED(write(empty[1], "r", 1) == 1);
    pause();
    _exit(0);
  }
  NEED(read(empty[0], buffer, 1) == 1);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct pollfd wait_for = {.fd = empty[0], .events = POLLIN};
  FILE* stream = fdopen(dup(empty[0]), "r");
  timer(3000);
  SHOW(read(empty[0], buffer, sizeof buffer));
  SHOW(readv(empty[0], &part, 1));
  SHOW(write(full[1], buffer, sizeof buffer));
  SHOW(writev(full[1], &part, 1));
  SHOW(sendfile(full[1], fd, NULL, 4096));
  SHOW(splice(empty[0], NULL, full[1], NULL, 10, 0));
  SHOW(open("fifo", O_RDONLY));
  SHOW(fcntl(fd, F_SETLKW, &lock));
  SHOW(flock(fd, LOCK_EX));
  SHOW(waitpid(child, NULL, 0));
  SHOW(poll(&wait_for, 1, 100000));
  SHOW(pause());
  SHOW(sleep(100) > 90);
  SHOW_POINTER(fgets(buffer, sizeof buffer, stream));
  SHOW(ferror(stream) != 0);
  clearerr(stream);
  SHOW(fread(buffer, 1, 10, stream));
  clearerr(stream);
  SHOW(fgetc(stream));
  timer(0);
  kill(child, SIGKILL);
  SHOW(waitpid(child, NULL, 0) == child);
}

static void restarted(void) {
  handle(SIGALRM, nothing, SA_RESTART);
  int empty[2];
  make_pipe(empty, 0);
  const pid_t child = fork();
  if (child == 0) {
    usleep(100000);
    NEED(write(empty[1], "written", 7) == 7);
    usleep(100000);
    NEED(write(empty[1], "a line\n", 7) == 7);
    _exit(7);
  }
  timer(2000);
  char buffer[100] = "";
  SHOW(read(empty[0], buffer, sizeof buffer));
  FILE* stream = fdopen(empty[0], "r");
  SHOW_POINTER(fgets(buffer, sizeof buffer, stream));
  int status = -1;
  SHOW(waitpid(child, &status, 0) == child);
  timer(0);
  say("%s %d", buffer, status);
}

static void again(void) {
  int empty[2], full[2];
  char buffer[4096];
  make_pipe(empty, 0);
  make_pipe(full, 1);
  fcntl(empty[0], F_SETFL, O_NONBLOCK);
  fcntl(full[1], F_SETFL, O_NONBLOCK);
  SHOW(read(empty[0], buffer, sizeof buffer));
  SHOW(write(full[1], buffer, sizeof buffer));
  SHOW(splice(empty[0], NULL, full[1], NULL, 10, SPLICE_F_NONBLOCK));
  FILE* stream = fdopen(empty[0], "r");
  SHOW(fread(buffer, 1, 10, stream));
  SHOW(ferror(stream) != 0);
  clearerr(stream);
  SHOW_POINTER(fgets(buffer, sizeof buffer, stream));
  FILE* out = fdopen(full[1], "w");
  setvbuf(out, NULL, _IONBF, 0);
  SHOW(fwrite(buffer, 1, 100, out));
  SHOW(fputs("text", out));
  NEED(write(empty[1], "abc\n", 4) == 4);
  clearerr(stream);
  SHOW_POINTER(fgets(buffer, sizeof buffer, stream));
  say("%s", buffer);
}

static void broken_pipe(void) {
  int ends[2];
  make_pipe(ends, 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  SHOW(write(ends[1], "x", 1));
  FILE* out = fdopen(ends[1], "w");
  SHOW(fputs("text", out));
  SHOW(fflush(out));
  SHOW(fclose(out));
  FILE* to = popen("exec true", "w");
  siginfo_t gone;
  NEED(waitid(P_ALL, 0, &gone, WEXITED | WNOWAIT) == 0);
  fputs("to nobody\n", to);
  SHOW(fflush(to));
  SHOW(pclose(to));
}

static void show_dispositions(const char* where) {
  sigset_t set;
  sigprocmask(SIG_SETMASK, NULL, &set);
  char line[200] = "";
  for (int number = 1; number < 65; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0) {
      const char state = action.sa_handler == SIG_DFL   ? '.'
                         : action.sa_handler == SIG_IGN ? 'i'
                                                        : 'h';
      strncat(line, (char[]){sigismember(&set, number) ? 'B' : '-', state, 0}, 3);
    }
  }
  stack_t stack;
  sigaltstack(NULL, &stack);
  say("%s %s %d", where, line, stack.ss_flags);
}

static void* thread_shows(void* unused) {
  const int fd = open("data", O_RDONLY);
  marks(fd, 1001, 0, 3000);
  show_dispositions("thread");
  close(fd);
  return unused;
}

static void mask(void) {
  show_dispositions("begin");
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  handle(SIGTERM, nothing, 0);
  signal(SIGHUP, SIG_IGN);
  const int fd = open("data", O_RDONLY);
  marks(fd, 1000, 0, 20000); /* enough for everything that happens now and then */
  show_dispositions("after");
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, thread_shows, NULL) == 0);
  pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child == 0) {
    marks(fd, 1002, 0, 10);
    show_dispositions("child");
    exit(0);
  }
  waitpid(child, NULL, 0);
  raise(SIGUSR2);
  sigpending(&set);
  say("pending %d", sigismember(&set, SIGUSR2));
}

/* ---- Handlers that do I/O -------------------------------------------------------------------- */

static volatile sig_atomic_t handled, wanted;
static int data;

static void recording_handler(int number) {
  (void)number;
  const int saved = errno;
  if (handled < wanted) {
    char buffer[16];
    const int fd = open("data", O_RDONLY);
    const ssize_t got = pread(fd, buffer, 16, 16 * (handled % 16));
    if (got != 16 || buffer[3] != (char)(16 * (handled % 16) + 3)) {
      say("wrong bytes in the handler");
    }
    marks(fd, 2000, handled, handled + 1);
    ++handled;
    close(fd);
  }
  errno = saved;
}

static void in_handler(int count) {
  wanted = count;
  data = open("data", O_RDONLY);
  handle(SIGALRM, recording_handler, SA_RESTART);
  timer(500);
  int made = 0;
  while (handled < wanted) {
    marks(data, 1000, made, made + 100);
    made += 100;
    usleep(200);
  }
  timer(0);
  say("%d %d", made, (int)handled);
}

static void small_handler(int number) {
  (void)number;
  /* As much as a careful handler may do, and more than one chunk of records. */
  char byte;
  const int fd = open("data", O_RDONLY);
  for (int i = 0; i < wanted; ++i) {
    if (pread(fd, &byte, 1, i) != 1) {
      (void)!write(1, "wrong\n", 6);
    }
  }
  close(fd);
}

static void on_small_stack(int spare, int count) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + (size_t)spare;
  const size_t whole = (size + page - 1) / page * page;
  char* memory =
      mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  NEED(memory != MAP_FAILED);
  NEED(mprotect(memory, page, PROT_NONE) == 0);
  /* The lowest byte of the stack follows the guard page. */
  const stack_t stack = {.ss_sp = memory + page, .ss_size = size};
  NEED(sigaltstack(&stack, NULL) == 0);
  handle(SIGUSR1, small_handler, SA_ONSTACK);
  wanted = count;
  raise(SIGUSR1);
  raise(SIGUSR1);
  say("back");
}

static void second_handler(int number) {
  (void)number;
  marks(data, 3000, wanted * 10, wanted * 10 + 10);
}

static void first_handler(int number) {
  (void)number;
  marks(data, 2000, wanted * 20, wanted * 20 + 10);
  raise(SIGUSR2);
  marks(data, 2000, wanted * 20 + 10, wanted * 20 + 20);
}

static void nested(void) {
  data = open("data", O_RDONLY);
  handle(SIGUSR1, first_handler, 0);
  handle(SIGUSR2, second_handler, 0);
  for (wanted = 0; wanted < 50; ++wanted) {
    marks(data, 1000, wanted * 10, wanted * 10 + 10);
    raise(SIGUSR1);
  }
  say("done");
}

/* ---- Out of a call by a jump ----------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t armed;

static void jumping_handler(int number) {
  (void)number;
  if (armed) {
    armed = 0;
    siglongjmp(back, 1);
  }
}

static void jump(int times) {
  data = open("data", O_RDONLY);
  int empty[2];
  make_pipe(empty, 0);
  handle(SIGALRM, jumping_handler, 0);
  timer(700);
  static volatile int i;
  for (i = 0; i < times; ++i) {
    if (sigsetjmp(back, 1) == 0) {
      char byte;
      armed = 1;
      for (;;) {
        (void)!read(empty[0], &byte, 1);
      }
    }
    marks(data, 1000, i * 50, i * 50 + 50);
  }
  timer(0);
  say("%d", i);
}

static jmp_buf out_of_stream;

static ssize_t jumping_write(void* cookie, const char* bytes, size_t size) {
  (void)bytes;
  marks(data, 2000, *(int*)cookie, *(int*)cookie + 1);
  if (size > 0) {
    longjmp(out_of_stream, 1);
  }
  return 0;
}

static void cookie(int times) {
  data = open("data", O_RDONLY);
  static int i;
  for (i = 0; i < times; ++i) {
    FILE* stream = fopencookie(&i, "w", (cookie_io_functions_t){.write = jumping_write});
    setvbuf(stream, NULL, _IONBF, 0);
    if (setjmp(out_of_stream) == 0) {
      fwrite("bytes", 1, 5, stream);
      say("not reached");
    }
    marks(data, 1000, i * 10, i * 10 + 10);
  }
  say("%d", i);
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  const char* what = argv[1];
  const int first = argc > 2 ? atoi(argv[2]) : 0;
  const int second = argc > 3 ? atoi(argv[3]) : 0;
  if (strcmp(what, "eintr") == 0) {
    interrupted();
  } else if (strcmp(what, "restart") == 0) {
    restarted();
  } else if (strcmp(what, "eagain") == 0) {
    again();
  } else if (strcmp(what, "epipe") == 0) {
    broken_pipe();
  } else if (strcmp(what, "sigpipe") == 0) {
    int ends[2];
    make_pipe(ends, 0);
    close(ends[0]);
    say("before");
    (void)!write(ends[1], "x", 1);
    say("not reached");
  } else if (strcmp(what, "mask") == 0) {
    mask();
  } else if (strcmp(what, "nested") == 0) {
    nested();
  } else if (strcmp(what, "handler") == 0) {
    in_handler(first);
  } else if (strcmp(what, "altstack") == 0) {
    on_small_stack(first, second);
  } else if (strcmp(what, "jump") == 0) {
    jump(first);
  } else if (strcmp(what, "cookie") == 0) {
    cookie(first);
  }
  return 0;
}
