/* killat N PROGRAM ARGS...: runs a program and kills it with SIGKILL at its Nth system call,
 * counted over all its threads, before the call is made (N odd) or after (N even). Exit status: 0
 * killed, 1 it ended before; 2 ptrace is not permitted. */
#include "faults.h"

#include <signal.h>
#include <sys/ptrace.h>

int main(int argc, char** argv) {
  if (argc < 3) return 80;
  const long wanted = atol(argv[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(97);
    raise(SIGSTOP);
    execv(argv[2], argv + 2);
    _exit(98);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 2;
  const long options =
      PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) return 2;
  ptrace(PTRACE_SYSCALL, child, NULL, NULL);
  long seen = 0;
  int exec_seen = 0;
  int killed = 0;
  for (;;) {
    const pid_t stopped = waitpid(-1, &status, __WALL);
    if (stopped < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) continue;
    long signal_number = WSTOPSIG(status);
    const int event = status >> 16;
    if (event == PTRACE_EVENT_EXEC) exec_seen = 1;
    if (signal_number == (SIGTRAP | 0x80)) {
      signal_number = 0;
      if (exec_seen && !killed && ++seen == wanted) {
        kill(child, SIGKILL);
        killed = 1;
      }
    } else if (event != 0 || signal_number == SIGSTOP || signal_number == SIGTRAP) {
      signal_number = 0;
    }
    ptrace(PTRACE_SYSCALL, stopped, NULL, signal_number);
  }
  return killed ? 0 : 1;
}
