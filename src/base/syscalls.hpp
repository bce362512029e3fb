// System calls without libc's wrappers, so that our own I/O never goes through a function that we
// intercept. Called by every room, on any thread; returns what the kernel does: a value, or -errno.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The sanitizers keep shadow memory for mappings that libc creates: use libc's mmap there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DFT_SANITIZED 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DFT_SANITIZED 1
#endif
#endif

namespace dft::sys {

// Restores the program's errno on scope exit.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// Not libc's syscall(), which we intercept and which sets errno.
#if defined(__clang_analyzer__)  // cannot see what a system call fills
inline long raw(long number, long a, long b, long c, long d, long e, long f) {
  KeepErrno keep;
  const long result = ::syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}
#elif defined(__x86_64__)
inline long raw(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long raw(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory", "cc");
  return x0;
}
#else
#error "system calls of this architecture are not known"
#endif

// Of the machine: 4, 16 or 64 KiB on aarch64. Mappings, and what mprotect() changes, are whole
// pages of this size.
inline std::size_t page_size() {
#if defined(__x86_64__)
  return 4096;
#else
  return ::getauxval(AT_PAGESZ);
#endif
}

template <class T>
inline long word(T value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}

template <class... A>
inline long call(long number, A... args) {
  static_assert(sizeof...(A) <= 6);
  const long words[6] = {word(args)...};
  return raw(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// Bytes read and written by the tracer itself: the kernel counts them as the program's.
inline constinit std::atomic<std::uint64_t> g_own_read{0};
inline constinit std::atomic<std::uint64_t> g_own_written{0};
inline long count_own(std::atomic<std::uint64_t>& total, long bytes) {
  if (bytes > 0) total.fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
  return bytes;
}

inline int open(const char* path, int flags, unsigned mode = 0) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode));
}
inline int close(int fd) { return static_cast<int>(call(SYS_close, fd)); }
inline long read(int fd, void* to, std::size_t n) {
  return count_own(g_own_read, call(SYS_read, fd, to, n));
}
inline long pread(int fd, void* to, std::size_t n, std::uint64_t at) {
  return count_own(g_own_read, call(SYS_pread64, fd, to, n, at));
}
inline long write(int fd, const void* from, std::size_t n) {
  return count_own(g_own_written, call(SYS_write, fd, from, n));
}
inline int truncate(int fd, std::uint64_t size) {
  return static_cast<int>(call(SYS_ftruncate, fd, size));
}
inline int give(int fd, unsigned user) { return static_cast<int>(call(SYS_fchown, fd, user, -1)); }
inline int status(int fd, struct stat* out) { return static_cast<int>(call(SYS_fstat, fd, out)); }
inline int status_at(const char* path, struct stat* out) {
  return static_cast<int>(call(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW));
}
inline int file_system(const char* path, struct statfs* out) {
  return static_cast<int>(call(SYS_statfs, path, out));
}
inline int unlink(const char* path) {
  return static_cast<int>(call(SYS_unlinkat, AT_FDCWD, path, 0));
}
inline int link(const char* from, const char* to) {
  return static_cast<int>(call(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
inline int rename(const char* from, const char* to, unsigned flags = 0) {
  return static_cast<int>(call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}
inline int make_directory(const char* path) {
  return static_cast<int>(call(SYS_mkdirat, AT_FDCWD, path, 0777));
}
inline int process_id() { return static_cast<int>(call(SYS_getpid)); }
inline int thread_id() { return static_cast<int>(call(SYS_gettid)); }

inline void sleep_ns(long ns) {
  const timespec pause{ns / 1000000000, ns % 1000000000};
  call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
}

inline void* map(std::size_t size, int flags, int fd, std::uint64_t at, void* where = nullptr) {
#ifdef DFT_SANITIZED
  void* got = ::mmap(where, size, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(at));
  return got == MAP_FAILED ? nullptr : got;
#else
  const long got = call(SYS_mmap, where, size, PROT_READ | PROT_WRITE, flags, fd, at);
  return got < 0 && got > -4096 ? nullptr : reinterpret_cast<void*>(got);
#endif
}
inline void* map_private(std::size_t size) {
  return map(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
inline void unmap(void* where, std::size_t size) {
#ifdef DFT_SANITIZED
  ::munmap(where, size);
#else
  call(SYS_munmap, where, size);
#endif
}

inline long futex_wait(const void* word, std::uint32_t expected, long timeout_ns) {
  const timespec limit{timeout_ns / 1000000000, timeout_ns % 1000000000};
  return call(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}
inline void futex_wake(const void* word, int waiters) {
  call(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

// Writes all bytes at offset `at`. Returns 0, or -errno with an unknown part written.
inline int write_at(int fd, const void* from, std::size_t n, std::uint64_t at) {
  const char* p = static_cast<const char*>(from);
  while (n > 0) {
    const long wrote = count_own(g_own_written, call(SYS_pwrite64, fd, p, n, at));
    if (wrote == -EINTR) continue;
    if (wrote <= 0) return wrote == 0 ? -ENOSPC : static_cast<int>(wrote);
    p += wrote;
    at += static_cast<std::uint64_t>(wrote);
    n -= static_cast<std::size_t>(wrote);
  }
  return 0;
}

// Reads a whole small file, also in /proc, where sizes are 0. Returns the bytes read, or -errno.
inline long read_file(const char* path, char* to, std::size_t room) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return fd;
  std::size_t have = 0;
  while (have < room) {
    const long got = read(fd, to + have, room - have);
    if (got == -EINTR) continue;
    if (got < 0 && have == 0) {
      close(fd);
      return got;
    }
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  close(fd);
  return static_cast<long>(have);
}

// Calls f(name) for every entry of an open directory. Returns 0, or -errno.
template <class F>
inline int each_entry(int directory, F&& f) {
  alignas(8) char entries[16384];
  for (;;) {
    const long got = call(SYS_getdents64, directory, entries, sizeof entries);
    if (got <= 0) return static_cast<int>(got);
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      f(entry->d_name);
    }
  }
}

inline int write_zeros(int fd, std::uint64_t from, std::uint64_t size) {
  static const char kZeros[65536] = {};
  for (std::uint64_t done = 0; done < size; done += sizeof kZeros) {
    const std::uint64_t left = size - done;
    const int wrote =
        write_at(fd, kZeros, left < sizeof kZeros ? left : sizeof kZeros, from + done);
    if (wrote != 0) return wrote;
  }
  return 0;
}

// Reserves space so that a later store into the mapping cannot fail on a full disk (SIGBUS).
inline int reserve(int fd, std::uint64_t from, std::uint64_t size) {
  const long r = call(SYS_fallocate, fd, 0, from, size);
  if (r != -EOPNOTSUPP && r != -ENOSYS && r != -EINVAL) return static_cast<int>(r);
  return write_zeros(fd, from, size);
}

}  // namespace dft::sys
