// The spool as its living owner sees it: a mapping divided into chunks that threads take and give
// back. Created and grown on slow paths of any thread; chunks are taken without a lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/layout.hpp"

namespace dft::buffer {

class Spool {
 public:
  // Creates the file, which must not exist, reserves its space and maps it. On failure returns
  // nullptr, sets *error to -errno and leaves nothing behind. Never destroyed (see retire).
  static Spool* create(const char* path, std::size_t preamble_size, int* error) noexcept;

  // The spool of a dead owner, read into private memory of this process. nullptr if anything in it
  // is inconsistent; *what is then the reason. Damage inside one chunk costs only that chunk.
  static Spool* adopt(std::byte* image, std::size_t size, const char* path,
                      const char** what) noexcept;

  void discard() noexcept;  // for an adopted spool; the caller owns the image

  SpoolHead& head() noexcept { return *head_; }
  [[nodiscard]] bool shows_threads() const noexcept { return (head_->flags & kNoThreadIds) == 0; }
  record::ClockMap& clock_map() noexcept { return *clock_map_; }
  char* preamble() noexcept { return preamble_; }
  [[nodiscard]] const char* path() const noexcept { return path_; }
  // The file was renamed after it was completed.
  void moved_to(const char* path) noexcept;

  // A free chunk with room for `payload` bytes, marked as taken by `thread`; nullptr if none.
  ChunkHead* take(std::size_t payload, bool first_of_thread, std::uint32_t thread) noexcept;
  // Adds chunks that can hold `payload`, unless another thread has since `seen_segments` was
  // read. False if the disk, the address space or the segment table is full.
  bool grow(std::size_t payload, bool small, std::uint32_t seen_segments) noexcept;
  [[nodiscard]] std::uint32_t segments() const noexcept { return head_->segments.load(); }
  [[nodiscard]] bool has_free(std::size_t payload, bool small) noexcept;
  // Back off for 10 ms after a failed attempt to find space.
  void rest() noexcept { rest_until_.store(record::monotonic_ns() + 10'000'000); }
  [[nodiscard]] bool is_resting() const noexcept {
    const std::uint64_t until = rest_until_.load(std::memory_order_relaxed);
    return until != 0 && record::monotonic_ns() < until;
  }
  // Decides between growing and draining.
  [[nodiscard]] std::uint32_t large_chunks() const noexcept { return large_chunks_.load(); }

  template <class Visit>  // visit(ChunkHead&, offset in the file)
  void each_chunk(Visit visit) noexcept {
    const std::uint32_t count = head_->segments.load(std::memory_order_acquire);
    for (std::uint32_t s = 0; s < count; ++s) {
      const Segment& segment = head_->segment[s];
      for (std::uint32_t i = 0; i < segment.chunks; ++i) {
        const std::uint64_t at = std::uint64_t{i} * segment.chunk_size;
        visit(*reinterpret_cast<ChunkHead*>(base_[s] + at), segment.offset + at);
      }
    }
  }

  // Changes the owner of the file to this user. For root only.
  bool give_to(unsigned user) noexcept;

  void add_lost(std::uint64_t events) noexcept { head_->lost.fetch_add(events); }

  // Releases the file: replaces its pages in place by anonymous ones, so that a thread that is
  // still writing a record hits neither the file nor unmapped memory.
  void retire(bool remove_file) noexcept;

 private:
  Spool() = default;
  [[nodiscard]] int open_own() const noexcept;
  bool add_segment(int fd, std::uint32_t chunk_size, std::uint32_t chunks, bool reserved) noexcept;

  SpoolHead* head_ = nullptr;
  record::ClockMap* clock_map_ = nullptr;
  char* preamble_ = nullptr;
  std::size_t fixed_size_ = 0;
  std::uint64_t file_size_ = 0;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
  std::atomic<std::uint32_t> large_chunks_{0};
  std::atomic<std::uint64_t> rest_until_{0};
  Lock grow_lock_;
  bool retired_ = false;
  std::byte* base_[kMaxSegments] = {};
  char path_[4096] = {};
};

inline std::byte* payload(ChunkHead& chunk) noexcept {
  return reinterpret_cast<std::byte*>(&chunk) + sizeof(ChunkHead);
}
inline std::size_t room(const ChunkHead& chunk) noexcept { return chunk.size - sizeof(ChunkHead); }
// Counts the records that are not in the trace yet.
std::uint64_t records_in(ChunkHead& chunk) noexcept;

}  // namespace dft::buffer
