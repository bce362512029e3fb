/* Requests through liburing. argv[1] says which, argv[2] is a file of at least 1 MiB. What the
   program itself counted is printed: requests, bytes. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept.h"

#define NEED(condition)                                                   \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "line %d: %s (%d)\n", __LINE__, #condition, errno); \
      exit(99);                                                           \
    }                                                                     \
  } while (0)

enum { kBlock = 4096, kDepth = 32 };

static void start(struct io_uring* ring, unsigned flags) {
  const int error = io_uring_queue_init(kDepth, ring, flags);
  if (error == -ENOSYS || error == -EPERM) exit(77);
  NEED(error == 0);
}

/* Submits one request that is prepared, and takes its result. */
static int one(struct io_uring* ring) {
  struct io_uring_cqe* cqe;
  NEED(io_uring_submit(ring) == 1);
  NEED(io_uring_wait_cqe(ring, &cqe) == 0);
  const int result = cqe->res;
  io_uring_cqe_seen(ring, cqe);
  return result;
}

/* `number` reads with up to kDepth in flight. user_data: their number, or `same` for all. */
static long long read_many(int fd, int number, unsigned flags, const uint64_t* same) {
  struct io_uring ring;
  start(&ring, flags);
  char* buffer = malloc((size_t)kDepth * kBlock);
  long long bytes = 0;
  for (int sent = 0, done = 0; done < number;) {
    while (sent < number && sent - done < kDepth) {
      struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
      if (sqe == NULL) break;
      io_uring_prep_read(sqe, fd, buffer + (size_t)(sent % kDepth) * kBlock, kBlock,
                         (uint64_t)(sent % 256) * kBlock);
      io_uring_sqe_set_data64(sqe, same != NULL ? *same : (uint64_t)sent);
      ++sent;
    }
    NEED(io_uring_submit(&ring) >= 0);
    struct io_uring_cqe* cqe;
    NEED(io_uring_wait_cqe(&ring, &cqe) == 0);
    unsigned head;
    unsigned seen = 0;
    io_uring_for_each_cqe(&ring, head, cqe) {
      NEED(cqe->res == kBlock);
      bytes += cqe->res;
      ++seen;
    }
    io_uring_cq_advance(&ring, seen);
    done += (int)seen;
  }
  io_uring_queue_exit(&ring);
  free(buffer);
  return bytes;
}

static const char* g_path;
static void* thread(void* argument) {
  (void)argument;
  const int fd = open(g_path, O_RDONLY);
  read_many(fd, 500, 0, NULL);
  close(fd);
  return NULL;
}

