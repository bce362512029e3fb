#include "buffer/spool.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace dft::buffer {
namespace {

constexpr std::uint32_t kLargestStep = 4 << 20;
constexpr std::uint32_t kFirstChunks = 6;

// Of this machine, because mappings start at its pages. Machines with others read the spool, too:
// they find the offsets in it.
std::size_t whole_pages(std::size_t n) {
  const std::size_t page = std::max(kPage, sys::page_size());
  return (n + page - 1) / page * page;
}

}  // namespace

Spool* Spool::create(const char* path, std::size_t preamble_size, int* error) noexcept {
  if (std::strlen(path) >= sizeof(path_)) {
    *error = -ENAMETOOLONG;
    return nullptr;
  }
  void* memory = sys::map_private(sizeof(Spool));
  if (memory == nullptr) {
    *error = -ENOMEM;
    return nullptr;
  }
  const int fd = sys::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) {
    *error = fd;
    sys::unmap(memory, sizeof(Spool));
    return nullptr;
  }
  auto* spool = new (memory) Spool;
  spool->fixed_size_ = whole_pages(kFixedSize + preamble_size);
  struct stat info{};
  *error = sys::status(fd, &info);
  // Written, not fallocated: a file system with delayed allocation then never allocates blocks
  // for the spool of a short process, and has none to free. The space is reserved either way.
  const std::size_t whole =
      spool->fixed_size_ + whole_pages(std::size_t{kSmallChunk} * kFirstChunks);
  if (*error == 0) *error = sys::write_zeros(fd, 0, whole);
  std::byte* fixed = nullptr;
  if (*error == 0) {
    fixed = static_cast<std::byte*>(sys::map(spool->fixed_size_, MAP_SHARED, fd, 0));
    if (fixed == nullptr) *error = -ENOMEM;
  }
  if (*error == 0) {
    spool->head_ = new (fixed) SpoolHead{};
    spool->clock_map_ = reinterpret_cast<record::ClockMap*>(fixed + kClockMapOffset);
    spool->preamble_ = reinterpret_cast<char*>(fixed + kFixedSize);
    spool->file_size_ = spool->fixed_size_;
    spool->inode_ = info.st_ino;
    spool->device_ = info.st_dev;
    std::strcpy(spool->path_, path);
    std::memcpy(spool->head_->magic, kMagic, sizeof kMagic);
    spool->head_->version = kVersion;
    spool->head_->head_size = sizeof(SpoolHead);
    const char* slash = std::strrchr(path, '/');
    const char* base = slash != nullptr ? slash + 1 : path;
    if (std::strlen(base) < sizeof spool->head_->mapped_name) {
      std::strcpy(spool->head_->mapped_name, base);
    }
    spool->head_->preamble_offset = kFixedSize;
    if (!spool->add_segment(fd, kSmallChunk, kFirstChunks, true)) *error = -ENOMEM;
  }
  sys::close(fd);
  if (*error != 0) {
    sys::unlink(path);
    if (fixed != nullptr) sys::unmap(fixed, spool->fixed_size_);
    sys::unmap(memory, sizeof(Spool));
    return nullptr;
  }
  return spool;
}

void Spool::moved_to(const char* path) noexcept {
  if (std::strlen(path) < sizeof path_) std::strcpy(path_, path);
}

bool Spool::add_segment(int fd, std::uint32_t chunk_size, std::uint32_t chunks,
                        bool reserved) noexcept {
  const std::uint32_t index = head_->segments.load();
  if (index >= kMaxSegments) return false;
  const std::uint64_t size = whole_pages(std::size_t{chunk_size} * chunks);
  if (!reserved && sys::reserve(fd, file_size_, size) != 0) {
    sys::truncate(fd, file_size_);
    return false;
  }
  auto* base = static_cast<std::byte*>(sys::map(size, MAP_SHARED, fd, file_size_));
  if (base == nullptr) {
    sys::truncate(fd, file_size_);
    return false;
  }
  for (std::uint32_t i = 0; i < chunks; ++i) {
    auto* chunk = new (base + std::size_t{i} * chunk_size) ChunkHead{};
    chunk->size = chunk_size;
  }
  base_[index] = base;
  head_->segment[index] = {file_size_, chunk_size, chunks};
  file_size_ += size;
  if (chunk_size >= kLargeChunk) large_chunks_.fetch_add(chunks);
  head_->segments.store(index + 1, std::memory_order_release);
  return true;
}

