#include "recovery/peek.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/signals.hpp"
#include "buffer/spool.hpp"
#include "recovery/image.hpp"
#include "recovery/owner.hpp"
#include "sink/encode.hpp"
#include "sink/trace_file.hpp"

namespace dft::recovery {
namespace {

using buffer::ChunkHead;
using buffer::ChunkState;

constexpr std::size_t kMostChunks = 512;

bool is(const ChunkHead& chunk, ChunkState state) { return chunk.state.load() == state; }

// Whether the chunk was still the same after copying it. If not, the copy mixes two states.
bool is_same(int fd, const ChunkHead& copy, std::uint64_t offset) {
  alignas(ChunkHead) std::byte bytes[sizeof(ChunkHead)];
  if (sys::pread(fd, bytes, sizeof bytes, offset) != sizeof bytes) return false;
  const auto& now = *reinterpret_cast<const ChunkHead*>(bytes);
  return now.sequence.load() == copy.sequence.load() &&
         now.committed.load() >= copy.committed.load() && !is(now, ChunkState::kFree);
}

void describe(buffer::SpoolHead& head, const char* base, Peeked& out) {
  buffer::Owner owner = head.owner;
  owner.host[sizeof owner.host - 1] = '\0';
  owner.boot[sizeof owner.boot - 1] = '\0';
  char mapped_as[sizeof head.mapped_name + 1] = {};
  std::memcpy(mapped_as, head.mapped_name, sizeof head.mapped_name);
  out.run = head.run;
  out.key = process_key(owner);
  out.written = head.trace_lines;
  out.lost = head.lost.load();
  out.trace_size = head.trace_size;
  out.pid = owner.pid;
  out.life =
      static_cast<std::uint32_t>(life_of(owner, base, mapped_as[0] != '\0' ? mapped_as : base));
  out.time_divisor_log10 = head.time_divisor_log10;
  std::snprintf(out.host, sizeof out.host, "%s", owner.host);
  std::snprintf(out.trace_name, sizeof out.trace_name, "%s", head.trace_name);
}

// Where loads may overtake each other, a copy can hold a new `committed` and old records. So the
// records are copied once more, after it.
bool copy_again([[maybe_unused]] int fd, [[maybe_unused]] ChunkHead& chunk,
                [[maybe_unused]] std::uint64_t offset) {
#if defined(__x86_64__)
  return true;
#else
  const std::uint64_t size = chunk.committed.load();
  std::atomic_thread_fence(std::memory_order_acquire);
  const long got = sys::pread(fd, buffer::payload(chunk), size, offset + sizeof(ChunkHead));
  std::atomic_thread_fence(std::memory_order_acquire);
  return got == static_cast<long>(size);
#endif
}

// Drops copies of chunks that changed while being copied. True if any are left, or there were none.
bool keep_whole(buffer::Spool& spool, int fd) {
  std::uint32_t all = 0;
  std::uint32_t whole = 0;
  spool.each_chunk([&](ChunkHead& chunk, std::uint64_t offset) {
    if (!is(chunk, ChunkState::kFull) || chunk.committed.load() == 0) return;
    ++all;
    if (copy_again(fd, chunk, offset) && is_same(fd, chunk, offset)) {
      ++whole;
    } else {
      chunk.committed.store(0);
      chunk.drained.store(0);
    }
  });
  return all == 0 || whole > 0;
}

// Encodes the records of the copied chunks as lines, including those already in the trace.
void encode(buffer::Spool& spool, sink::MmapBuffer& lines, Peeked& out) {
  buffer::SpoolHead& head = spool.head();
  sink::Encoder encoder({head.owner.pid, head.host_hash, head.time_divisor_log10,
                         (head.flags & buffer::kNoThreadIds) == 0},
                        spool.clock_map(), head.next_id);
  spool.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (is(chunk, ChunkState::kNames))
      encoder.names().read(buffer::payload(chunk), chunk.committed.load());
  });
  // In the order in which they were taken; if there are too many, the newest.
  ChunkHead* chunks[kMostChunks];
  std::size_t size = 0;
  spool.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (!is(chunk, ChunkState::kFull)) return;
    out.waiting += buffer::records_in(chunk);
    std::size_t at = size < kMostChunks ? size++ : 0;
    if (at == 0 && size == kMostChunks) {
      if (chunk.sequence.load() < chunks[0]->sequence.load()) return;
      std::memmove(chunks, chunks + 1, (kMostChunks - 1) * sizeof *chunks);
      at = kMostChunks - 1;
    }
    for (; at > 0 && chunks[at - 1]->sequence.load() > chunk.sequence.load(); --at)
      chunks[at] = chunks[at - 1];
    chunks[at] = &chunk;
  });
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte* from = buffer::payload(*chunks[i]);
    encoder.encode(from, from + chunks[i]->committed.load(), chunks[i]->thread.load(), lines);
  }
  encoder.free();
}

// A busy process may fill a chunk and take the next one while we copy.
constexpr int kAttempts = 8;

int peek_open(int fd, const char* path, Peeked& out, sink::MmapBuffer& lines) {
  for (int attempt = 1;; ++attempt) {
    struct stat info{};
    const int error = static_cast<int>(sys::status(fd, &info));
    if (error != 0) return error;
    if (!S_ISREG(info.st_mode)) return -EINVAL;
    Image image;
    if (!image.read(fd, static_cast<std::uint64_t>(info.st_size))) return -EAGAIN;
    const char* what = nullptr;
    buffer::Spool* spool = buffer::Spool::adopt(image.data(), image.size(), path, &what);
    if (spool == nullptr) {
      const auto* head = reinterpret_cast<const buffer::SpoolHead*>(image.data());
      return image.size() >= sizeof *head && head->ready.load() == 0 ? -EAGAIN : -EINVAL;
    }
    const bool usable = keep_whole(*spool, fd) || attempt == kAttempts;
    if (usable) {
      describe(spool->head(), std::strrchr(path, '/') + 1, out);
      spool->clock_map().settle(true);
      lines.append({spool->preamble(), spool->head().preamble_size});
      out.opening = static_cast<std::uint32_t>(lines.size());
      encode(*spool, lines, out);
    }
    spool->discard();
    if (usable) return 0;
  }
}

}  // namespace

int peek(const char* directory, const char* name, Peeked& out, sink::MmapBuffer& lines) noexcept {
  SlowPath slow;
  out = {};
  lines.resize(0);
  char path[kLongestPath];
  if (!sink::join(path, sizeof path, directory, "", name, "")) return -ENAMETOOLONG;
  const OwnedFd file(sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return file.get();
  struct stat info{};
  const int error = static_cast<int>(sys::status(file.get(), &info));
  if (error != 0) return error;
  char elsewhere[kLongestPath];
  std::uint64_t key = 0;
  if (!read_spool_pointer(file.get(), info, elsewhere, key))
    return peek_open(file.get(), path, out, lines);
  const OwnedFd local(sys::open(elsewhere, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (local.get() < 0) return local.get();
  if (!is_pointed_to(local.get(), key)) return -ENOENT;
  return peek_open(local.get(), elsewhere, out, lines);
}

}  // namespace dft::recovery
