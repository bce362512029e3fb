/* Changes what all threads of a process have in common, while it does I/O.

     harm_rights nothing COUNT
     harm_rights user | real-user | saved-user | effective-user | raw-user
     harm_rights group | real-group | saved-group | effective-group | groups | named-groups
     harm_rights capabilities
     harm_rights namespace | mounts

   Makes COUNT marks before it and after it. Where HARM_THREAD is set, the process must have a
   second thread just before. */
#include "harm.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, BEFORE = 1000, MEANWHILE = 1001, AFTER = 1002 };

extern int capset(cap_user_header_t header, const cap_user_data_t data);

/* Calls f with what the kernel says of each thread; returns how many there are. */
static int each_thread(void (*f)(const char* status)) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  NEED(tasks != NULL);
  for (const struct dirent* entry; (entry = readdir(tasks)) != NULL;) {
    char path[300];
    char status[8192];
    if (entry->d_name[0] == '.') {
      continue;
    }
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    const int fd = open(path, O_RDONLY);
    const ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
    if (fd >= 0) {
      close(fd);
    }
    if (n <= 0) {
      continue; /* it has just ended */
    }
    status[n] = '\0';
    ++count;
    f(status);
  }
  closedir(tasks);
  return count;
}

static void pass_over(const char* status) { (void)status; }

static void show_rights(const char* status) {
  static const char* const kLines[] = {"\nUid:", "\nGid:", "\nGroups:", "\nCapEff:"};
  for (size_t i = 0; i < sizeof kLines / sizeof *kLines; ++i) {
    const char* line = strstr(status, kLines[i]);
    NEED(line != NULL);
    say("%.*s", (int)strcspn(line + 1, "\n"), line + 1);
  }
}

static void change(const char* what, int mounts) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}, {0}};
  const gid_t groups[] = {NOBODY};
#define CASE(name, call)         \
  if (strcmp(what, name) == 0) { \
    SHOW(call);                  \
  }
  CASE("user", setuid(NOBODY))
  CASE("real-user", setreuid(NOBODY, NOBODY))
  CASE("saved-user", setresuid(NOBODY, NOBODY, NOBODY))
  CASE("effective-user", seteuid(NOBODY))
  CASE("raw-user", syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY))
  CASE("group", setgid(NOBODY))
  CASE("real-group", setregid(NOBODY, NOBODY))
  CASE("saved-group", setresgid(NOBODY, NOBODY, NOBODY))
  CASE("effective-group", setegid(NOBODY))
  CASE("groups", setgroups(1, groups))
  CASE("named-groups", initgroups("nobody", NOBODY))
  CASE("capabilities", capset(&head, none))
  CASE("namespace", unshare(CLONE_NEWUSER))
  CASE("mounts", setns(mounts, CLONE_NEWNS))
}

int main(int argc, char** argv) {
  NEED(argc > 2);
  const int count = atoi(argv[2]);
  const int fd = open("data", O_RDONLY);
  const int mounts = open("/proc/self/ns/mnt", O_RDONLY);
  NEED(fd >= 0 && mounts >= 0);
  marks(fd, BEFORE, 0, count);
  const int threads = getenv("HARM_THREAD") != NULL ? 2 : 1;
  for (int i = 0; each_thread(pass_over) < threads; ++i) {
    NEED(i < 1000);
    marks(fd, MEANWHILE, 0, 5000);
  }
  say("libc sees %s", __libc_single_threaded ? "one thread" : "several threads");
  change(argv[1], mounts);
  say("threads %d", each_thread(show_rights));
  marks(fd, AFTER, 0, count);
  SHOW(close(mounts));
  SHOW(close(fd));
  return 0;
}
