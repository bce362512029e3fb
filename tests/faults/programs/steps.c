/* Does one step after another, as its arguments say: VERB or VERB=VALUE. See run_step. */
#include "faults.h"

#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static long who;
static long number;
static char** words;
static int at;
static int count;

static void fail(const char* what) {
  print("failed %s: %s", what, strerror(errno));
  _exit(99);
}

static int signal_named(const char* name) {
  static const struct {
    const char* name;
    int number;
  } known[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"SEGV", SIGSEGV}, {"ABRT", SIGABRT},
               {"XCPU", SIGXCPU}, {"BUS", SIGBUS},   {"XFSZ", SIGXFSZ}, {"KILL", SIGKILL},
               {"HUP", SIGHUP},   {"QUIT", SIGQUIT}, {"FPE", SIGFPE},   {"ILL", SIGILL},
               {"PIPE", SIGPIPE}, {"USR1", SIGUSR1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strncmp(name, known[i].name, strlen(known[i].name)) == 0) return known[i].number;
  }
  fail(name);
  return 0;
}

static void on_signal_exit(int number_of) {
  print("handler %d", number_of);
  _exit(42);
}
static void on_signal_return(int number_of) { print("handler %d", number_of); }

/* What the program would see of the tracer in its own signal state. */
static void print_dispositions(void) {
  unsigned long sum = 0;
  for (int i = 1; i < 65; ++i) {
    struct sigaction action;
    if (sigaction(i, NULL, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL)
      print("signal %d has a handler, flags %x", i, (unsigned)action.sa_flags);
    sum += (unsigned long)action.sa_flags;
  }
  sigset_t mask;
  sigset_t pending;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  sigpending(&pending);
  for (int i = 1; i < 65; ++i) {
    if (sigismember(&mask, i) == 1) print("signal %d is blocked", i);
    if (sigismember(&pending, i) == 1) print("signal %d is pending", i);
  }
  print("dispositions %lu", sum);
}

static void fill_disk(const char* path) {
  static char zeros[65536];
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) fail(path);
  for (size_t block = sizeof zeros; block > 0; block /= 16) {
    while (write(fd, zeros, block) == (ssize_t)block) continue;
  }
  close(fd);
}

static int remove_entry(const char* path, const struct stat* info, int type, struct FTW* where) {
  (void)info, (void)type, (void)where;
  return remove(path);
}

static long address_space(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) fail("statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void set_limit(const char* value) {
  struct rlimit limit;
  int which = -1;
  long extra = 0;
  if (strncmp(value, "fsize:", 6) == 0) which = RLIMIT_FSIZE;
  if (strncmp(value, "core:", 5) == 0) which = RLIMIT_CORE;
  if (strncmp(value, "nproc:", 6) == 0) which = RLIMIT_NPROC;
  if (strncmp(value, "nofile:", 7) == 0) which = RLIMIT_NOFILE;
  if (strncmp(value, "as:", 3) == 0) {
    which = RLIMIT_AS;
    extra = address_space();
  }
  if (which < 0 || getrlimit((__rlimit_resource_t)which, &limit) != 0) fail(value);
  limit.rlim_cur = strcmp(strchr(value, ':') + 1, "none") == 0
                       ? limit.rlim_max
                       : (rlim_t)(atol(strchr(value, ':') + 1) + extra);
  if (setrlimit((__rlimit_resource_t)which, &limit) != 0) fail(value);
}

/* A file of the program's own, written as far as it goes. */
static void write_own(const char* value) {
  char path[4096];
  const char* colon = strrchr(value, ':');
  snprintf(path, sizeof path, "%.*s", (int)(colon - value), value);
  static char text[4096];
  memset(text, 'o', sizeof text);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  long done = 0;
  int error = fd < 0 ? errno : 0;
  while (error == 0 && done < atol(colon + 1)) {
    const ssize_t wrote = write(fd, text, sizeof text);
    if (wrote < 0) error = errno;
    if (wrote > 0) done += wrote;
  }
  if (fd >= 0) close(fd);
  print("own %ld %d", done, error);
}

/* The steps up to the matching } belong to the child. */
static int end_of_block(void) {
  int depth = 1;
  for (int i = at;; ++i) {
    if (i >= count) fail("}");
    const size_t n = strlen(words[i]);
    if (words[i][n - 1] == '{') ++depth;
    if (strcmp(words[i], "}") == 0 && --depth == 0) return i;
  }
}

static void run_step(const char* verb, const char* value);

static void run_until(int end) {
  while (at < end) {
    char verb[32];
    const char* word = words[at++];
    const char* equals = strchr(word, '=');
    snprintf(verb, sizeof verb, "%.*s", equals != NULL ? (int)(equals - word) : 31, word);
    run_step(verb, equals != NULL ? equals + 1 : "");
  }
}

