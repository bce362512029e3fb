#include "base/message.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"

// Weak: glibc has it from 2.32 on, and the library promises to load with older ones.
extern "C" const char* strerrordesc_np(int) noexcept __attribute__((weak));

namespace dft {
namespace {
char g_path[4096];
Lock g_kept_lock;
char g_kept[2048];
std::size_t g_kept_size;
thread_local constinit bool t_later = false;

// What descriptor 2 referred to at load time: the program may close it and reuse the number.
struct stat g_stderr;
bool g_had_stderr;
__attribute__((constructor)) void look_at_stderr() {
  g_had_stderr = sys::status(2, &g_stderr) == 0;
}

int g_last_stderr = -1;  // duplicate for the final messages, after the program closed stderr

// True for the stderr we started with, or for something set up to receive log lines (pipe,
// terminal, O_APPEND file); false for a data file that reused the number.
bool is_stderr() {
  struct stat now{};
  if (!g_had_stderr || sys::status(2, &now) != 0) return false;
  if (now.st_dev == g_stderr.st_dev && now.st_ino == g_stderr.st_ino) return true;
  return !S_ISREG(now.st_mode) || (sys::call(SYS_fcntl, 2, F_GETFL) & O_APPEND) != 0;
}
}  // namespace

void say_into(const char* path) noexcept {
  g_path[0] = '\0';
  if (path != nullptr && std::strlen(path) < sizeof g_path) std::strcpy(g_path, path);
}

void say_line(const char* line) noexcept {
  char text[2048];
  std::size_t n = 0;
  for (; line[n] != '\0' && n < sizeof text - 1; ++n) {
    const auto c = static_cast<unsigned char>(line[n]);
    // A file name with control characters must not forge a second line.
    text[n] = c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
  }
  text[n++] = '\n';
  SlowPath slow;
  if (g_path[0] != '\0') {
    const int fd = sys::open(g_path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
    if (fd >= 0) {
      sys::write(fd, text, n);
      sys::close(fd);
      return;
    }
  }
  if (t_later) {
    Locked locked(g_kept_lock);
    if (g_kept_size == 0) std::memcpy(g_kept, text, n);
    if (g_kept_size == 0) __atomic_store_n(&g_kept_size, n, __ATOMIC_RELEASE);
    return;
  }
  if (is_stderr()) {
    sys::write(2, text, n);
  } else if (g_last_stderr >= 0) {
    struct stat now{};
    if (sys::status(g_last_stderr, &now) == 0 && now.st_dev == g_stderr.st_dev &&
        now.st_ino == g_stderr.st_ino) {
      sys::write(g_last_stderr, text, n);
    }
  }
}

void keep_stderr() noexcept {
  constexpr int kOutOfTheWay = 200;
  if (g_last_stderr >= 0 || !is_stderr()) return;
  g_last_stderr = static_cast<int>(sys::call(SYS_fcntl, 2, F_DUPFD_CLOEXEC, kOutOfTheWay));
}

void say_later_on_this_thread() noexcept { t_later = true; }

void say_what_was_kept() noexcept {
  if (__atomic_load_n(&g_kept_size, __ATOMIC_ACQUIRE) == 0) return;
  SlowPath slow;
  Locked locked(g_kept_lock);
  if (g_kept_size != 0 && is_stderr()) sys::write(2, g_kept, g_kept_size);
  __atomic_store_n(&g_kept_size, 0, __ATOMIC_RELEASE);
}

void say(const char* format, ...) noexcept {
  char line[2048] = "dftracer: ";
  va_list args;
  va_start(args, format);
  std::vsnprintf(line + 10, sizeof line - 10, format, args);
  va_end(args);
  say_line(line);
}

const char* reason(int negative_errno) noexcept {
  if (&strerrordesc_np != nullptr) {
    const char* text = strerrordesc_np(-negative_errno);
    return text != nullptr ? text : "unknown error";
  }
  // Second choice, because it translates, which may take a lock.
  static thread_local char buffer[64];
  return strerror_r(-negative_errno, buffer, sizeof buffer);
}

}  // namespace dft
