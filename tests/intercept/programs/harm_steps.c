/* Does what its words say, one after another, and starts other processes in every way there is.

     who=NAME             prints "NAME pid ppid"
     marks=WHO:N          N marked reads (harm.h)
     fork{ ... }          a child that does this; the parent waits. It leaves by exit(0) at the end
     vfork{ ... }         the same with vfork, _fork: with _Fork, clone: with a raw clone
     vm{ ... }            the same in a child that shares all memory (clone with CLONE_VM)
     clone3{ ... }        the same with clone3
     leave{ ... }         a child nobody waits for; the program waits at its end until all are gone
     daemon{ ... }        a child that calls daemon(), and what that becomes does this
     exec=WORDS           this program again, with these words (spaces between them)
     vforkexec= spawn= spawnp= system= popen=
     again=COUNT:WHO:N    N marks of WHO + COUNT, then exec of itself, until COUNT is 0
     threadexec=WORDS     the same by another thread than the first, while a third one makes calls
     noexec               an exec that fails
     atfork=WHO           handlers of fork that make marks: WHO before, WHO + 1 in the parent, WHO +
   2 chdir=DIR chroot=DIR setuid=UID exit= _exit= _Exit= quick_exit= return= abort raise=SIGNAL
   thread_exit threads=WHO:COUNT    so many threads that mark at full rate until `stop`, which
   prints counts forks=WHO:COUNT      so many children with three marks each, half of them leave by
   _exit */
#include "harm.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;

static const char* self;
static int data;
static int gone[2]; /* the writing end is held by every process that nobody waits for */

static char** run(char** word);

static char** skip(char** word) {
  int depth = 1;
  for (; *word; ++word) {
    const size_t size = strlen(*word);
    depth += size > 0 && (*word)[size - 1] == '{';
    depth -= strcmp(*word, "}") == 0;
    if (depth == 0) {
      return word + 1;
    }
  }
  return word;
}

static void wait_for(pid_t child) {
  int status = -1;
  NEED(waitpid(child, &status, 0) == child);
  say("child %d", status);
}

/* The words after the command, for a program with a name of its own. */
static char** split(const char* text) {
  static char* words[200];
  int count = 0;
  words[count++] = "steps";
  for (char* word = strtok(strdup(text), " "); word; word = strtok(NULL, " ")) {
    words[count++] = word;
  }
  words[count] = NULL;
  return words;
}

static const char* shell_line(const char* text) {
  static char line[4096];
  snprintf(line, sizeof line, "exec %s %s", self, text);
  return line;
}

static int in_vm(void* words) {
  run((char**)words);
  _exit(0);
}

static void start(const char* how, char** words) {
  fflush(NULL);
  pid_t child;
  if (strcmp(how, "vm") == 0) {
    const size_t size = 256 * 1024;
    char* stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    child = clone(in_vm, stack + size, CLONE_VM | SIGCHLD, words);
    NEED(child > 0);
    wait_for(child);
    return;
  }
  if (strcmp(how, "clone") == 0) {
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  } else if (strcmp(how, "clone3") == 0) {
    struct clone_args args = {.exit_signal = SIGCHLD};
    child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
  } else if (strcmp(how, "_fork") == 0) {
    child = _Fork();
  } else {
    child = fork();
  }
  NEED(child >= 0);
  if (child == 0) {
    if (strcmp(how, "daemon") == 0) {
      NEED(daemon(1, 1) == 0);
    }
    run(words);
    exit(0);
  }
  if (strcmp(how, "leave") != 0) {
    wait_for(child);
  }
}

/* Its own function: nothing of the caller's frame may be changed by the child. */
__attribute__((noinline)) static void start_vfork(char** words) {
  const pid_t child = vfork();
  NEED(child >= 0);
  if (child == 0) {
    run(words);
    _exit(0);
  }
  wait_for(child);
}

/* ---- Threads that mark until they are told to stop --------------------------------------------
 */

static volatile int stopped;
static pthread_t threads[64];
static int running, made[64], first_who;

static void* mark_on(void* given) {
  const int number = (int)(long)given;
  while (!stopped) {
    marks(data, first_who + number, made[number], made[number] + 10);
    made[number] += 10;
    usleep(500);
  }
  return NULL;
}

static int fork_who;
static void before_fork(void) { marks(data, fork_who, 0, 5); }
static void parent_forked(void) { marks(data, fork_who + 1, 0, 5); }
static void child_forked(void) { marks(data, fork_who + 2, 0, 5); }

static void* go_on(void* unused) {
  for (;;) {
    lseek(data, 0, SEEK_SET);
  }
  return unused;
}

static void* exec_self(void* words) {
  pthread_t other;
  pthread_create(&other, NULL, go_on, NULL);
  usleep(2000);
  execv(self, words);
  return NULL;
}

