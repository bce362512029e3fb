/* Forbids itself system calls and goes on with those that are left.

     harm_sandbox errno     all but a few fail with EPERM
     harm_sandbox kill      all but a few are the end of the process
     harm_sandbox strict    only read, write and _exit, as in the first kind of sandbox */
#include "harm.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void forbid(unsigned action) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#define ALLOW(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
      ALLOW(SYS_read),
      ALLOW(SYS_write),
      ALLOW(SYS_pread64),
      ALLOW(SYS_lseek),
      ALLOW(SYS_close),
      ALLOW(SYS_exit_group),
      ALLOW(SYS_rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, action),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  const int fd = open("data", O_RDONLY);
  char byte = 0;
  marks(fd, 1000, 0, 10);
  if (strcmp(argv[1], "strict") == 0) {
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
    int sum = 0;
    for (int i = 0; i < 10000; ++i) {
      if (read(fd, &byte, 1) == 1) {
        sum += (unsigned char)byte;
      }
    }
    say("sum %d", sum);
    syscall(SYS_exit, 0);
  }
  forbid(strcmp(argv[1], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
  marks(fd, 1000, 10, 20000); /* more than the tracer has room for at first */
  if (strcmp(argv[1], "errno") == 0) {
    SHOW(open("data", O_RDONLY));
    SHOW(unlink("data"));
  }
  SHOW(lseek(fd, 0, SEEK_SET));
  SHOW(read(fd, &byte, 1));
  SHOW(close(fd));
  say("end");
  _exit(6);
}
