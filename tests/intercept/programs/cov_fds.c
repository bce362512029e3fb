/* Point 3: which file a descriptor means, however it came to be. */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define OPEN(name, path) POSIX(N("open"), path, open(name, O_RDWR), "flags=%d", O_RDWR)
#define READ(fd, path, result)                                                                 \
  MUST(POSIX("read", path, read(fd, buffer, sizeof buffer), "count=%d", (int)sizeof buffer) == \
       result)
#define WRITE(fd, path) MUST(POSIX("write", path, write(fd, "12345678", 8), "count=%d", 8) == 8)

static char buffer[100];
static char a[4200];
static char b[4200];

/* Made where nobody looked: /proc knows. */
static void unknown(void) {
  int fd = (int)unseen(SYS_openat, AT_FDCWD, (long)"a", O_RDWR, 0);
  WRITE(fd, a);
  int copy = POSIX("dup", a, dup(fd), "oldfd=%d", fd);
  WRITE(copy, a);
  CLOSE(copy, a);
  CLOSE(fd, a);
}

/* The number of a file that is closed goes to something else. */
static void taken_over(void) {
  int fd = OPEN("a", a);
  WRITE(fd, a);
  CLOSE(fd, a);
  int event = eventfd(0, 0);
  MUST(event == fd);
  WRITE(event, "anon_inode:[eventfd]");
  CLOSE(event, "anon_inode:[eventfd]");

  fd = OPEN("a", a);
  CLOSE(fd, a);
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pair[0] == fd);
  WRITE(pair[0], FD(pair[0]));

  /* A descriptor that came in a message. */
  int sent = OPEN("b", b);
  char text = 'x';
  struct iovec vector = {&text, 1};
  union {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &sent, sizeof sent);
  MUST(sendmsg(pair[1], &message, 0) == 1);
  CLOSE(sent, b);
  fd = OPEN("a", a); /* takes the number and gives it back */
  CLOSE(fd, a);
  MUST(recvmsg(pair[0], &message, 0) > 0);
  int got;
  memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
  MUST(got == fd);
  WRITE(got, b);
  CLOSE(got, b);
  const char* socket = FD(pair[0]);
  CLOSE(pair[0], socket);
  socket = FD(pair[1]);
  CLOSE(pair[1], socket);
}

/* A stream and its descriptor are one file. */
static void streams(void) {
  int fd = OPEN("a", a);
  FILE* f = STDIO_POINTER("fdopen", a, fdopen(fd, "r+"), "fd=%d mode=%s", fd, "r+");
  MUST(STDIO("fwrite", a, fwrite("abcd", 1, 4, f), "size=%d count=%d", 1, 4) == 4);
  WRITE(fileno(f), a);
  STDIO("fclose", a, fclose(f), "");
  /* fclose has freed the number. */
  int next = OPEN("b", b);
  MUST(next == fd);
  WRITE(next, b);
  CLOSE(next, b);

  f = STDIO_POINTER(N("fopen"), a, fopen("a", "r+"), "mode=%s", "r+");
  WRITE(fileno(f), a);
  f = STDIO_POINTER(N("freopen"), b, freopen("b", "r+", f), "mode=%s", "r+");
  WRITE(fileno(f), b);
  /* No name: another mode for the same file. */
  f = STDIO_POINTER(N("freopen"), b, freopen(NULL, "w", f), "mode=%s", "w");
  MUST(STDIO("fwrite", b, fwrite("abcd", 1, 4, f), "size=%d count=%d", 1, 4) == 4);
  WRITE(fileno(f), b);
  MUST(STDIO("fflush", b, fflush(f), "") == 0);
  /* What lies under the stream changes. */
  fd = OPEN("a", a);
  MUST(POSIX("dup2", a, dup2(fd, fileno(f)), "oldfd=%d newfd=%d", fd, fileno(f)) == fileno(f));
  MUST(STDIO("fputs", a, fputs("text", f), "ret_len=%d", 4) >= 0);
  CLOSE(fd, a);
  STDIO("fclose", a, fclose(f), "");

  int ends[2];
  MUST(POSIX("pipe", NULL, pipe(ends), "") == 0);
  const char* way = FD(ends[0]);
  MUST(strncmp(way, "pipe:[", 6) == 0);
  f = STDIO_POINTER("fdopen", way, fdopen(ends[1], "w"), "fd=%d mode=%s", ends[1], "w");
  MUST(STDIO("fputs", way, fputs("through\n", f), "ret_len=%d", 8) >= 0);
  STDIO("fclose", way, fclose(f), "");
  READ(ends[0], way, 8);
  READ(ends[0], way, 0);
  CLOSE(ends[0], way);
}

/* A descriptor keeps the name by which it was opened. */
static void renamed(void) {
  int fd = POSIX(N("open"), P("c"), open("c", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                 O_RDWR | O_CREAT, 0600);
  MUST(POSIX("rename", P("c"), rename("c", "d"), "newpath_hash=%s", P("d")) == 0);
  WRITE(fd, P("c"));
  MUST(POSIX("unlink", P("d"), unlink("d"), "") == 0);
  WRITE(fd, P("c"));
  CLOSE(fd, P("c"));
  /* ... and one that we have to ask about, the name that the kernel has for it. */
  fd = (int)unseen(SYS_openat, AT_FDCWD, (long)"c", O_RDWR | O_CREAT, 0600);
  MUST(POSIX("unlink", P("c"), unlink("c"), "") == 0);
  WRITE(fd, P("c (deleted)"));
  CLOSE(fd, P("c (deleted)"));
}

static void* other_thread(void* fd) {
  WRITE(*(int*)fd, a);
  CLOSE(*(int*)fd, a);
  *(int*)fd = OPEN("b", b);
  return NULL;
}

static void threads(void) {
  pthread_t thread;
  int fd = OPEN("a", a);
  MUST(pthread_create(&thread, NULL, other_thread, &fd) == 0 && pthread_join(thread, NULL) == 0);
  WRITE(fd, b);
  CLOSE(fd, b);
}

/* Each has its own file, however many there are. */
static void many(void) {
  int fds[200];
  char name[32];
  for (int i = 0; i < 200; ++i) {
    snprintf(name, sizeof name, "m%d", i);
    fds[i] = POSIX(N("open"), P(name), open(name, O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                   O_RDWR | O_CREAT, 0600);
  }
  for (int i = 199; i >= 0; --i) {
    snprintf(name, sizeof name, "m%d", i);
    WRITE(fds[i], P(name));
  }
  for (int i = 0; i < 200; ++i) {
    snprintf(name, sizeof name, "m%d", i);
    CLOSE(fds[i], P(name));
  }
}

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  strcpy(a, P("a"));
  strcpy(b, P("b"));
  CLOSE(POSIX(N("creat"), a, creat("a", 0600), "mode=%d", 0600), a);
  CLOSE(POSIX(N("creat"), b, creat("b", 0600), "mode=%d", 0600), b);
  unknown();
  taken_over();
  streams();
  renamed();
  threads();
  many();
  return finish();
}
