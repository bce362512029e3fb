/* Calls with paths and buffers that cannot be used, with names that are too long, and in a
   directory whose own name is too long.

     harm_paths pointer null|one|page|edge|high    a path or buffer that is no memory
     harm_paths length SIZE a|./|/|../             a path of so many bytes made of this piece
     harm_paths deep                               a current directory of more than 4 KiB
     harm_paths empty                              the empty path */
#include "harm.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

extern char** environ;

static int directory; /* of the files that the calls find */

/* The compiler must not know what these are. */
static void* volatile given;
#define PATH ((const char*)given)
#define BUFFER ((void*)given)
static volatile int minus_one = -1, too_many = 100000;
static volatile size_t endless = SIZE_MAX;

/* Whatever takes a path: each is called, whatever the ones before it did. */
static void paths(void) {
  struct stat info;
  struct stat64 info64;
  struct statx extended;
  struct statfs system_info;
  struct statvfs vfs_info;
  char buffer[64];
  char* words[] = {"word", NULL};

  SHOW(open(PATH, O_RDONLY));
  SHOW(open(PATH, O_WRONLY | O_CREAT, 0640));
  SHOW(open64(PATH, O_RDONLY));
  SHOW(openat(AT_FDCWD, PATH, O_RDONLY));
  SHOW(openat(directory, PATH, O_RDONLY));
  SHOW(openat64(directory, PATH, O_RDWR | O_CREAT, 0600));
  SHOW(creat(PATH, 0600));
  SHOW(creat64(PATH, 0600));
  SHOW(stat(PATH, &info));
  SHOW(stat64(PATH, &info64));
  SHOW(lstat(PATH, &info));
  SHOW(fstatat(AT_FDCWD, PATH, &info, 0));
  SHOW(fstatat(directory, PATH, &info, AT_SYMLINK_NOFOLLOW));
  SHOW(statx(AT_FDCWD, PATH, 0, STATX_SIZE, &extended));
  SHOW(access(PATH, R_OK));
  SHOW(faccessat(AT_FDCWD, PATH, R_OK, 0));
  SHOW(faccessat(directory, PATH, W_OK, AT_EACCESS));
  SHOW(statfs(PATH, &system_info));
  SHOW(statvfs(PATH, &vfs_info));
  SHOW(truncate(PATH, 5));
  SHOW(truncate64(PATH, 6));
  SHOW(chmod(PATH, 0644));
  SHOW(fchmodat(directory, PATH, 0644, 0));
  SHOW(chown(PATH, getuid(), getgid()));
  SHOW(lchown(PATH, getuid(), getgid()));
  SHOW(fchownat(directory, PATH, getuid(), getgid(), 0));
  SHOW(utimensat(AT_FDCWD, PATH, NULL, 0));
  SHOW(utime(PATH, NULL));
  SHOW(utimes(PATH, NULL));
  SHOW(lutimes(PATH, NULL));
  SHOW(getxattr(PATH, "user.none", buffer, sizeof buffer));
  SHOW(lgetxattr(PATH, "user.none", buffer, sizeof buffer));
  SHOW(removexattr(PATH, "user.none"));
  SHOW(readlink(PATH, buffer, sizeof buffer));
  SHOW(readlinkat(directory, PATH, buffer, sizeof buffer));
  SHOW(link(PATH, "linked"));
  SHOW(link("data", PATH));
  SHOW(linkat(AT_FDCWD, PATH, directory, "linked", 0));
  SHOW(symlink(PATH, "symbolic"));
  SHOW(symlink("data", PATH));
  SHOW(symlinkat("data", directory, PATH));
  SHOW(rename(PATH, "renamed"));
  SHOW(rename("data", PATH));
  SHOW(renameat(AT_FDCWD, PATH, directory, "renamed"));
  SHOW(renameat2(AT_FDCWD, "data", directory, PATH, RENAME_NOREPLACE));
  SHOW(mkdir(PATH, 0700));
  SHOW(mkdirat(directory, PATH, 0700));
  SHOW(mkfifo(PATH, 0600));
  SHOW(mkfifoat(directory, PATH, 0600));
  SHOW(mknod(PATH, S_IFREG | 0600, 0));
  SHOW(mknodat(directory, PATH, S_IFREG | 0600, 0));
  SHOW(unlink(PATH));
  SHOW(unlinkat(directory, PATH, 0));
  SHOW(rmdir(PATH));
  SHOW(remove(PATH));
  SHOW(chdir(PATH));
  SHOW(chroot(PATH));
  SHOW(execve(PATH, words, environ));
  SHOW(execv(PATH, words));
  SHOW(execl(PATH, "word", (char*)NULL));
  SHOW(posix_spawn(NULL, PATH, NULL, NULL, words, environ));
  SHOW_POINTER(fopen(PATH, "r"));
  SHOW_POINTER(fopen64(PATH, "w"));
  const int watch = inotify_init();
  SHOW(inotify_add_watch(watch, PATH, IN_MODIFY));
  close(watch);
}

