/* killat N MARK PROGRAM ARGS...: runs a program and kills it with SIGKILL at its Nth system call,
 * counted over all its threads, each call twice: before it is made and after. Calls that nobody
 * outside can see are not counted. MARK ftruncate: nor is anything before the first call of that.
 * Exit status: 0 killed, 1 it ended before, and well; 2 ptrace is not permitted; 3 it ended badly.
 */
#include "faults.h"

#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>

static int is_seen(uint64_t number) {
  static const long unseen[] = {SYS_rt_sigprocmask, SYS_rt_sigpending,  SYS_getpid,
                                SYS_gettid,         SYS_geteuid,        SYS_futex,
                                SYS_madvise,        SYS_mprotect,       SYS_clock_nanosleep,
                                SYS_rseq,           SYS_set_robust_list};
  for (size_t i = 0; i < sizeof unseen / sizeof *unseen; ++i) {
    if ((uint64_t)unseen[i] == number) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 80;
  const long wanted = atol(argv[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(97);
    raise(SIGSTOP);
    execv(argv[3], argv + 3);
    _exit(98);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 2;
  const long options =
      PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) return 2;
  ptrace(PTRACE_SYSCALL, child, NULL, NULL);
  long seen = 0;
  int counting = 0;
  int killed = 0;
  int bad = 0;
  int counted_entry = 0;
  for (;;) {
    const pid_t stopped = waitpid(-1, &status, __WALL);
    if (stopped < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (stopped == child) bad = status != 0;
      continue;
    }
    long signal_number = WSTOPSIG(status);
    const int event = status >> 16;
    if (event == PTRACE_EVENT_EXEC && strcmp(argv[2], "ftruncate") != 0) counting = 1;
    if (signal_number == (SIGTRAP | 0x80)) {
      signal_number = 0;
      struct __ptrace_syscall_info info;
      memset(&info, 0, sizeof info);
      ptrace(PTRACE_GET_SYSCALL_INFO, stopped, (void*)sizeof info, &info);
      int count = counted_entry; /* an exit does not say of which call */
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        if (info.entry.nr == SYS_ftruncate) counting = 1;
        count = counted_entry = is_seen(info.entry.nr);
      }
      if (counting && count && !killed && ++seen == wanted) {
        kill(child, SIGKILL);
        killed = 1;
      }
    } else if (event != 0 || signal_number == SIGSTOP || signal_number == SIGTRAP) {
      signal_number = 0;
    }
    ptrace(PTRACE_SYSCALL, stopped, NULL, signal_number);
  }
  return killed ? 0 : bad ? 3 : 1;
}
