#include "sink/trace_file.hpp"

#include <cstring>

#include "base/syscalls.hpp"

namespace dft::sink {
namespace {

constexpr std::size_t kPath = 4096 + 300;

int open_ours(const char* path, const FileState& state) {
  const int fd = sys::open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd == -ENOENT || fd == -ELOOP || fd == -ENXIO ? -ESTALE : fd;
  struct stat info{};
  if (sys::status(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_ino != state.inode) {
    sys::close(fd);
    return -ESTALE;
  }
  return fd;
}

// Opens a temporary file next to the trace, to be renamed once it is complete.
int open_part(const char* directory, const char* name, unsigned mode, char (&path)[kPath]) {
  if (!join(path, sizeof path, directory, ".", name, ".part")) return -ENAMETOOLONG;
  // A leftover of this name is ours and useless; anything that is not a regular file stays.
  struct stat info{};
  if (sys::status_at(path, &info) == 0 && S_ISREG(info.st_mode)) sys::unlink(path);
  int fd = -EEXIST;
  for (int attempt = 0; attempt < 8 && fd == -EEXIST; ++attempt) {
    if (attempt > 0) {
      char suffix[16] = ".00000000.part";
      std::uint32_t number = 0;
      sys::call(SYS_getrandom, &number, sizeof number, 0);
      for (int i = 1; i <= 8; ++i, number >>= 4) suffix[i] = "0123456789abcdef"[number & 15];
      if (!join(path, sizeof path, directory, ".", name, suffix)) return -ENAMETOOLONG;
    }
    fd = sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  }
  return fd;
}

int make(const char* directory, const char* name, std::string_view block, FileState& state,
         unsigned mode) {
  char passing[kPath];
  char path[kPath];
  if (!join(path, sizeof path, directory, "", name, "")) return -ENAMETOOLONG;
  const int fd = open_part(directory, name, mode, passing);
  if (fd < 0) return fd;
  struct stat info{};
  int error = sys::write_at(fd, block.data(), block.size(), 0);
  if (error == 0) error = sys::status(fd, &info);
  sys::close(fd);
  if (error == 0) error = sys::rename(passing, path);
  if (error != 0) {
    sys::unlink(passing);
    return error;
  }
  state = {info.st_ino, block.size()};
  return 0;
}

}  // namespace

bool join(char* to, std::size_t room, const char* directory, const char* prefix, const char* name,
          const char* suffix) noexcept {
  const char* parts[] = {directory, "/", prefix, name, suffix};
  std::size_t used = 0;
  for (const char* part : parts) {
    const std::size_t n = std::strlen(part);
    if (used + n >= room) return false;
    std::memcpy(to + used, part, n);
    used += n;
  }
  to[used] = '\0';
  return true;
}

int append(const char* directory, const char* name, std::string_view block, FileState& state,
           unsigned mode) noexcept {
  if (state.size == 0) return make(directory, name, block, state, mode);
  char path[kPath];
  if (!join(path, sizeof path, directory, "", name, "")) return -ENAMETOOLONG;
  const int fd = open_ours(path, state);
  if (fd < 0) return fd;
  // Between blocks the file has exactly this size; a file that reused the inode does not.
  struct stat info{};
  if (sys::status(fd, &info) != 0 || static_cast<std::uint64_t>(info.st_size) != state.size) {
    sys::close(fd);
    return -ESTALE;
  }
  const int error = sys::write_at(fd, block.data(), block.size(), state.size);
  if (error != 0) sys::truncate(fd, state.size);
  sys::close(fd);
  if (error == 0) state.size += block.size();
  return error;
}

int cut_back(const char* directory, const char* name, const FileState& state) noexcept {
  if (state.size == 0) return 0;
  char path[kPath];
  if (!join(path, sizeof path, directory, "", name, "")) return -ENAMETOOLONG;
  const int fd = open_ours(path, state);
  if (fd < 0) return fd;
  struct stat info{};
  int error = sys::status(fd, &info);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (error == 0 && size < state.size) error = -ESTALE;  // shorter than what we wrote
  if (error == 0 && size > state.size) error = sys::truncate(fd, state.size);
  sys::close(fd);
  return error;
}

int give(const char* directory, const char* name, const FileState& state, unsigned user) noexcept {
  char path[kPath];
  if (!join(path, sizeof path, directory, "", name, "")) return -ENAMETOOLONG;
  const int fd = open_ours(path, state);
  if (fd < 0) return fd;
  const int error = sys::give(fd, user);
  sys::close(fd);
  return error;
}

}  // namespace dft::sink
