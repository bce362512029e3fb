#include "base/thread_io.hpp"

#include <string_view>

#include "base/lock.hpp"
#include "base/syscalls.hpp"

namespace dft {
namespace {

// A thread that has handed in its counts stays visible in /proc for a moment. We remember the
// last few, so that their bytes are not counted twice.
struct Ended {
  int thread;
  IoBytes bytes;
};
constexpr std::size_t kRemembered = 64;

Lock g_lock;  // guards everything below
std::atomic<bool> g_keeping{false};
IoBytes g_ended;
Ended g_last[kRemembered];
std::size_t g_next = 0;

bool number_after(std::string_view text, std::string_view key, std::uint64_t& out) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  out = 0;
  for (const char c : text.substr(at + key.size())) {
    if (c < '0' || c > '9') break;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

// `own`: count the bytes read here as the tracer's own, because the kernel's next count has them.
bool read_counts(const char* path, IoBytes& out, bool own) {
  const int fd = sys::open(path, O_RDONLY);
  if (fd < 0) return false;
  char text[512];
  const long n =
      own ? sys::read(fd, text, sizeof text) : sys::call(SYS_read, fd, text, sizeof text);
  sys::close(fd);
  if (n <= 0) return false;
  const std::string_view all(text, static_cast<std::size_t>(n));
  // Kernels without CONFIG_TASK_IO_ACCOUNTING have only the first two.
  if (!number_after(all, "\nread_bytes: ", out.storage)) out.storage = 0;
  return number_after(all, "rchar: ", out.read) && number_after(all, "wchar: ", out.written);
}

void add(IoBytes& to, const IoBytes& more) {
  to.read += more.read;
  to.written += more.written;
  to.storage += more.storage;
}

std::uint64_t less(std::uint64_t from, std::uint64_t n) { return from > n ? from - n : 0; }

int parse_thread(const char* name) {
  int number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return number;
}

// Subtracts what the thread handed in before, if anything. A new thread that reuses the number of
// an ended one starts at zero, and so keeps its counts.
Ended* without_ended(int thread, IoBytes& bytes) {
  for (Ended& ended : g_last) {
    if (ended.thread != thread || bytes.read < ended.bytes.read ||
        bytes.written < ended.bytes.written || bytes.storage < ended.bytes.storage) {
      continue;
    }
    bytes.read -= ended.bytes.read;
    bytes.written -= ended.bytes.written;
    bytes.storage -= ended.bytes.storage;
    return &ended;
  }
  return nullptr;
}

bool living_io(IoBytes& out) {
  out = {};
  // Read our own counts first: reading the other threads' files adds to them.
  const int self = sys::thread_id();
  if (!read_counts("/proc/thread-self/io", out, true)) return false;
  without_ended(self, out);
  const int list = sys::open("/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (list < 0) return false;
  sys::each_entry(list, [&](const char* name) {
    const int thread = parse_thread(name);
    if (thread == 0 || thread == self) return;
    char path[64] = "/proc/self/task/";
    std::size_t n = 16;
    for (const char* c = name; *c != '\0' && n < 40; ++c) path[n++] = *c;
    for (const char c : std::string_view("/io")) path[n++] = c;
    path[n] = '\0';
    IoBytes bytes;
    if (!read_counts(path, bytes, true)) return;  // the thread has just ended
    without_ended(thread, bytes);
    add(out, bytes);
  });
  sys::close(list);
  return true;
}

}  // namespace

bool process_io(IoBytes& out) noexcept { return read_counts("/proc/self/io", out, true); }

bool keep_thread_io(bool ended_before) noexcept {
  // Threads that are about to end block on the lock, and so count as living.
  Locked locked(g_lock);
  g_keeping.store(true);
  g_ended = {};
  for (Ended& ended : g_last) ended = {};
  if (!ended_before) return true;
  IoBytes all;
  IoBytes living;
  if (!read_counts("/proc/self/io", all, false) || !living_io(living)) return false;
  g_ended = {less(all.read, living.read), less(all.written, living.written),
             less(all.storage, living.storage)};
  return true;
}

void forget_thread_io() noexcept {
  Locked locked(g_lock);
  g_keeping.store(false);
  g_ended = {};
}

void leave_thread_io() noexcept {
  if (!g_keeping.load()) return;
  Locked locked(g_lock);
  IoBytes bytes;
  if (!read_counts("/proc/thread-self/io", bytes, false)) return;
  const int self = sys::thread_id();
  IoBytes rest = bytes;
  // A thread-local destructor that runs after ours and records an event gets here a second time.
  Ended* slot = without_ended(self, rest);
  if (slot == nullptr) slot = &g_last[g_next++ % kRemembered];
  *slot = {self, bytes};
  add(g_ended, rest);
}

bool thread_io(IoBytes& out) noexcept {
  Locked locked(g_lock);
  if (!living_io(out)) return false;
  add(out, g_ended);
  return true;
}

}  // namespace dft
