// Spool::adopt() and discard(), for recoverers: reads a spool that another process wrote, and
// checks everything before using it.
#include <algorithm>
#include <cstring>
#include <new>

#include "buffer/spool.hpp"
#include "buffer/transaction.hpp"

namespace dft::buffer {
namespace {

bool ends_with(const char* text, std::size_t length, const char* end) {
  const std::size_t n = std::strlen(end);
  return length > n && std::memcmp(text + length - n, end, n) == 0;
}

// A plain file name that one of our traces can have: a hostile head must not lead to another file.
bool is_trace_name(const char (&name)[256]) {
  const std::size_t length = strnlen(name, sizeof name);
  if (length == 0 || length == sizeof name || name[0] == '.') return false;
  if (std::memchr(name, '/', length) != nullptr) return false;
  return ends_with(name, length, ".pfw") || ends_with(name, length, ".pfw.gz");
}

const char* check_head(const SpoolHead& head, std::size_t size) {
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) return "it is not a spool";
  if (head.version != kVersion || head.head_size != sizeof(SpoolHead)) {
    return "it was written by another version";
  }
  if (head.ready.load() != 1) return "it was never completed";
  if (!is_trace_name(head.trace_name)) return "its trace has an impossible name";
  if (head.preamble_offset != kFixedSize || head.preamble_size > size - kFixedSize) {
    return "its preamble does not fit";
  }
  const auto* text = reinterpret_cast<const char*>(&head) + head.preamble_offset;
  if (head.preamble_size == 0 || text[head.preamble_size - 1] != '\n')
    return "its preamble is damaged";
  if (head.segments.load() > kMaxSegments) return "its table of segments is damaged";
  // Segments follow each other and never overlap.
  std::uint64_t after = kFixedSize + head.preamble_size;
  for (std::uint32_t s = 0; s < head.segments.load(); ++s) {
    const Segment& segment = head.segment[s];
    const std::uint64_t bytes = std::uint64_t{segment.chunk_size} * segment.chunks;
    if (segment.chunk_size < kSmallChunk || segment.chunk_size % kPage != 0 ||
        segment.chunks == 0 || segment.offset % kPage != 0 || segment.offset < after ||
        segment.offset > size || bytes > size - segment.offset) {
      return "its table of segments is damaged";
    }
    after = segment.offset + bytes;
  }
  if (head.intent.entries > kMaxBatch) return "its last intent is damaged";
  return nullptr;
}

// Makes the chunk's head consistent with its segment. A chunk that is not free is now full:
// nothing appends to it any more, so it can be drained.
void check_chunk(ChunkHead& chunk, const Segment& segment, SpoolHead& head) {
  const auto state = chunk.state.load();
  if (chunk.size != segment.chunk_size) {
    chunk.size = segment.chunk_size;
    if (chunk.committed.load() != 0) head.lost.fetch_add(1);
    chunk.committed.store(0);
  }
  if (chunk.committed.load() > room(chunk)) chunk.committed.store(room(chunk));
  if (chunk.drained.load() > chunk.committed.load()) chunk.drained.store(chunk.committed.load());
  if (state == ChunkState::kNames) {
    chunk.drained.store(0);  // this process has not read any of them
  } else if (state != ChunkState::kFree) {
    chunk.state.store(ChunkState::kFull);
  }
}

}  // namespace

void Spool::discard() noexcept {
  this->~Spool();
  sys::unmap(this, sizeof(Spool));
}

Spool* Spool::adopt(std::byte* image, std::size_t size, const char* path,
                    const char** what) noexcept {
  *what = size < kFixedSize ? "it is too short"
                            : check_head(*reinterpret_cast<SpoolHead*>(image), size);
  if (*what == nullptr && std::strlen(path) >= sizeof(path_)) *what = "its path is too long";
  if (*what != nullptr) return nullptr;
  void* memory = sys::map_private(sizeof(Spool));
  if (memory == nullptr) {
    *what = "there is no memory";
    return nullptr;
  }
  auto* spool = new (memory) Spool;
  spool->head_ = reinterpret_cast<SpoolHead*>(image);
  spool->clock_map_ = reinterpret_cast<record::ClockMap*>(image + kClockMapOffset);
  spool->preamble_ = reinterpret_cast<char*>(image + kFixedSize);
  std::strcpy(spool->path_, path);
  SpoolHead& head = *spool->head_;
  if (head.compression_level > 3) head.compression_level = 1;
  for (std::uint32_t s = 0; s < head.segments.load(); ++s) {
    spool->base_[s] = image + head.segment[s].offset;
  }

  // The file may hold a block that the chunks are not marked for yet (transaction.hpp).
  const bool apply = Transaction::is_unapplied(head);
  if (apply) Transaction::apply_to_head(head);
  for (std::uint32_t s = 0; s < head.segments.load(); ++s) {
    const Segment& segment = head.segment[s];
    for (std::uint32_t i = 0; i < segment.chunks; ++i) {
      const std::uint64_t at = std::uint64_t{i} * segment.chunk_size;
      auto& chunk = *reinterpret_cast<ChunkHead*>(spool->base_[s] + at);
      check_chunk(chunk, segment, head);
      for (std::uint32_t e = 0; apply && e < head.intent.entries; ++e) {
        if (head.intent.entry[e].chunk_offset != segment.offset + at) continue;
        chunk.drained.store(std::min(head.intent.entry[e].drained, chunk.committed.load()));
      }
    }
  }
  head.applied_number.store(head.intent_number.load());
  return spool;
}

}  // namespace dft::buffer
