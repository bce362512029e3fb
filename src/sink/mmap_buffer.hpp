// A growable buffer in memory of our own: lines before compression, gzip members after it. Used on
// draining threads; no heap, because draining may happen inside the program's exit or allocator.
#pragma once
#include <cstring>
#include <string_view>

#include "base/syscalls.hpp"

namespace dft::sink {

class MmapBuffer {
 public:
  MmapBuffer() = default;
  ~MmapBuffer() { free(); }
  MmapBuffer(const MmapBuffer&) = delete;
  MmapBuffer& operator=(const MmapBuffer&) = delete;

  // Makes room for n more bytes; false if there is no memory.
  [[nodiscard]] bool ensure(std::size_t n) noexcept { return capacity_ - size_ >= n || enlarge(n); }
  char* end() noexcept { return data_ + size_; }
  void set_end(const char* end) noexcept { size_ = static_cast<std::size_t>(end - data_); }
  [[nodiscard]] char* data() noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data_, size_}; }
  void resize(std::size_t n) noexcept { size_ = n; }
  bool append(std::string_view more) noexcept {
    if (!ensure(more.size())) return false;
    std::memcpy(end(), more.data(), more.size());
    size_ += more.size();
    return true;
  }
  void free() noexcept {
    if (data_ != nullptr) sys::unmap(data_, capacity_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  bool enlarge(std::size_t n) noexcept {
    std::size_t wanted = capacity_ == 0 ? std::size_t{1} << 16 : capacity_ * 2;
    while (wanted < size_ + n) wanted *= 2;
    auto* bigger = static_cast<char*>(sys::map_private(wanted));
    if (bigger == nullptr) return false;
    if (size_ > 0) std::memcpy(bigger, data_, size_);
    if (data_ != nullptr) sys::unmap(data_, capacity_);
    data_ = bigger;
    capacity_ = wanted;
    return true;
  }
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace dft::sink
