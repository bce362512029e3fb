/* Threads that are cancelled inside calls, and calls that must not be where a thread is cancelled.

     harm_cancel blocked    each thread waits in one call when it is cancelled
     harm_cancel pending    the cancellation is there before the call: which calls act on it?
     harm_cancel handlers   clean-up handlers that do I/O, a thousand threads */
#include "harm.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int empty[2], full[2], pair[2], server, locked, data, directory;
static FILE* stream;
static char buffer[4096];
static pid_t child;
static struct iovec part = {buffer, sizeof buffer};
static struct stat info;

/* ---- Calls that wait ------------------------------------------------------------------------- */

#define CALL(name, expression) \
  static void name(void) { (void)!(expression); }

CALL(do_read, read(empty[0], buffer, 1))
CALL(do_readv, readv(empty[0], &part, 1))
CALL(do_write, write(full[1], buffer, sizeof buffer))
CALL(do_writev, writev(full[1], &part, 1))
CALL(do_open, open("fifo", O_RDONLY))
CALL(do_openat, openat(directory, "fifo", O_RDONLY))
CALL(do_fopen, fopen("fifo", "r") != NULL)
CALL(do_lock, fcntl(locked, F_SETLKW, &(struct flock){.l_type = F_WRLCK}))
CALL(do_waitpid, waitpid(child, NULL, 0))
CALL(do_pause, pause())
CALL(do_poll, poll(&(struct pollfd){.fd = empty[0], .events = POLLIN}, 1, -1))
CALL(do_sleep, sleep(1000))
CALL(do_fgets, fgets(buffer, sizeof buffer, stream) != NULL)
CALL(do_fread, fread(buffer, 1, 10, stream))
CALL(do_getc, fgetc(stream))
CALL(do_recv, recv(pair[0], buffer, 1, 0))
CALL(do_recvmsg, recvmsg(pair[0], &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, 0))
CALL(do_accept, accept(server, NULL, NULL))
CALL(do_splice, splice(empty[0], NULL, full[1], NULL, 10, 0))

static const struct {
  const char* name;
  void (*call)(void);
  int stdio; /* its lock stays taken by the thread that is gone, so it has a stream of its own */
} blocking[] = {
    {"read", do_read, 0},     {"readv", do_readv, 0},  {"write", do_write, 0},
    {"writev", do_writev, 0}, {"open", do_open, 0},    {"openat", do_openat, 0},
    {"fcntl", do_lock, 0},    {"wait", do_waitpid, 0}, {"pause", do_pause, 0},
    {"poll", do_poll, 0},     {"sleep", do_sleep, 0},  {"fgets", do_fgets, 1},
    {"fread", do_fread, 1},   {"fgetc", do_getc, 1},   {"splice", do_splice, 0},
    {"fopen", do_fopen, 0},   {"recv", do_recv, 0},    {"recvmsg", do_recvmsg, 0},
    {"accept", do_accept, 0},
};

/* ---- Calls that may act on a pending cancellation -------------------------------------------- */

CALL(now_pread, pread(data, buffer, 10, 0))
CALL(now_pwrite, pwrite(data, buffer, 10, 0))
CALL(now_read, read(data, buffer, 10))
CALL(now_write, write(data, buffer, 10))
CALL(now_preadv, preadv(data, &part, 1, 0))
CALL(now_open, open("data", O_RDONLY))
CALL(now_creat, creat("created", 0600))
CALL(now_openat, openat(directory, "data", O_RDONLY))
CALL(now_close, close(9999))
CALL(now_fsync, fsync(data))
CALL(now_fdatasync, fdatasync(data))
CALL(now_msync, msync(NULL, 0, MS_SYNC))
CALL(now_waitpid, waitpid(-1, NULL, WNOHANG))
CALL(now_fcntl, fcntl(data, F_GETFL))
CALL(now_fcntl_dup, fcntl(data, F_DUPFD, 100))
CALL(now_setlkw, fcntl(data, F_SETLKW, &(struct flock){.l_type = F_UNLCK}))
CALL(now_lseek, lseek(data, 0, SEEK_CUR))
CALL(now_stat, stat("data", &info))
CALL(now_fstat, fstat(data, &info))
CALL(now_access, access("data", R_OK))
CALL(now_dup, dup(data))
CALL(now_pipe, pipe(full))
CALL(now_rename, rename("none", "other"))
CALL(now_unlink, unlink("none"))
CALL(now_mkdir, mkdir("data", 0700))
CALL(now_readlink, readlink("none", buffer, 10))
CALL(now_truncate, truncate("none", 1))
CALL(now_ftruncate, ftruncate(data, 16384))
CALL(now_mmap, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, data, 0) != MAP_FAILED)
CALL(now_fopen, fopen("none", "r") != NULL)
CALL(now_opendir, opendir("none") != NULL)
CALL(now_fork, fork() ? 0 : (_exit(0), 0))
CALL(now_getcwd, getcwd(buffer, sizeof buffer) != NULL)
CALL(now_usleep, usleep(1))
CALL(now_send, send(pair[0], buffer, 1, 0))
CALL(now_recv, recv(pair[0], buffer, 1, MSG_DONTWAIT))
CALL(now_connect, connect(9999, NULL, 0))
CALL(now_accept, accept(9999, NULL, NULL))
CALL(now_socket, socket(-1, 0, 0))
CALL(now_listen, listen(9999, 1))
CALL(now_shutdown, shutdown(9999, SHUT_WR))
CALL(now_nothing, 0)

