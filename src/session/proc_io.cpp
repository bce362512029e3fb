#include "session/proc_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <charconv>

#include "base/syscalls.hpp"

namespace dft::session {

std::uint64_t cpu_time() noexcept {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto microseconds = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_usec);
  };
  return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

std::int64_t cpu_wait_time() noexcept {
  // Nanoseconds on a processor, nanoseconds of waiting for one, turns.
  const int fd = sys::open("/proc/self/schedstat", O_RDONLY);
  if (fd < 0) return -1;
  char text[96];
  const long size = sys::read(fd, text, sizeof text);
  sys::close(fd);
  const char* const end = text + (size > 0 ? size : 0);
  std::uint64_t used = 0;
  std::uint64_t waited = 0;
  const auto [space, first] = std::from_chars(text, end, used);
  if (first != std::errc{} || space == end || *space != ' ') return -1;
  const auto [rest, second] = std::from_chars(space + 1, end, waited);
  return second == std::errc{} ? static_cast<std::int64_t>(waited / 1000) : -1;
}

bool has_reaped_children() noexcept {
  rusage usage{};
  return ::getrusage(RUSAGE_CHILDREN, &usage) == 0 && usage.ru_minflt > 0;
}

void IoMeter::begin() noexcept {
  by_thread_ = has_reaped_children();
  forget_thread_io();
  if (by_thread_) {
    known_ = keep_thread_io(false) && thread_io(before_);
  } else {
    known_ = process_io(before_);
  }
}

void IoMeter::before_fork() noexcept {
  if (by_thread_ || !known_) return;
  known_ = !has_reaped_children() && keep_thread_io(true);
  by_thread_ = true;
}

bool IoMeter::measure(IoBytes& out) const noexcept {
  if (!known_ || (!by_thread_ && has_reaped_children())) return false;
  IoBytes now;
  if (!(by_thread_ ? thread_io(now) : process_io(now))) return false;
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  out = {since(now.read, before_.read), since(now.written, before_.written),
         since(now.storage, before_.storage)};
  return true;
}

}  // namespace dft::session
