/* An io_uring by system calls of its own, as libuv and Rust crates make them. argv[1]: one mapping
   of both queues or two ("one", "two"), "threads" for a thread that submits and one that waits,
   "late" to take completions without a call, "inline" to enter by an instruction of the program's
   own. argv[2] is a file of at least 1 MiB. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept.h"

#define NEED(condition)                                                   \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "line %d: %s (%d)\n", __LINE__, #condition, errno); \
      exit(99);                                                           \
    }                                                                     \
  } while (0)

enum { kBlock = 4096, kDepth = 16, kRequests = 400 };

static int g_ring;
static struct io_uring_params g_params;
static char* g_sq;
static char* g_cq;
static struct io_uring_sqe* g_sqes;
static char g_buffer[kDepth][kBlock];
static int g_inline;

static unsigned* at(char* base, unsigned offset) { return (unsigned*)(void*)(base + offset); }

static int enter(unsigned submit, unsigned wait) {
  const unsigned flags = wait != 0 ? IORING_ENTER_GETEVENTS : 0;
#if defined(__x86_64__)
  if (g_inline) {
    long result = SYS_io_uring_enter;
    register long r10 __asm__("r10") = (long)flags;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)g_ring), "S"((long)submit), "d"((long)wait), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return (int)result;
  }
#endif
  return (int)syscall(SYS_io_uring_enter, g_ring, submit, wait, flags, NULL, 0);
}

static void put(int fd, unsigned number) {
  unsigned* tail = at(g_sq, g_params.sq_off.tail);
  const unsigned mask = *at(g_sq, g_params.sq_off.ring_mask);
  const unsigned slot = mask - (*tail & mask); /* not in order: the array says which */
  struct io_uring_sqe* sqe = &g_sqes[slot];
  memset(sqe, 0, sizeof *sqe);
  sqe->opcode = IORING_OP_READ;
  sqe->fd = fd;
  sqe->addr = (unsigned long)g_buffer[number % kDepth];
  sqe->len = kBlock;
  sqe->off = (unsigned long long)(number % 256) * kBlock;
  sqe->user_data = number;
  at(g_sq, g_params.sq_off.array)[*tail & mask] = slot;
  atomic_store_explicit((_Atomic unsigned*)tail, *tail + 1, memory_order_release);
}

static int take(void) {
  unsigned* head = at(g_cq, g_params.cq_off.head);
  unsigned* tail = at(g_cq, g_params.cq_off.tail);
  const unsigned mask = *at(g_cq, g_params.cq_off.ring_mask);
  const struct io_uring_cqe* cqes = (struct io_uring_cqe*)(void*)(g_cq + g_params.cq_off.cqes);
  int taken = 0;
  while (*head != atomic_load_explicit((_Atomic unsigned*)tail, memory_order_acquire)) {
    NEED(cqes[*head & mask].res == kBlock);
    atomic_store_explicit((_Atomic unsigned*)head, *head + 1, memory_order_release);
    ++taken;
  }
  return taken;
}

static _Atomic int g_done;
static void* waiter(void* argument) {
  (void)argument;
  while (g_done < kRequests) {
    NEED(enter(0, 1) >= 0);
    g_done += take();
  }
  return NULL;
}

int main(int argc, char** argv) {
  START();
  const char* way = argv[1];
  g_inline = strcmp(way, "inline") == 0;
  const int fd = open(argc > 2 ? argv[2] : "in", O_RDONLY);
  NEED(fd >= 0);
  g_ring = (int)syscall(SYS_io_uring_setup, kDepth, &g_params);
  if (g_ring < 0 && (errno == ENOSYS || errno == EPERM)) return 77;
  NEED(g_ring >= 0);
  const size_t sq_size = g_params.sq_off.array + g_params.sq_entries * sizeof(unsigned);
  const size_t cq_size = g_params.cq_off.cqes + g_params.cq_entries * sizeof(struct io_uring_cqe);
  const int prot = PROT_READ | PROT_WRITE;
  const size_t both = sq_size > cq_size ? sq_size : cq_size;
  const int single = strcmp(way, "two") != 0;
  g_sq = mmap(NULL, single ? both : sq_size, prot, MAP_SHARED, g_ring, IORING_OFF_SQ_RING);
  g_cq = single ? g_sq : mmap(NULL, cq_size, prot, MAP_SHARED, g_ring, IORING_OFF_CQ_RING);
  const size_t sqes_size = g_params.sq_entries * sizeof(struct io_uring_sqe);
  g_sqes = mmap(NULL, sqes_size, prot, MAP_SHARED, g_ring, IORING_OFF_SQES);
  NEED(g_sq != MAP_FAILED && g_cq != MAP_FAILED && g_sqes != MAP_FAILED);

  if (strcmp(way, "threads") == 0) {
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, waiter, NULL) == 0);
    for (int sent = 0; sent < kRequests;) {
      if (sent - g_done >= kDepth) continue;
      put(fd, (unsigned)sent++);
      NEED(enter(1, 0) == 1);
    }
    pthread_join(thread, NULL);
  } else {
    for (int sent = 0, done = 0; done < kRequests;) {
      int fresh = 0;
      while (sent < kRequests && sent - done < kDepth) {
        put(fd, (unsigned)sent++);
        ++fresh;
      }
      const int late = strcmp(way, "late") == 0;
      NEED(enter((unsigned)fresh, late ? 0 : 1) == fresh);
      int taken;
      while ((taken = take()) == 0) usleep(100);
      done += taken;
    }
  }
  munmap(g_sqes, sqes_size);
  if (!single) munmap(g_cq, cq_size);
  munmap(g_sq, single ? both : sq_size);
  close(g_ring);
  close(fd);
  return 0;
}
