/* Asynchronous requests as libaio makes them, on two files. argv[1] "gone": the requests are no
   longer there when their results are taken; "inline": besides, an instruction of the program's
   own submits them. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept.h"

int io_setup(int number, void** context);
int io_submit(void* context, long number, struct iocb** requests);
int io_getevents(void* context, long least, long number, struct io_event* events, void* timeout);

static int submit_unseen(void* context, long number, struct iocb** requests) {
#if defined(__x86_64__)
  long result = SYS_io_submit;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(context), "S"(number), "d"(requests)
                   : "rcx", "r11", "memory");
#else
  register long x8 __asm__("x8") = SYS_io_submit;
  register long result __asm__("x0") = (long)context;
  register long x1 __asm__("x1") = number;
  register long x2 __asm__("x2") = (long)requests;
  __asm__ volatile("svc 0" : "+r"(result) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#endif
  return (int)result;
}

int main(int argc, char** argv) {
  START();
  static char buffer[3][8192];
  struct iocb* made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct iocb* list[3] = {made, made + 1, made + 2};
  struct io_event events[3];
  int in = open("in", O_RDONLY);
  int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int files[] = {in, in, out};
  const long offsets[] = {0, 63000, 512};
  for (int i = 0; i < 3; ++i) {
    made[i].aio_fildes = (unsigned)files[i];
    made[i].aio_lio_opcode = i < 2 ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
    made[i].aio_buf = (unsigned long)buffer[i];
    made[i].aio_nbytes = sizeof buffer[i];
    made[i].aio_offset = offsets[i];
  }
  void* context = NULL;
  const int inlined = argc > 1 && strcmp(argv[1], "inline") == 0;
  if (io_setup(8, &context) != 0) return 2;
  if ((inlined ? submit_unseen(context, 3, list) : io_submit(context, 3, list)) != 3) return 2;
  if (argc > 1) munmap(made, 4096);
  if (io_getevents(context, 3, 3, events, NULL) != 3) return 3;
  close(in);
  close(out);
  return 0;
}