#define NOW(name) {#name, now_##name}
static const struct {
  const char* name;
  void (*call)(void);
} immediate[] = {
    NOW(pread),   NOW(pwrite),   NOW(read),      NOW(write),     NOW(preadv),    NOW(open),
    NOW(creat),   NOW(openat),   NOW(close),     NOW(fsync),     NOW(fdatasync), NOW(msync),
    NOW(waitpid), NOW(fcntl),    NOW(fcntl_dup), NOW(setlkw),    NOW(lseek),     NOW(stat),
    NOW(fstat),   NOW(access),   NOW(dup),       NOW(pipe),      NOW(rename),    NOW(unlink),
    NOW(mkdir),   NOW(readlink), NOW(truncate),  NOW(ftruncate), NOW(mmap),      NOW(fopen),
    NOW(opendir), NOW(fork),     NOW(getcwd),    NOW(usleep),    NOW(send),      NOW(recv),
    NOW(connect), NOW(accept),   NOW(socket),    NOW(listen),    NOW(shutdown),  NOW(nothing),
};

/* ---- Threads --------------------------------------------------------------------------------- */

struct job {
  void (*call)(void);
  int number;
  int first_touch; /* the call is the thread's first */
  int cleaned;
  sem_t ready, go;
};

static void clean(void* given) {
  struct job* job = given;
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  marks(data, 1000 + job->number, 0, 20);
  ++job->cleaned;
}

static void* block(void* given) {
  struct job* job = given;
  pthread_cleanup_push(clean, job);
  sem_post(&job->ready);
  for (;;) { /* a pause or sleep that is interrupted, a byte that was there */
    job->call();
  }
  pthread_cleanup_pop(0);
  return NULL;
}

static void* late(void* given) {
  struct job* job = given;
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (!job->first_touch) {
    lseek(data, 0, SEEK_CUR);
  }
  sem_post(&job->ready);
  while (sem_wait(&job->go) != 0) {
  }
  pthread_cleanup_push(clean, job);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  job->call();
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_cleanup_pop(0);
  return job;
}

static void run(const char* name, void* (*body)(void*), struct job* job) {
  pthread_t thread;
  void* result = NULL;
  sem_init(&job->ready, 0, 0);
  sem_init(&job->go, 0, 0);
  NEED(pthread_create(&thread, NULL, body, job) == 0);
  while (sem_wait(&job->ready) != 0) {
  }
  if (body == block) {
    usleep(20000); /* it is in the call by now, most of the time: either way it ends there */
  }
  NEED(pthread_cancel(thread) == 0);
  sem_post(&job->go);
  NEED(pthread_join(thread, &result) == 0);
  if (name) {
    say("%s %s, cleaned %d", name, result == PTHREAD_CANCELED ? "cancelled" : "returned",
        job->cleaned);
  }
}

static void set_up(void) {
  NEED(pipe(empty) == 0 && pipe(full) == 0);
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  server = socket(AF_INET, SOCK_STREAM, 0);
  NEED(listen(server, 1) == 0);
  fcntl(full[1], F_SETFL, O_NONBLOCK);
  while (write(full[1], buffer, sizeof buffer) > 0) {
  }
  fcntl(full[1], F_SETFL, 0);
  data = open("data", O_RDWR);
  directory = open(".", O_RDONLY | O_DIRECTORY);
  locked = open("locked", O_RDWR | O_CREAT, 0600);
  NEED(data >= 0 && directory >= 0 && locked >= 0 && mkfifo("fifo", 0600) == 0);
  int ready[2];
  NEED(pipe(ready) == 0);
  child = fork();
  if (child == 0) {
    const int own = open("locked", O_RDWR);
    NEED(fcntl(own, F_SETLK, &(struct flock){.l_type = F_WRLCK}) == 0);
    NEED(write(ready[1], "r", 1) == 1);
    pause();
    _exit(0);
  }
  NEED(read(ready[0], buffer, 1) == 1);
  close(ready[0]);
  close(ready[1]);
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  set_up();
  if (strcmp(argv[1], "blocked") == 0) {
    for (size_t i = 0; i < sizeof blocking / sizeof *blocking; ++i) {
      struct job job = {.call = blocking[i].call, .number = (int)i};
      if (blocking[i].stdio) {
        stream = fdopen(dup(empty[0]), "r");
      }
      run(blocking[i].name, block, &job);
    }
  } else if (strcmp(argv[1], "pending") == 0) {
    for (int first = 0; first < 2; ++first) {
      for (size_t i = 0; i < sizeof immediate / sizeof *immediate; ++i) {
        struct job job = {.call = immediate[i].call, .first_touch = first};
        job.number = (int)i + 100 * first;
        run(immediate[i].name, late, &job);
      }
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  } else {
    for (int i = 0; i < 1000; ++i) {
      struct job job = {.call = do_read, .number = i};
      pthread_t thread;
      sem_init(&job.ready, 0, 0);
      NEED(pthread_create(&thread, NULL, block, &job) == 0);
      while (sem_wait(&job.ready) != 0) {
      }
      NEED(pthread_cancel(thread) == 0);
      NEED(pthread_join(thread, NULL) == 0);
      NEED(job.cleaned == 1);
    }
    say("done");
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  /* The process still works. */
  marks(data, 5000, 0, 10);
  say("end");
  return 0;
}