static void buffers(void) {
  struct iovec good[2] = {{0, 0}, {0, 0}};
  char room[100] = "0123456789";
  int fd = open("data", O_RDWR);
  NEED(fd >= 0);
  NEED(symlink("data", "symlink") == 0);
  int ends[2];
  NEED(pipe(ends) == 0);
  int sockets[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);

  SHOW(read(fd, BUFFER, 100));
  SHOW(read(fd, BUFFER, 0));
  SHOW(pread(fd, BUFFER, 100, 3));
  SHOW(write(fd, BUFFER, 100));
  SHOW(pwrite(fd, BUFFER, 100, 3));
  SHOW(lseek(fd, 0, SEEK_CUR));
  SHOW(readv(fd, BUFFER, 2));
  SHOW(writev(fd, BUFFER, 2));
  SHOW(preadv(fd, BUFFER, 2, 0));
  SHOW(pwritev(fd, BUFFER, 2, 0));
  SHOW(preadv2(fd, BUFFER, 2, 0, 0));
  SHOW(pwritev2(fd, BUFFER, 2, 0, 0));
  good[0].iov_base = BUFFER;
  good[0].iov_len = 100;
  SHOW(readv(fd, good, 1));
  SHOW(writev(fd, good, 1));
  SHOW(readv(fd, good, 0));
  SHOW(readv(fd, good, minus_one));
  SHOW(readv(fd, good, too_many));
  /* The first part is good: what was moved before the bad one counts. */
  good[1] = good[0];
  good[0].iov_base = room;
  good[0].iov_len = 10;
  SHOW(readv(fd, good, 2));
  SHOW(writev(fd, good, 2));
  SHOW(preadv(fd, good, 2, 7));
  SHOW(lseek(fd, 0, SEEK_CUR));
  good[0].iov_len = SIZE_MAX;
  SHOW(readv(fd, good, 2));
  SHOW(read(fd, room, endless));
  SHOW(read(-1, BUFFER, 100));
  SHOW(write(9999, BUFFER, 100));
  SHOW(fstat(fd, BUFFER));
  SHOW(stat("data", BUFFER));
  SHOW(lstat("data", BUFFER));
  SHOW(fstatat(AT_FDCWD, "data", BUFFER, 0));
  SHOW(statx(AT_FDCWD, "data", 0, STATX_SIZE, BUFFER));
  SHOW(statfs("data", BUFFER));
  SHOW(fstatfs(fd, BUFFER));
  SHOW(readlink("symlink", BUFFER, 100));
  SHOW(readlinkat(AT_FDCWD, "symlink", BUFFER, 100));
  SHOW(pipe(BUFFER));
  SHOW(pipe2(BUFFER, O_CLOEXEC));
  SHOW(ioctl(fd, FIONREAD, BUFFER));
  SHOW(fcntl(fd, F_GETLK, BUFFER));
  SHOW(fcntl(fd, F_SETLK, BUFFER));
  SHOW(getxattr("data", "user.x", BUFFER, 10));
  SHOW(fgetxattr(fd, BUFFER, room, 10));
  SHOW(setxattr("data", BUFFER, room, 10, 0));
  SHOW(poll(BUFFER, 1, 0));
  SHOW(getrandom(BUFFER, 1, 0));
  SHOW(send(sockets[0], BUFFER, 10, 0));
  SHOW(recv(sockets[0], BUFFER, 10, MSG_DONTWAIT));
  SHOW(sendmsg(sockets[0], BUFFER, 0));
  SHOW(recvmsg(sockets[0], BUFFER, MSG_DONTWAIT));
  SHOW(memfd_create((const char*)BUFFER, 0));
  SHOW(mount((const char*)BUFFER, (const char*)BUFFER, NULL, MS_BIND, NULL));
  if (given) { /* null is an ordinary value of these */
    SHOW_POINTER(getcwd(BUFFER, 100));
    SHOW(utimensat(AT_FDCWD, "data", BUFFER, 0));
    SHOW(futimens(fd, BUFFER));
    SHOW(sendfile(ends[1], fd, BUFFER, 10));
    SHOW(splice(fd, BUFFER, ends[1], NULL, 10, 0));
    SHOW(copy_file_range(fd, BUFFER, fd, NULL, 10, 0));
    char* words[] = {"true", NULL};
    SHOW(execve("/bin/true", BUFFER, environ));
    SHOW(execve("/bin/true", words, BUFFER));
    const pid_t child = fork();
    if (child == 0) {
      _exit(3);
    }
    /* The child is gone although its status could not be stored. */
    SHOW(waitpid(child, BUFFER, 0) == child);
    SHOW(waitpid(child, NULL, 0));
  }
  SHOW(close(fd));
  SHOW(close(fd));
}

