// What a call is about: the column `about` of the table of calls. The probe of each kind of subject
// finds the file (probe.hpp).
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "base/syscalls.hpp"

namespace dft::intercept {

inline constexpr int kCwd = AT_FDCWD;

struct FdSubject {
  int fd;
};
struct StreamSubject {
  FILE* stream;
};
struct PathSubject {
  int directory;
  const char* path;
};
struct ProcessSubject {};  // a process: always recorded
struct UnnamedSubject {};  // something that lies below no directory
// Two files: the event carries the first, and is recorded if either is traced.
struct FdPair {
  int fd;
  int other;
};
struct PathPair {
  int directory;
  const char* path;
  int other_directory;
  const char* other;
};
inline FdPair on_fds(int fd, int other) { return {fd, other}; }
inline PathPair on_paths(int directory, const char* path, int other_directory, const char* other) {
  return {directory, path, other_directory, other};
}
inline FdSubject on_fd(int fd) { return {fd}; }
inline StreamSubject on_stream(FILE* stream) { return {stream}; }
inline PathSubject on_path(const char* path) { return {kCwd, path}; }
inline PathSubject on_path(int directory, const char* path) { return {directory, path}; }
inline ProcessSubject on_process() { return {}; }
inline UnnamedSubject on_unnamed() { return {}; }

inline int descriptor_of(FILE* stream) noexcept {
  return stream != nullptr ? ::fileno_unlocked(stream) : -1;
}
inline int descriptor_of(DIR* stream) noexcept { return stream != nullptr ? ::dirfd(stream) : -1; }

// Probes the pointer through the kernel, which fails with EFAULT where we would crash.
inline bool kernel_reads(const char* path) noexcept {
  return path != nullptr && sys::call(SYS_faccessat, AT_FDCWD, path, 0) != -EFAULT;
}
// Errors that the kernel reports only after it has read the path. Others, such as EINVAL for a
// wrong flag, may come before.
constexpr bool follows_reading(int error) {
  return error == ENOENT || error == EEXIST || error == ENOTDIR || error == EACCES ||
         error == EISDIR || error == ENOTEMPTY || error == ENODATA || error == EROFS;
}

}  // namespace dft::intercept