/* One request of many kinds each. */
static void kinds(void) {
  struct io_uring ring;
  start(&ring, 0);
  char text[64] = "0123456789";
  struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  io_uring_prep_openat(sqe, AT_FDCWD, "made", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int fd = one(&ring);
  NEED(fd >= 0);
  io_uring_prep_write(io_uring_get_sqe(&ring), fd, text, 10, 5);
  NEED(one(&ring) == 10);
  struct iovec parts[2] = {{text, 4}, {text + 4, 6}};
  io_uring_prep_writev(io_uring_get_sqe(&ring), fd, parts, 2, 15);
  NEED(one(&ring) == 10);
  io_uring_prep_readv(io_uring_get_sqe(&ring), fd, parts, 2, 20);
  NEED(one(&ring) == 5);
  io_uring_prep_fsync(io_uring_get_sqe(&ring), fd, 0);
  NEED(one(&ring) == 0);
  io_uring_prep_fsync(io_uring_get_sqe(&ring), fd, IORING_FSYNC_DATASYNC);
  NEED(one(&ring) == 0);

  const struct iovec fixed = {text, sizeof text};
  NEED(io_uring_register_buffers(&ring, &fixed, 1) == 0);
  io_uring_prep_read_fixed(io_uring_get_sqe(&ring), fd, text, 8, 0, 0);
  NEED(one(&ring) == 8);
  const int fds[2] = {-1, fd};
  NEED(io_uring_register_files(&ring, fds, 2) == 0);
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_write_fixed(sqe, 1, text, 7, 100, 0);
  sqe->flags |= IOSQE_FIXED_FILE;
  NEED(one(&ring) == 7);
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_openat_direct(sqe, AT_FDCWD, "made", O_RDONLY, 0, 0);
  NEED(one(&ring) == 0);
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_read(sqe, 0, text, 6, 1);
  sqe->flags |= IOSQE_FIXED_FILE;
  NEED(one(&ring) == 6);

  /* Failures are results, with bad pointers too. */
  io_uring_prep_read(io_uring_get_sqe(&ring), 999, text, 1, 0);
  NEED(one(&ring) == -EBADF);
  io_uring_prep_read(io_uring_get_sqe(&ring), fd, (void*)8, 9, 0);
  NEED(one(&ring) == -EFAULT);
  io_uring_prep_openat(io_uring_get_sqe(&ring), AT_FDCWD, (const char*)8, O_RDONLY, 0);
  NEED(one(&ring) == -EFAULT);
  io_uring_prep_readv(io_uring_get_sqe(&ring), fd, (void*)16, 3, 0);
  NEED(one(&ring) == -EFAULT);
  io_uring_prep_openat(io_uring_get_sqe(&ring), AT_FDCWD, "missing", O_RDONLY, 0);
  NEED(one(&ring) == -ENOENT);

  /* A chain, of which only the last one reports. */
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_write(sqe, fd, text, 3, 0);
  sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  sqe->user_data = 1;
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_read(sqe, fd, text, 3, 0);
  sqe->user_data = 2;
  struct io_uring_cqe* cqe;
  NEED(io_uring_submit_and_wait(&ring, 1) == 2);
  NEED(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->user_data == 2 && cqe->res == 3);
  io_uring_cqe_seen(&ring, cqe);

  /* Two completions of one request. */
  int pair[2];
  NEED(pipe(pair) == 0);
  sqe = io_uring_get_sqe(&ring);
  io_uring_prep_poll_multishot(sqe, pair[0], POLLIN);
  sqe->user_data = 3;
  NEED(io_uring_submit(&ring) == 1);
  for (int i = 0; i < 2; ++i) {
    NEED(write(pair[1], "x", 1) == 1);
    NEED(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->user_data == 3 &&
         (cqe->flags & IORING_CQE_F_MORE) != 0);
    io_uring_cqe_seen(&ring, cqe);
  }
  io_uring_prep_splice(io_uring_get_sqe(&ring), pair[0], -1, fd, 200, 2, 0);
  NEED(one(&ring) >= 0);
  io_uring_prep_close(io_uring_get_sqe(&ring), fd);
  NEED(one(&ring) >= 0);
  io_uring_queue_exit(&ring);
}

int main(int argc, char** argv) {
  START();
  const char* way = argv[1];
  g_path = argc > 2 ? argv[2] : "in";
  const int number = argc > 3 ? atoi(argv[3]) : 1000;
  const int fd = open(g_path, O_RDONLY);
  NEED(fd >= 0);
  if (strcmp(way, "many") == 0) {
    printf("%d %lld\n", number, read_many(fd, number, 0, NULL));
  } else if (strcmp(way, "same") == 0) {
    const uint64_t same = 0xdeadbeefdeadbeefu;
    printf("%d %lld\n", number, read_many(fd, number, 0, &same));
  } else if (strcmp(way, "sqpoll") == 0) {
    printf("%d %lld\n", number, read_many(fd, number, IORING_SETUP_SQPOLL, NULL));
  } else if (strcmp(way, "wide") == 0) {
    printf("%d %lld\n", number,
           read_many(fd, number, IORING_SETUP_SQE128 | IORING_SETUP_CQE32, NULL));
  } else if (strcmp(way, "threads") == 0) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) NEED(pthread_create(&threads[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(way, "kinds") == 0) {
    kinds();
  } else if (strcmp(way, "fork") == 0) {
    struct io_uring ring;
    start(&ring, 0);
    int pair[2];
    char byte;
    NEED(pipe(pair) == 0);
    io_uring_prep_read(io_uring_get_sqe(&ring), pair[0], &byte, 1, 0);
    NEED(io_uring_submit(&ring) == 1);
    const pid_t child = fork();
    if (child == 0) {
      NEED(read_many(fd, 100, 0, NULL) == 100 * kBlock);
      exit(0);
    }
    int status;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    NEED(write(pair[1], "x", 1) == 1);
    struct io_uring_cqe* cqe;
    NEED(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res == 1);
    io_uring_cqe_seen(&ring, cqe);
    io_uring_queue_exit(&ring);
  } else { /* flight, leave, exec, kill: a request never completes */
    struct io_uring ring;
    start(&ring, 0);
    int pair[2];
    char byte;
    NEED(pipe(pair) == 0);
    io_uring_prep_read(io_uring_get_sqe(&ring), fd, &byte, 1, 0);
    NEED(one(&ring) == 1);
    io_uring_prep_read(io_uring_get_sqe(&ring), pair[0], &byte, 1, 0);
    NEED(io_uring_submit(&ring) == 1);
    if (strcmp(way, "exec") == 0) execl("/bin/true", "true", NULL);
    if (strcmp(way, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(way, "flight") == 0) io_uring_queue_exit(&ring);
  }
  return 0;
}