static void length(size_t size, const char* piece) {
  /* A name that can be used, made of these, would be that of a directory of the system. */
  NEED(size > 4096 || (piece[0] != '/' && piece[1] != '.'));
  char* path = malloc(size + 1);
  const size_t step = strlen(piece);
  for (size_t i = 0; i < size; ++i) {
    path[i] = piece[i % step];
  }
  path[size] = 0;
  if (size > 0 && piece[0] == '.' && piece[1] == '/') {
    path[size - 1] = 'f';
  }
  given = path;
  paths();
  free(path);
}

static void deep(void) {
  char name[201];
  memset(name, 'd', 200);
  name[200] = 0;
  for (int i = 0; i < 30; ++i) {
    NEED(mkdir(name, 0755) == 0);
    NEED(chdir(name) == 0);
  }
  char small[10];
  char* large = malloc(100000);
  struct stat info;
  SHOW_POINTER(getcwd(small, sizeof small));
  SHOW_POINTER(getcwd(large, 4096));
  SHOW_POINTER(getcwd(large, 100000));
  say("%zu", strlen(large) % 201);
  const int fd = open("file", O_RDWR | O_CREAT, 0644);
  SHOW(write(fd, "text", 4));
  SHOW(stat("file", &info));
  SHOW(rename("file", "other"));
  SHOW(fstat(fd, &info));
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  SHOW(openat(here, "other", O_RDONLY));
  SHOW(openat(here, "../nothing", O_RDONLY));
  DIR* stream = opendir(".");
  int entries = 0;
  while (readdir(stream)) {
    ++entries;
  }
  SHOW(closedir(stream));
  say("%d entries", entries);
  FILE* file = fopen("other", "r");
  SHOW_POINTER(file);
  SHOW(fread(large, 1, 100, file));
  SHOW(fclose(file));
  SHOW_POINTER(realpath("other", NULL));
  SHOW(unlink("other"));
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  say("child %d", status);
  free(large);
  for (int i = 0; i < 30; ++i) {
    NEED(chdir("..") == 0);
    NEED(rmdir(name) == 0);
  }
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  directory = open(".", O_RDONLY | O_DIRECTORY);
  const long page = sysconf(_SC_PAGESIZE);
  char* memory =
      mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 'x', 2 * (size_t)page);
  if (strcmp(argv[1], "deep") == 0) {
    deep();
  } else if (strcmp(argv[1], "empty") == 0) {
    given = "";
    paths();
  } else if (strcmp(argv[1], "length") == 0) {
    length(strtoul(argv[2], NULL, 10), argv[3]);
  } else {
    const char* which = argv[2];
    if (strcmp(which, "one") == 0) {
      given = (void*)1;
    } else if (strcmp(which, "high") == 0) {
      given = (void*)0x8000000000000000ul; /* no address of any kind */
    } else if (strcmp(which, "page") == 0) {
      given = memory + page;
      NEED(mprotect(given, (size_t)page, PROT_NONE) == 0);
    } else if (strcmp(which, "edge") == 0) {
      /* A path that is not ended where its memory ends; too few bytes for most structures. */
      given = memory + page - 5;
      NEED(mprotect(memory + page, (size_t)page, PROT_NONE) == 0);
    }
    paths();
    buffers();
  }
  say("end");
  return 0;
}
