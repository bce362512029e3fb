/* Signal handlers that record in the middle of the main thread's recording.
 * handlers TRACE HOW EVENTS MICROSECONDS
 * The main thread records as 0, handlers as 1. HOW:
 *   plain   handlers record and return
 *   jump    every second handler leaves by siglongjmp: the event that it interrupts may be lost
 *   fork    handlers fork; the child records three events as 1000 + its number, and _exits
 *   return  the child of such a fork returns from the handler first
 * Prints how many events each recorded for sure. */
#include "faults.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

enum How { kPlain, kJump, kFork, kReturn };
static enum How how;
static volatile sig_atomic_t in_handlers;
static volatile sig_atomic_t jumps;
static volatile sig_atomic_t children;
static volatile sig_atomic_t child_of;
static volatile sig_atomic_t jump_allowed;
static volatile sig_atomic_t armed = 1;
static sigjmp_buf back;

static void child_records(long number) {
  for (long i = 0; i < 3; ++i) record(1000 + number, i, 0);
  _exit(0);
}

static void on_alarm(int number) {
  (void)number;
  const int saved = errno;
  record(1, in_handlers, 0);
  ++in_handlers;
  if (how == kJump && in_handlers % 2 == 0 && jump_allowed) {
    ++jumps;
    siglongjmp(back, 1);
  }
  if ((how == kFork || how == kReturn) && children < 150) {
    const long mine = children;
    const pid_t child = fork();
    if (child == 0 && how == kFork) child_records(mine);
    if (child == 0) {
      child_of = (int)mine + 1;
      struct itimerval off;
      memset(&off, 0, sizeof off);
      setitimer(ITIMER_REAL, &off, NULL);
    }
    if (child > 0) {
      ++children;
      waitpid(child, NULL, 0);
    }
  }
  if (child_of == 0) armed = 0;
  errno = saved;
}

int main(int argc, char** argv) {
  if (argc != 5) return 80;
  how = strcmp(argv[2], "plain") == 0  ? kPlain
        : strcmp(argv[2], "jump") == 0 ? kJump
        : strcmp(argv[2], "fork") == 0 ? kFork
                                       : kReturn;
  const long events = atol(argv[3]);
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval every;
  every.it_interval.tv_sec = every.it_value.tv_sec = 0;
  every.it_interval.tv_usec = every.it_value.tv_usec = atol(argv[4]);
  const int forks = how == kFork || how == kReturn;
  /* A fork takes longer than the time to the next signal: there the main thread sets the clock
   * again. */
  if (forks) every.it_interval.tv_usec = 0;
  setitimer(ITIMER_REAL, &every, NULL);
  /* In the mode `jump` a number is used once, whether or not its event was cut off: `attempts`
   * counts the numbers, `done` the events that were recorded for sure. */
  static volatile long attempts;
  static volatile long done;
  sigsetjmp(back, 1);
  while (done < events || (forks && children < 150)) {
    const long mine = attempts;
    attempts = mine + 1;
    jump_allowed = 1;
    record(0, mine, 0);
    jump_allowed = 0;
    done = done + 1;
    if (child_of != 0) child_records(child_of - 1);
    if (forks && !armed) {
      armed = 1;
      every.it_value.tv_usec = 20 + rand() % 180;
      setitimer(ITIMER_REAL, &every, NULL);
    }
  }
  every.it_value.tv_usec = 0;
  every.it_interval.tv_usec = 0;
  setitimer(ITIMER_REAL, &every, NULL);
  print("%ld %ld %d %d %d", attempts, done, (int)in_handlers, (int)jumps, (int)children);
  return 0;
}
