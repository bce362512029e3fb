// Finds and reads the spool file of another process.
// Called by recoverers, and by peek() for a process that still runs; any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/syscalls.hpp"
#include "buffer/layout.hpp"
#include "recovery/recover.hpp"

namespace dft::recovery {

inline constexpr std::size_t kLongestPath = 4096 + 300;

class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) sys::close(fd_);
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// A copy of the spool file in private memory: a file that shrinks meanwhile must not raise SIGBUS.
class Image {
 public:
  Image() = default;
  ~Image() {
    if (data_ != nullptr) sys::unmap(data_, size_);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  bool read(int fd, std::uint64_t size) {
    if (size == 0 || size > kLargestSpool) return false;
    data_ = static_cast<std::byte*>(sys::map_private(size));
    if (data_ == nullptr) return false;
    size_ = size;
    for (std::uint64_t at = 0; at < size;) {
      const long got = sys::pread(fd, data_ + at, size - at, at);
      if (got == -EINTR) continue;
      // Shorter than fstat() reported: the rest stays zero, and is checked as such.
      if (got <= 0) return got == 0;
      at += static_cast<std::uint64_t>(got);
    }
    return true;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::uint64_t kLargestSpool = std::uint64_t{4} << 30;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A spool pointer contains the path of a spool on a node-local file system and, on the next line,
// that spool's key. False if the file is not a spool pointer.
inline bool read_spool_pointer(int fd, const struct stat& info, char (&to)[kLongestPath],
                               std::uint64_t& key) {
  char text[kLongestPath + sizeof kSpoolPointerStart + 20] = {};
  if (info.st_size < 20 || static_cast<std::size_t>(info.st_size) >= sizeof text - 1) return false;
  if (sys::pread(fd, text, sizeof text - 1, 0) < 20) return false;
  const std::size_t start = sizeof kSpoolPointerStart - 1;
  if (std::memcmp(text, kSpoolPointerStart, start) != 0 || text[start] != '/') return false;
  char* newline = std::strchr(text, '\n');
  if (newline == nullptr) return false;
  *newline = '\0';
  if (static_cast<std::size_t>(newline - text) - start >= kLongestPath) return false;
  std::strcpy(to, text + start);
  key = 0;
  for (const char* c = newline + 1; *c != '\0' && *c != '\n'; ++c) {
    const bool digit = *c >= '0' && *c <= '9';
    if (!digit && (*c < 'a' || *c > 'f')) return false;
    key = key << 4 | static_cast<std::uint64_t>(digit ? *c - '0' : *c - 'a' + 10);
  }
  return std::string_view(to).ends_with(kSpoolEnding);
}

// Whether an open file is the spool that the pointer names. A pointer can come from any archive,
// and must not make us touch an unrelated file.
inline bool is_pointed_to(int fd, std::uint64_t key) {
  alignas(buffer::SpoolHead) std::byte bytes[sizeof(buffer::SpoolHead)] = {};
  if (sys::pread(fd, bytes, sizeof bytes, 0) != sizeof bytes) return false;
  const auto& head = *reinterpret_cast<const buffer::SpoolHead*>(bytes);
  return key != 0 && head.pointer_key == key &&
         std::memcmp(head.magic, buffer::kMagic, sizeof head.magic) == 0;
}

}  // namespace dft::recovery
