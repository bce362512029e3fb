// A growing, reusable buffer for text, with the padding that the JSON scanner needs behind it.
// One thread at a time.
#pragma once
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "reader/parse/json_scan.hpp"

namespace dft::reader {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  // Room for `size` bytes in all, and the padding; what is there stays.
  char* reserve(std::size_t size) {
    if (size > capacity_) {
      const std::size_t wanted = size + size / 4;
      void* fresh = std::realloc(data_, wanted + kPadding);
      if (fresh == nullptr) throw std::bad_alloc();
      data_ = static_cast<char*>(fresh);
      capacity_ = wanted;
    }
    return data_;
  }
  void resize(std::size_t size) {
    reserve(size);
    size_ = size;
  }
  void append(std::string_view text) {
    if (text.empty()) return;
    reserve(size_ + text.size());
    std::memcpy(data_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void clear() { size_ = 0; }
  // The scanner's sentinel: no string, number or word goes past a control character.
  void seal() {
    reserve(size_);
    if (data_ == nullptr) data_ = static_cast<char*>(std::calloc(1, kPadding));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_ + size_, 0, kPadding);
  }
  // Gives memory back after something unusually large.
  void shrink(std::size_t most) {
    if (capacity_ <= most) return;
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  [[nodiscard]] char* data() { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace dft::reader