static void in_child(pid_t child, int end) {
  if (child < 0) fail("fork");
  if (child == 0) {
    number = 0;
    run_until(end);
    _exit(0);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  print("child %d", status);
  at = end + 1;
}

static void run_step(const char* verb, const char* value) {
#define IS(name) (strcmp(verb, name) == 0)
  const long amount = atol(value);
  if (IS("init")) {
    print("init %d", dftracer_initialize(value[0] != '\0' ? value : NULL, NULL, NULL));
  } else if (IS("fini")) {
    dftracer_finalize();
  } else if (IS("flush")) {
    dftracer_flush();
  } else if (IS("active")) {
    print("active %d", dftracer_active());
  } else if (IS("who")) {
    who = amount;
    number = 0;
  } else if (IS("log")) {
    for (long i = 0; i < amount; ++i) record(who, number++, 0);
  } else if (IS("big")) {
    for (long i = 0; i < amount; ++i) record(who, number++, 1000);
  } else if (IS("say")) {
    print("%s", value);
  } else if (IS("wait")) {
    char byte;
    while (read(0, &byte, 1) < 0 && errno == EINTR) continue;
  } else if (IS("sleep")) {
    usleep((unsigned)amount * 1000);
  } else if (IS("hold")) {
    print("ready");
    for (;;) pause();
  } else if (IS("fill")) {
    fill_disk(value);
  } else if (IS("unlink")) {
    if (unlink(value) != 0) fail(value);
  } else if (IS("rmtree")) {
    if (nftw(value, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) fail(value);
  } else if (IS("chdir")) {
    if (chdir(value) != 0) fail(value);
  } else if (IS("own")) {
    write_own(value);
  } else if (IS("limit")) {
    set_limit(value);
  } else if (IS("closeall")) {
    if (syscall(SYS_close_range, amount, ~0u, 0) != 0) fail(verb);
  } else if (IS("close")) {
    close((int)amount);
  } else if (IS("open")) { /* prints the number that the program gets */
    print("open %d", open(value, O_RDWR | O_CREAT, 0666));
  } else if (IS("count")) { /* how many descriptors are open */
    int open_ones = 0;
    for (int i = 0; i < 1024; ++i) open_ones += fcntl(i, F_GETFD) >= 0;
    print("descriptors %d", open_ones);
  } else if (IS("dispositions")) {
    print_dispositions();
  } else if (IS("handler")) { /* NAME:exit, NAME:return, NAME:ignore */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = strstr(value, ":ignore") ? SIG_IGN
                        : strstr(value, ":exit") ? on_signal_exit
                                                 : on_signal_return;
    if (sigaction(signal_named(value), &action, NULL) != 0) fail(value);
  } else if (IS("raise")) {
    raise(signal_named(value));
  } else if (IS("crash")) { /* a real fault of the processor */
    *(volatile int*)(uintptr_t)(8 + amount) = 1;
  } else if (IS("past_end")) { /* a real SIGBUS: a mapping of a file that is gone */
    const int fd = open(value, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    volatile char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *page = 1;
  } else if (IS("fork{")) {
    const int end = end_of_block();
    in_child(fork(), end);
  } else if (IS("leave{")) { /* the parent does not wait for the child */
    const int end = end_of_block();
    const pid_t child = fork();
    if (child <= 0) in_child(child, end);
    at = end + 1;
  } else if (IS("system")) { /* posix_spawn, and wait */
    print("system %d", system(value));
  } else if (IS("clone{")) { /* no fork handlers run */
    const int end = end_of_block();
    in_child((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), end);
  } else if (IS("vfork")) { /* and exec of a shell command */
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", value, (char*)NULL);
      _exit(98);
    }
    in_child(child, at - 1);
  } else if (IS("exec")) { /* of a shell command */
    execl("/bin/sh", "sh", "-c", value, (char*)NULL);
    fail(verb);
  } else if (IS("again")) { /* exec of this program with the steps that are left */
    words[at - 1] = words[0];
    execv("/proc/self/exe", words + at - 1);
    fail(verb);
  } else if (IS("exit")) {
    exit((int)amount);
  } else if (IS("_exit")) {
    _exit((int)amount);
  } else if (IS("quick_exit")) {
    quick_exit((int)amount);
  } else if (IS("exit_group")) {
    syscall(SYS_exit_group, (int)amount);
  } else if (IS("abort")) {
    abort();
  } else {
    errno = EINVAL;
    fail(verb);
  }
#undef IS
}

int main(int argc, char** argv) {
  words = argv;
  count = argc;
  at = 1;
  run_until(argc);
  return 0;
}
