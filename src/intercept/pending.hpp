// Asynchronous requests that a program has submitted and that have not been seen to complete: a
// bounded table by key, first in first out for requests with the same key. Used under the lock of
// its owner, a ring or a part of the control blocks; nothing is allocated after reserve().
#pragma once
#include <cstddef>
#include <cstdint>

#include "intercept/file_table.hpp"

namespace dft::intercept {

inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

// What is known of a request at its submission.
struct Request {
  std::uint64_t key;    // io_uring: its user_data; otherwise: the address of its control block
  std::uint64_t start;  // in ticks
  std::uint64_t offset;
  std::uint64_t count;
  std::uint64_t parent;  // the innermost region that was open
  std::uint64_t site;
  std::int64_t result;  // with `done`; negative: -errno
  std::uint64_t done;  // when it was seen to be complete before its result was taken; 0: it was not
  File* file;          // null: it has none
  File* second;        // of a copy
  std::int32_t fd;
  std::uint16_t level;
  std::uint8_t op;     // index in kRequestNames
  std::uint8_t flags;  // of the submission
  std::uint32_t slot;  // where a new descriptor goes: 0, or one more than a registered file
  std::uint32_t next;  // of the table
};
static_assert(sizeof(Request) == 96);

class PendingTable {
 public:
  // Empties the table, and maps memory unless it has room for so many. Signals are blocked. False
  // without memory.
  bool reserve(std::size_t requests) noexcept;
  void clear() noexcept;

  // A request that the caller fills; null if the table is full.
  Request* add(std::uint64_t key) noexcept;
  // The oldest request of this key, or null. remove() takes what the last find() returned.
  Request* find(std::uint64_t key) noexcept;
  void remove(const Request* found) noexcept;

  // Oldest first within a key. `each` must not change the table.
  template <class Each>
  void for_each(Each each) const noexcept {
    for (std::size_t i = 0; i < capacity_; ++i)
      for (std::uint32_t at = buckets_[i].first; at != 0; at = nodes_[at - 1].next)
        each(nodes_[at - 1]);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  // Positions in nodes_ from 1 on; 0: none. Zeroed memory is an empty table.
  struct Bucket {
    std::uint32_t first;
    std::uint32_t last;
  };
  [[nodiscard]] Bucket& bucket_of(std::uint64_t key) const noexcept {
    return buckets_[(key * 0x9e3779b97f4a7c15u >> 32) & (capacity_ - 1)];
  }

  Bucket* buckets_ = nullptr;
  Request* nodes_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two
  std::size_t size_ = 0;
  std::uint32_t free_ = 0;  // list of nodes that were removed
  std::uint32_t used_ = 0;  // nodes that were ever taken
  std::uint32_t before_found_ = 0;
};

}  // namespace dft::intercept
