#include "recovery/owner.hpp"

#include <signal.h>
#include <sys/utsname.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/syscalls.hpp"
#include "format/hash.hpp"

namespace dft::recovery {
namespace {

struct ProcStat {
  char state = '?';
  std::uint32_t parent = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_time = 0;
};

// Reads fields 3, 4, 20 and 22 of /proc/<pid>/stat; field 2, the name, may contain anything.
bool read_stat(const char* path, ProcStat& out) {
  char text[1024];
  const long n = sys::read_file(path, text, sizeof text - 1);
  if (n <= 0) return false;
  text[n] = '\0';
  const char* p = std::strrchr(text, ')');
  if (p == nullptr || p[1] != ' ') return false;
  p += 2;
  const char* end = text + n;
  for (int field = 3; field <= 22 && p < end; ++field) {
    if (field == 3) out.state = *p;
    if (field == 4) std::from_chars(p, end, out.parent);
    if (field == 20) std::from_chars(p, end, out.threads);
    if (field == 22) return std::from_chars(p, end, out.start_time).ec == std::errc{};
    p = static_cast<const char*>(std::memchr(p, ' ', static_cast<std::size_t>(end - p)));
    if (p == nullptr) return false;
    ++p;
  }
  return false;
}

void read_boot(char (&to)[40]) {
  std::memset(to, 0, sizeof to);
  const long n = sys::read_file("/proc/sys/kernel/random/boot_id", to, sizeof to - 1);
  if (n <= 0) to[0] = '\0';
  if (char* newline = std::strchr(to, '\n')) *newline = '\0';
}

std::uint64_t own_pid_namespace() {
  struct stat info{};
  return sys::call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &info, 0) == 0 ? info.st_ino : 0;
}

enum class MapSearch { kYes, kNo, kEmpty, kUnreadable };

// True if a line ends with "/<name>" or "/<name> (deleted)". The kernel escapes a newline in a
// name as \\012, so this does, too.
bool ends_a_line(std::string_view text, const char* name) {
  char wanted[600] = "/";
  std::size_t length = 1;
  for (const char* p = name; *p != '\0' && length + 5 < sizeof wanted; ++p) {
    const std::string_view shown = *p == '\n' ? std::string_view("\\012") : std::string_view(p, 1);
    length += shown.copy(wanted + length, shown.size());
  }
  for (std::size_t at = 0;; ++at) {
    at = text.find(std::string_view(wanted, length), at);
    if (at == std::string_view::npos || at + length >= text.size()) return false;
    const std::string_view rest = text.substr(at + length, 11);
    if (rest.front() == '\n' || rest == " (deleted)\n") return true;
  }
}

// Searches /proc/<pid>/maps for a file by base name, in any directory.
MapSearch is_mapped(std::uint32_t pid, const char* name, const char* other_name) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/maps", pid);
  const int fd = sys::open(path, O_RDONLY);
  if (fd < 0) return fd == -ENOENT ? MapSearch::kNo : MapSearch::kUnreadable;
  char text[16384];
  std::size_t have = 0;
  MapSearch result = MapSearch::kEmpty;  // its first thread has released the address space
  for (;;) {
    const long got = sys::read(fd, text + have, sizeof text - have);
    if (got == -EINTR) continue;
    if (got < 0) result = MapSearch::kUnreadable;
    if (got <= 0) break;
    result = MapSearch::kNo;
    have += static_cast<std::size_t>(got);
    if (ends_a_line({text, have}, name) || ends_a_line({text, have}, other_name)) {
      result = MapSearch::kYes;
      break;
    }
    const std::size_t keep = have < 1024 ? have : 1024;
    std::memmove(text, text + have - keep, keep);
    have = keep;
  }
  sys::close(fd);
  return result;
}

}  // namespace

void describe_self(buffer::Owner& owner) noexcept {
  utsname name{};
  ::uname(&name);
  std::snprintf(owner.host, sizeof owner.host, "%s", name.nodename);
  read_boot(owner.boot);
  owner.pid_namespace = own_pid_namespace();
  ProcStat stat;
  owner.start_time = read_stat("/proc/self/stat", stat) ? stat.start_time : 0;
  owner.pid = static_cast<std::uint32_t>(sys::process_id());
  owner.user = static_cast<std::uint32_t>(sys::call(SYS_geteuid));
}

bool describe_parent(buffer::Owner& owner) noexcept {
  char path[64];
  ProcStat stat;
  std::snprintf(path, sizeof path, "/proc/%u/stat", owner.pid);
  if (!read_stat(path, stat) || stat.parent <= 1) return false;
  owner.pid = stat.parent;
  std::snprintf(path, sizeof path, "/proc/%u/stat", owner.pid);
  if (!read_stat(path, stat)) return false;
  owner.start_time = stat.start_time;
  return true;
}

Life life_of(const buffer::Owner& owner, const char* spool, const char* mapped_as) noexcept {
  buffer::Owner self{};
  describe_self(self);
  const bool same_boot = std::strncmp(owner.boot, self.boot, sizeof owner.boot) == 0;
  const bool same_host = std::strncmp(owner.host, self.host, sizeof owner.host) == 0;
  if (!same_boot) {
    // After a reboot nothing from before runs on this host; another host is not visible from here.
    return same_host && self.boot[0] != '\0' && owner.boot[0] != '\0' ? Life::kGone
                                                                      : Life::kCannotTell;
  }
  if (owner.pid_namespace != self.pid_namespace) return Life::kCannotTell;
  if (self.boot[0] == '\0' && !same_host) return Life::kCannotTell;
  if (owner.pid == 0 || owner.pid > 0x7fffffff) return Life::kGone;
  if (self.start_time == 0 || owner.start_time == 0) {  // no /proc, on either side
    return sys::call(SYS_kill, owner.pid, 0) == -ESRCH ? Life::kGone : Life::kRuns;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/stat", owner.pid);
  // A process that is ending still has threads for a moment, which may be writing. One in which
  // only the first thread has ended looks the same, and continues.
  for (int i = 0; i < 50; ++i) {
    ProcStat stat;
    if (!read_stat(path, stat) || stat.start_time != owner.start_time) return Life::kGone;
    if (stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1)) return Life::kGone;
    if (stat.state != 'Z') {
      const MapSearch mapped = is_mapped(owner.pid, spool, mapped_as);
      if (mapped != MapSearch::kEmpty) return mapped == MapSearch::kNo ? Life::kGone : Life::kRuns;
    }
    sys::sleep_ns(2'000'000);
  }
  return Life::kRuns;
}

bool process_exists(const buffer::Owner& owner) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/stat", owner.pid);
  ProcStat stat;
  return read_stat(path, stat) && stat.start_time == owner.start_time && stat.state != 'X' &&
         (stat.state != 'Z' || stat.threads > 1);
}

std::uint64_t process_key(const buffer::Owner& owner) noexcept {
  char text[512];
  const int n = std::snprintf(text, sizeof text, "%s/%s/%llu/%u/%llu", owner.host, owner.boot,
                              static_cast<unsigned long long>(owner.pid_namespace), owner.pid,
                              static_cast<unsigned long long>(owner.start_time));
  return format::hash16({text, static_cast<std::size_t>(n) < sizeof text
                                   ? static_cast<std::size_t>(n)
                                   : sizeof text - 1});
}

}  // namespace dft::recovery