ChunkHead* Spool::take(std::size_t need, bool first_of_thread, std::uint32_t thread) noexcept {
  const std::uint32_t segments = head_->segments.load(std::memory_order_acquire);
  const bool small = first_of_thread && need <= kSmallChunk - sizeof(ChunkHead);
  const bool huge = need > kLargeChunk - sizeof(ChunkHead);
  for (std::uint32_t s = 0; s < segments; ++s) {
    const Segment& segment = head_->segment[s];
    if (segment.chunk_size - sizeof(ChunkHead) < need) continue;
    if (small != (segment.chunk_size == kSmallChunk)) continue;
    if (!huge && !small && segment.chunk_size != kLargeChunk) continue;
    // First fit: keeps the number of chunks in use small, and those in the caches.
    for (std::uint32_t i = 0; i < segment.chunks; ++i) {
      auto* chunk = reinterpret_cast<ChunkHead*>(base_[s] + std::size_t{i} * segment.chunk_size);
      auto state = ChunkState::kFree;
      if (chunk->state.load(std::memory_order_relaxed) != state) continue;
      // The counters of a free chunk are zero: the drainer reset them before it set the state.
      if (!chunk->state.compare_exchange_strong(state, ChunkState::kOwned,
                                                std::memory_order_acquire)) {
        continue;
      }
      chunk->thread.store(thread, std::memory_order_relaxed);
      chunk->sequence.store(head_->next_sequence.fetch_add(1), std::memory_order_relaxed);
      return chunk;
    }
  }
  return nullptr;
}

bool Spool::has_free(std::size_t need, bool small) noexcept {
  bool any = false;
  each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    any |= chunk.state.load() == ChunkState::kFree && room(chunk) >= need &&
           small == (chunk.size == kSmallChunk);
  });
  return any;
}

bool Spool::grow(std::size_t need, bool small, std::uint32_t seen_segments) noexcept {
  Locked locked(grow_lock_);
  // The path, and even the inode number, may belong to another spool by now.
  if (retired_) return false;
  if (head_->segments.load() != seen_segments) return true;
  const bool fits_small = small && need <= kSmallChunk - sizeof(ChunkHead);
  std::uint32_t chunk_size = fits_small ? kSmallChunk : kLargeChunk;
  while (chunk_size - sizeof(ChunkHead) < need) chunk_size *= 2;
  std::uint32_t chunks = 8;
  if (chunk_size > kLargeChunk) {
    chunks = 1;
  } else {
    // The segment table is short: with thousands of threads the spool grows in ever larger steps.
    const std::uint32_t count = head_->segments.load();
    for (std::uint32_t s = 0; s < count; ++s) {
      if (head_->segment[s].chunk_size == chunk_size && head_->segment[s].chunks >= chunks) {
        chunks = head_->segment[s].chunks + head_->segment[s].chunks / 2;
      }
    }
    chunks = std::min(chunks, kLargestStep / chunk_size);
  }
  const int fd = open_own();
  if (fd < 0) return false;
  const bool grown = add_segment(fd, chunk_size, chunks, false) ||
                     (chunks > 1 && add_segment(fd, chunk_size, 1, false));
  sys::close(fd);
  return grown;
}

// The path may name another file by now: check the inode.
int Spool::open_own() const noexcept {
  const int fd = sys::open(path_, O_RDWR | O_NOFOLLOW);
  if (fd < 0) return fd;
  struct stat info{};
  if (sys::status(fd, &info) == 0 && info.st_ino == inode_ && info.st_dev == device_ &&
      static_cast<std::uint64_t>(info.st_size) == file_size_) {
    return fd;
  }
  sys::close(fd);
  return -ESTALE;
}

bool Spool::give_to(unsigned user) noexcept {
  Locked locked(grow_lock_);
  const int fd = retired_ ? -ESTALE : open_own();
  if (fd < 0) return false;
  const bool given = sys::give(fd, user) == 0;
  sys::close(fd);
  return given;
}

void Spool::retire(bool remove_file) noexcept {
  Locked locked(grow_lock_);
  retired_ = true;
  if (remove_file) {
    struct stat info{};
    if (sys::status_at(path_, &info) == 0 && info.st_ino == inode_ && info.st_dev == device_) {
      sys::unlink(path_);
    }
  }
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const std::uint32_t count = head_->segments.load();
  for (std::uint32_t s = 0; s < count; ++s) {
    const Segment& segment = head_->segment[s];
    sys::map(std::size_t{segment.chunk_size} * segment.chunks, flags, -1, 0, base_[s]);
  }
  sys::map(fixed_size_, flags, -1, 0, head_);
}

std::uint64_t records_in(ChunkHead& chunk) noexcept {
  std::uint64_t count = 0;
  std::uint64_t at = chunk.drained.load();
  const std::uint64_t end = chunk.committed.load();
  while (at < end) {
    const std::size_t size = record::size_of_record(payload(chunk) + at, end - at);
    if (size == 0) break;
    at += size;
    ++count;
  }
  return count;
}

}  // namespace dft::buffer
