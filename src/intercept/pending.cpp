#include "intercept/pending.hpp"

#include <cstring>

#include "base/syscalls.hpp"

namespace dft::intercept {

bool PendingTable::reserve(std::size_t requests) noexcept {
  std::size_t capacity = 64;
  while (capacity < requests) capacity *= 2;
  if (capacity_ >= capacity) {
    clear();
    return true;
  }
  const auto bytes = [](std::size_t n) { return n * (sizeof(Bucket) + sizeof(Request)); };
  void* memory = sys::map_private(bytes(capacity));
  if (memory == nullptr) return false;
  if (buckets_ != nullptr) sys::unmap(buckets_, bytes(capacity_));
  buckets_ = static_cast<Bucket*>(memory);
  nodes_ = reinterpret_cast<Request*>(buckets_ + capacity);
  capacity_ = capacity;
  size_ = free_ = used_ = before_found_ = 0;
  return true;
}

void PendingTable::clear() noexcept {
  if (used_ != 0) std::memset(static_cast<void*>(buckets_), 0, capacity_ * sizeof(Bucket));
  size_ = free_ = used_ = before_found_ = 0;
}

Request* PendingTable::add(std::uint64_t key) noexcept {
  std::uint32_t at = free_;
  if (at != 0) {
    free_ = nodes_[at - 1].next;
  } else if (used_ < capacity_) {
    at = ++used_;
  } else {
    return nullptr;
  }
  Request& request = nodes_[at - 1];
  request.key = key;
  request.next = 0;
  Bucket& bucket = bucket_of(key);
  (bucket.last != 0 ? nodes_[bucket.last - 1].next : bucket.first) = at;
  bucket.last = at;
  ++size_;
  return &request;
}

Request* PendingTable::find(std::uint64_t key) noexcept {
  if (size_ == 0) return nullptr;
  before_found_ = 0;
  for (std::uint32_t at = bucket_of(key).first; at != 0; at = nodes_[at - 1].next) {
    if (nodes_[at - 1].key == key) return &nodes_[at - 1];
    before_found_ = at;
  }
  return nullptr;
}

void PendingTable::remove(const Request* found) noexcept {
  const auto at = static_cast<std::uint32_t>(found - nodes_) + 1;
  Request& request = nodes_[at - 1];
  Bucket& bucket = bucket_of(request.key);
  (before_found_ != 0 ? nodes_[before_found_ - 1].next : bucket.first) = request.next;
  if (bucket.last == at) bucket.last = before_found_;
  request.next = free_;
  free_ = at;
  --size_;
}

}  // namespace dft::intercept
