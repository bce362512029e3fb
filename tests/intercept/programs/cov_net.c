/* Sockets: every function that connects, sends and receives. Prints what it moved, by the name that
 * the trace should have for the socket, and what each call returned. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "intercept.h"

#define MUST(condition)                                           \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: %s: %m\n", __LINE__, #condition); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

/* Names of libc without a declaration. */
extern ssize_t __send(int, const void*, size_t, int);
extern int __connect(int, const struct sockaddr*, socklen_t);
static volatile size_t most = 4096; /* unknown to the compiler, which then checks */

static void tell(const char* call, const char* name, int fd, long ret) {
  printf("%s %s%s%.0d %ld\n", call, name, fd >= 0 ? "#" : "", fd >= 0 ? fd : 0, ret);
}
static char text[64];
static const char* at(const char* format, int port) {
  snprintf(text, sizeof text, format, port);
  return text;
}

static int listener(int family, int* port) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  memset(&address, 0, sizeof address);
  address.ss_family = (sa_family_t)family;
  if (family == AF_INET) ((struct sockaddr_in*)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (family == AF_INET6) ((struct sockaddr_in6*)&address)->sin6_addr = in6addr_loopback;
  int fd = socket(family, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  if (bind(fd, (struct sockaddr*)&address, length) != 0) {
    close(fd);
    return -1;
  }
  MUST(listen(fd, 5) == 0);
  MUST(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
  *port = ntohs(((struct sockaddr_in*)&address)->sin_port);
  return fd;
}

static int dial(int family, int port, int flags) {
  struct sockaddr_storage address;
  memset(&address, 0, sizeof address);
  address.ss_family = (sa_family_t)family;
  if (family == AF_INET) ((struct sockaddr_in*)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (family == AF_INET6) ((struct sockaddr_in6*)&address)->sin6_addr = in6addr_loopback;
  ((struct sockaddr_in*)&address)->sin_port = htons((uint16_t)port);
  int fd = socket(family, SOCK_STREAM | flags, 0);
  MUST(fd >= 0);
  socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  int ret = connect(fd, (struct sockaddr*)&address, length);
  MUST(ret == 0 || (flags != 0 && errno == EINPROGRESS));
  tell("connect", at(family == AF_INET ? "tcp://127.0.0.1:%d" : "tcp://[::1]:%d", port), fd, ret);
  return fd;
}

static void streams(int family) {
  const char* there = family == AF_INET ? "tcp://127.0.0.1:%d" : "tcp://[::1]:%d";
  const char* here = family == AF_INET ? "tcp-from://127.0.0.1->:%d" : "tcp-from://[::1]->:%d";
  int port;
  int server = listener(family, &port);
  if (server < 0) return; /* no IPv6 here */
  char data[4096];
  memset(data, 'x', sizeof data);
  int one = dial(family, port, 0);
  int two = accept(server, NULL, NULL);
  MUST(two >= 0);
  tell("accept", at(here, port), two, two);
  tell("send", at(there, port), one, send(one, data, 1000, 0));
  tell("recv", at(here, port), two, recv(two, data, 100, MSG_PEEK));
  tell("recv", at(here, port), two, recv(two, data, most < 1000 ? most : 1000, MSG_WAITALL));
  tell("write", at(here, port), two, write(two, data, 200));
  tell("read", at(there, port), one, read(one, data, 200));
  struct iovec parts[2] = {{data, 30}, {data + 100, 12}};
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  tell("sendmsg", at(there, port), one, sendmsg(one, &message, 0));
  tell("recvmsg", at(here, port), two, recvmsg(two, &message, MSG_WAITALL));
  struct mmsghdr several[2];
  memset(several, 0, sizeof several);
  several[0].msg_hdr = message;
  several[1].msg_hdr = message;
  tell("sendmmsg", at(there, port), one, sendmmsg(one, several, 2, 0));
  tell("recvfrom", at(here, port), two,
       recvfrom(two, data, most < 84 ? most : 84, MSG_WAITALL, NULL, NULL));
  tell("sendto", at(there, port), one, sendto(one, data, 5, 0, NULL, 0));
  tell("recvfrom", at(here, port), two, syscall(SYS_recvfrom, two, data, 5, 0, NULL, NULL));
  int file = open("/proc/self/exe", O_RDONLY);
  tell("sendfile", at(there, port), one, sendfile(one, file, NULL, 64));
  tell("recv", at(here, port), two, recv(two, data, 64, MSG_WAITALL));
  close(file);
  tell("recv", at(there, port), one, recv(one, data, 64, MSG_DONTWAIT));
  MUST(errno == EAGAIN);
  tell("shutdown", at(there, port), one, shutdown(one, SHUT_WR));
  tell("recv", at(here, port), two, recv(two, data, 64, 0));
  tell("close", at(there, port), one, close(one));
  tell("close", at(here, port), two, close(two));
  /* A connection that is made in the background. */
  one = dial(family, port, SOCK_NONBLOCK);
  two = accept4(server, NULL, NULL, SOCK_CLOEXEC);
  tell("accept4", at(here, port), two, two);
  struct pollfd ready = {one, POLLOUT, 0};
  MUST(poll(&ready, 1, 5000) == 1);
  tell("send", at(there, port), one, __send(one, data, 7, 0));
  tell("recv", at(here, port), two, recv(two, data, 7, MSG_WAITALL));
  close(one);
  close(two);
  tell("close", at(family == AF_INET ? "tcp-listen://127.0.0.1:%d" : "tcp-listen://[::1]:%d", port),
       -1, close(server));
}

static void datagrams(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_in from;
  socklen_t length = sizeof address;
  int server = socket(AF_INET, SOCK_DGRAM, 0);
  int client = socket(AF_INET, SOCK_DGRAM, 0);
  MUST(bind(server, (struct sockaddr*)&address, length) == 0);
  MUST(getsockname(server, (struct sockaddr*)&address, &length) == 0);
  int port = ntohs(address.sin_port);
  char data[100] = {0};
  tell("sendto", at("udp://127.0.0.1:%d", port), client,
       sendto(client, data, 33, 0, (struct sockaddr*)&address, sizeof address));
  length = sizeof from;
  tell("recvfrom", at("udp-from://127.0.0.1->:%d", port), server,
       recvfrom(server, data, 100, 0, (struct sockaddr*)&from, &length));
  tell("sendto", at("udp-from://127.0.0.1->:%d", port), server,
       sendto(server, data, 22, 0, (struct sockaddr*)&from, sizeof from));
  struct iovec part = {data, 100};
  struct mmsghdr several[3];
  memset(several, 0, sizeof several);
  for (int i = 0; i < 3; ++i)
    several[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
  MUST(connect(client, (struct sockaddr*)&address, sizeof address) == 0);
  tell("connect", at("udp://127.0.0.1:%d", port), client, 0);
  MUST(recvmmsg(client, several, 3, MSG_DONTWAIT, NULL) == 1);
  tell("recvmmsg", at("udp://127.0.0.1:%d", port), client, 1);
  printf("lengths %u\n", several[0].msg_len);
  close(client);
  close(server);
}

static void locals(const char* directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  for (int abstract = 0; abstract < 2; ++abstract) {
    memset(address.sun_path, 0, sizeof address.sun_path);
    int n = snprintf(address.sun_path + abstract, 90, "%s/s\x01\xff", directory);
    socklen_t length =
        (socklen_t)offsetof(struct sockaddr_un, sun_path) + (socklen_t)(n + abstract);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(server, (struct sockaddr*)&address, length) == 0 && listen(server, 1) == 0);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(connect(client, (struct sockaddr*)&address, length) == 0);
    int taken = accept(server, NULL, NULL);
    char data[20] = {0};
    MUST(send(client, data, 9, 0) == 9 && recv(taken, data, 9, 0) == 9);
    printf("unix %d %d\n", client, taken);
    close(client);
    close(taken);
    close(server);
  }
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  MUST(send(pair[0], "1234", 4, 0) == 4 && recv(pair[1], text, 4, 0) == 4);
  close(pair[0]);
  close(pair[1]);
}

static void lookups(void) {
  struct addrinfo* found;
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  MUST(getaddrinfo("localhost", "80", &hints, &found) == 0);
  freeaddrinfo(found);
  MUST(getaddrinfo("", "80", &hints, &found) != 0);
  char host[100];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  MUST(getnameinfo((struct sockaddr*)&address, sizeof address, host, sizeof host, NULL, 0,
                   NI_NUMERICHOST) == 0);
  MUST(strcmp(host, "127.0.0.1") == 0);
  MUST(gethostbyname("localhost") != NULL);
  MUST(gethostbyname2("localhost", AF_INET) != NULL);
  struct hostent entry;
  struct hostent* entries = NULL;
  char room[4096];
  int error;
  MUST(gethostbyname_r("localhost", &entry, room, sizeof room, &entries, &error) == 0);
  MUST(entries != NULL && entries->h_addrtype == AF_INET);
  MUST(gethostbyname2_r("localhost", AF_INET, &entry, room, sizeof room, &entries, &error) == 0);
  /* Whether the machine knows a name for it is its own business. */
  (void)gethostbyaddr(&address.sin_addr, sizeof address.sin_addr, AF_INET);
  (void)gethostbyaddr_r(&address.sin_addr, sizeof address.sin_addr, AF_INET, &entry, room,
                        sizeof room, &entries, &error);
  int port;
  int server = listener(AF_INET, &port);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_port = htons((uint16_t)port);
  MUST(__connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  tell("connect", at("tcp://localhost/127.0.0.1:%d", port), fd, 0);
  close(fd);
  close(server);
}

/* What the kernel refuses, it refuses as without a tracer. */
static void refusals(void) {
  void* bad = (void*)16;
  char data[8];
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
  MUST(connect(fd, bad, 16) == -1 && errno == EFAULT);
  MUST(bind(fd, bad, 16) == -1 && errno == EFAULT);
  MUST(sendto(pair[0], bad, 8, 0, NULL, 0) == -1 && errno == EFAULT);
  MUST(sendto(pair[0], data, 8, 0, bad, 16) == -1 && errno == EFAULT);
  MUST(sendmsg(pair[0], bad, 0) == -1 && errno == EFAULT);
  MUST(recvmsg(pair[0], bad, MSG_DONTWAIT) == -1 && errno == EFAULT);
  MUST(sendmmsg(pair[0], bad, 1, 0) == -1 && errno == EFAULT);
  MUST(recvmmsg(pair[0], bad, 1, MSG_DONTWAIT, NULL) == -1 && errno == EFAULT);
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, bad) == -1 && errno == EFAULT);
  MUST(send(-1, data, 8, 0) == -1 && errno == EBADF);
  MUST(recv(0, data, 8, 0) == -1 && errno == ENOTSOCK);
  MUST(connect(-1, bad, 16) == -1 && errno == EBADF);
  MUST(accept(fd, NULL, NULL) == -1 && errno == EINVAL);
  MUST(listen(-1, 1) == -1 && errno == EBADF);
  MUST(recv(pair[0], data, 8, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  MUST(send(pair[0], data, 8, 0) == 8 && read(pair[1], data, 8) == 8);
  struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1)};
  nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  MUST(connect(fd, (struct sockaddr*)&nobody, sizeof nobody) == -1 && errno == ECONNREFUSED);
  tell("connect", "tcp://127.0.0.1:1", fd, -1);
  close(fd);
  close(pair[0]);
  close(pair[1]);
}

int main(int argc, char** argv) {
  START();
  MUST(argc == 3);
  const char* what = argv[1];
  if (strcmp(what, "streams") == 0) {
    streams(AF_INET);
    streams(AF_INET6);
  } else if (strcmp(what, "datagrams") == 0) {
    datagrams();
  } else if (strcmp(what, "locals") == 0) {
    locals(argv[2]);
  } else if (strcmp(what, "lookups") == 0) {
    lookups();
  } else {
    refusals();
  }
  return 0;
}
