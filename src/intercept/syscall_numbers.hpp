// The numbers of the system calls in the table of calls, also of those that a machine does not
// have: aarch64 has only the *at forms. These get numbers that no program passes to syscall().
#pragma once
#include <sys/syscall.h>

#ifndef SYS_open
#define SYS_open (-1001)
#endif
#ifndef SYS_creat
#define SYS_creat (-1002)
#endif
#ifndef SYS_dup2
#define SYS_dup2 (-1003)
#endif