static void one(const char* word) {
  char name[32] = "";
  const char* rest = strchr(word, '=');
  snprintf(name, sizeof name, "%.*s", (int)(rest ? rest - word : (long)strlen(word)), word);
  rest = rest ? rest + 1 : "";
  int a = 0, b = 0, c = 0;
  sscanf(rest, "%d:%d:%d", &a, &b, &c);
  if (strcmp(name, "who") == 0) {
    say("%s %d %d", rest, getpid(), getppid());
  } else if (strcmp(name, "marks") == 0) {
    marks(data, a, 0, b);
  } else if (strcmp(name, "exec") == 0) {
    execv(self, split(rest));
  } else if (strcmp(name, "vforkexec") == 0) {
    char** words = split(rest);
    const pid_t child = vfork();
    if (child == 0) {
      execve(self, words, environ);
      _exit(127);
    }
    wait_for(child);
  } else if (strcmp(name, "spawn") == 0 || strcmp(name, "spawnp") == 0) {
    pid_t child = 0;
    char** words = split(rest);
    NEED((name[5] ? posix_spawnp : posix_spawn)(&child, self, NULL, NULL, words, environ) == 0);
    wait_for(child);
  } else if (strcmp(name, "system") == 0) {
    say("system %d", system(shell_line(rest)));
  } else if (strcmp(name, "popen") == 0) {
    FILE* pipe = popen(shell_line(rest), "r");
    char line[200];
    while (fgets(line, sizeof line, pipe)) {
      line[strcspn(line, "\n")] = 0;
      say("%s", line);
    }
    say("pclose %d", pclose(pipe));
  } else if (strcmp(name, "again") == 0) {
    marks(data, b + a, 0, c);
    if (a > 0) {
      char next[64];
      snprintf(next, sizeof next, "again=%d:%d:%d", a - 1, b, c);
      execl(self, "steps", next, (char*)NULL);
      say("exec failed");
    }
  } else if (strcmp(name, "threadexec") == 0) {
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, exec_self, split(rest)) == 0);
    pthread_join(thread, NULL);
  } else if (strcmp(name, "atfork") == 0) {
    fork_who = a;
    NEED(pthread_atfork(before_fork, parent_forked, child_forked) == 0);
  } else if (strcmp(name, "chdir") == 0) {
    SHOW(chdir(rest));
  } else if (strcmp(name, "chroot") == 0) {
    SHOW(chroot(rest));
  } else if (strcmp(name, "setuid") == 0) {
    SHOW(setresuid((uid_t)a, (uid_t)a, (uid_t)a));
  } else if (strcmp(name, "noexec") == 0) {
    SHOW(execl("/nonexistent", "nothing", (char*)NULL));
  } else if (strcmp(name, "exit") == 0) {
    exit(a);
  } else if (strcmp(name, "_exit") == 0) {
    _exit(a);
  } else if (strcmp(name, "_Exit") == 0) {
    _Exit(a);
  } else if (strcmp(name, "quick_exit") == 0) {
    quick_exit(a);
  } else if (strcmp(name, "abort") == 0) {
    abort();
  } else if (strcmp(name, "raise") == 0) {
    raise(a);
  } else if (strcmp(name, "thread_exit") == 0) {
    pthread_exit(NULL);
  } else if (strcmp(name, "threads") == 0) {
    first_who = a;
    for (running = 0; running < b; ++running) {
      NEED(pthread_create(&threads[running], NULL, mark_on, (void*)(long)running) == 0);
    }
  } else if (strcmp(name, "stop") == 0) {
    stopped = 1;
    for (int i = 0; i < running; ++i) {
      pthread_join(threads[i], NULL);
      say("made %d %d", first_who + i, made[i]);
    }
  } else if (strcmp(name, "forks") == 0) {
    for (int i = 0; i < b; ++i) {
      const pid_t child = fork();
      NEED(child >= 0);
      if (child == 0) {
        marks(data, a + i, 0, 3);
        i % 2 ? _exit(0) : exit(0);
      }
      int status = -1;
      NEED(waitpid(child, &status, 0) == child);
      NEED(status == 0);
    }
  } else {
    say("what is %s?", word);
    exit(98);
  }
}

static char** run(char** word) {
  while (*word && strcmp(*word, "}") != 0) {
    const size_t size = strlen(*word);
    if ((*word)[size - 1] == '{') {
      char how[32];
      snprintf(how, sizeof how, "%.*s", (int)size - 1, *word);
      if (strcmp(how, "vfork") == 0) {
        start_vfork(word + 1);
      } else {
        start(how, word + 1);
      }
      word = skip(word + 1);
    } else {
      one(*word++);
    }
  }
  return word;
}

int main(int argc, char** argv) {
  (void)argc;
  static char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  NEED(size > 0);
  self = path;
  data = open("data", O_RDONLY | O_CLOEXEC);
  NEED(data >= 0);
  int left = 0;
  for (char** word = argv + 1; *word; ++word) {
    left |= strcmp(*word, "leave{") == 0 || strcmp(*word, "daemon{") == 0;
  }
  NEED(!left || pipe2(gone, O_CLOEXEC) == 0);
  const pid_t me = getpid();
  run(argv + 1);
  if (left && getpid() == me) {
    char byte;
    close(gone[1]);
    NEED(read(gone[0], &byte, 1) == 0);
  }
  return 0;
}
