#include "sink/sink.hpp"

#include <cstring>
#include <new>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/transaction.hpp"
#include "record/clock.hpp"
#include "sink/trace_file.hpp"

namespace dft::sink {
namespace {

using buffer::ChunkHead;
using buffer::ChunkState;

constexpr std::uint64_t kRetryNs = 100'000'000;

bool is(const ChunkHead& chunk, ChunkState state) {
  return chunk.state.load(std::memory_order_acquire) == state;
}

// `committed` first: after a death in between there is nothing to drain, instead of a duplicate.
void set_free(ChunkHead& chunk) {
  chunk.committed.store(0, std::memory_order_release);
  chunk.drained.store(0, std::memory_order_release);
  chunk.state.store(ChunkState::kFree, std::memory_order_release);
}

}  // namespace

// One block: its text and its counts.
struct Sink::Block {
  std::string_view text;
  std::uint64_t lines = 0;
  std::uint64_t metadata = 0;  // lines that are not events
  std::uint64_t files = 0;     // FH lines of intercepted calls
  std::uint64_t lost = 0;      // events lost so far
  std::uint64_t damaged = 0;   // chunks that end in an invalid record
  bool ends = false;           // contains the end record
};

// The chunks of one block, oldest first.
struct Sink::Batch {
  struct ChunkRange {
    ChunkHead* chunk;
    std::uint64_t offset;
    std::uint64_t sequence;
    std::uint64_t from;
    std::uint64_t to;
  };
  ChunkRange range[buffer::kMaxBatch];
  std::uint32_t count = 0;
  bool more = false;  // some chunks did not fit

  void insert(const ChunkRange& fresh) {
    std::uint32_t i = count;
    if (count == buffer::kMaxBatch) {
      more = true;
      if (fresh.sequence >= range[count - 1].sequence) return;
      i = count - 1;
    } else {
      ++count;
    }
    for (; i > 0 && range[i - 1].sequence > fresh.sequence; --i) range[i] = range[i - 1];
    range[i] = fresh;
  }
};

Sink* Sink::create(buffer::Spool& spool, const char* directory, std::size_t block) noexcept {
  if (std::strlen(directory) >= sizeof(directory_)) return nullptr;
  void* memory = sys::map_private(sizeof(Sink));
  return memory == nullptr ? nullptr : new (memory) Sink(spool, directory, block);
}

Sink::Sink(buffer::Spool& spool, const char* directory, std::size_t block) noexcept
    : spool_(spool),
      encoder_({spool.head().owner.pid, spool.head().host_hash, spool.head().time_divisor_log10,
                (spool.head().flags & buffer::kNoThreadIds) == 0},
               spool.clock_map(), spool.head().next_id),
      gzip_(spool.head().compression_level),
      block_(block) {
  std::strcpy(directory_, directory);
}

bool Sink::collect(Scope scope, Batch& batch) noexcept {
  spool_.each_chunk([&](ChunkHead& chunk, std::uint64_t offset) {
    const bool full = is(chunk, ChunkState::kFull);
    if (!full && !(scope == Scope::kEverything && is(chunk, ChunkState::kOwned))) return;
    const std::uint64_t to = chunk.committed.load(std::memory_order_acquire);
    const std::uint64_t from = chunk.drained.load(std::memory_order_relaxed);
    if (from < to) {
      batch.insert({&chunk, offset, chunk.sequence.load(), from, to});
    } else if (full) {
      set_free(chunk);
    }
  });
  return batch.count > 0;
}

void Sink::read_names() noexcept {
  spool_.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (!is(chunk, ChunkState::kNames)) return;
    const std::uint64_t from = chunk.drained.load(std::memory_order_relaxed);
    const std::uint64_t to = chunk.committed.load(std::memory_order_acquire);
    if (from < to && encoder_.names().read(payload(chunk) + from, to - from))
      chunk.drained.store(to);
  });
}

bool Sink::drain(Scope scope, const Ending* ending) noexcept {
  for (bool more = true; more;)
    if (!write_batch(scope, ending, &more)) return false;
  return true;
}

bool Sink::write_one_block(bool* more) noexcept { return write_batch(Scope::kFull, nullptr, more); }

bool Sink::write_batch(Scope scope, const Ending* ending, bool* more) noexcept {
  *more = false;
  if (closed_.load()) return true;
  Batch batch;
  const bool any = collect(scope, batch);
  const buffer::SpoolHead& head = spool_.head();
  const bool opens_or_ends =
      scope == Scope::kEverything &&
      (head.trace_lines == 0 || (ending != nullptr && (head.flags & buffer::kEnded) == 0));
  const bool has_losses = scope == Scope::kEverything && head.lost.load() > head.lost_written;
  if (!any && !opens_or_ends && !has_losses) return true;
  const std::uint64_t now = record::monotonic_ns();
  if (now < retry_at_ && scope == Scope::kFull) return false;
  if (ending == nullptr || !ending->recovered) spool_.clock_map().follow();
  read_names();
  *more = batch.more;
  const std::uint32_t wanted = batch.count;
  last_error_ = write_block(batch, ending);
  if (last_error_ != 0) {
    retry_at_ = last_error_ == -EMFILE ? 0 : now + kRetryNs;
    return false;
  }
  *more |= batch.count < wanted;
  return true;
}

// Encodes as much of the batch as fits into one block, and whatever else is due: the preamble, lost
// events, the end record. Shortens the batch to what the block holds. False if out of memory.
bool Sink::encode_block(Batch& batch, const Ending* ending, Block& block) noexcept {
  const buffer::SpoolHead& head = spool_.head();
  text_.resize(0);
  encoder_.set_lines(0);
  const std::uint64_t metadata_before = encoder_.metadata_lines();
  const std::uint64_t files_before = encoder_.files();
  if (head.trace_lines == 0) {
    const std::string_view preamble(spool_.preamble(), head.preamble_size);
    // A preamble meant to continue a file that has since disappeared now opens a new one.
    if (head.trace_size == 0 && !preamble.starts_with('[') && !text_.append("[\n")) return false;
    if (!text_.append(preamble)) return false;
    block.lines = block.metadata = head.preamble_lines;
  }
  block.lost = head.lost.load();
  if (block.lost > head.lost_written) {
    const std::uint64_t now = record::monotonic_ns() + spool_.clock_map().wall_offset;
    if (!encoder_.lost(block.lost - head.lost_written, now, text_)) return false;
  }
  std::uint32_t used = 0;
  while (used < batch.count && (used == 0 || text_.size() < block_)) {
    const Batch::ChunkRange& e = batch.range[used];
    const std::size_t before = text_.size();
    const std::uint64_t lines_before = encoder_.lines();
    std::byte* data = payload(*e.chunk);
    const auto result = encoder_.encode(data + e.from, data + e.to, e.chunk->thread.load(), text_);
    if (result == Encoder::Result::kNoMemory) {  // the records stay in their chunk
      if (used == 0) return false;
      text_.resize(before);
      encoder_.set_lines(lines_before);
      break;
    }
    block.damaged += result == Encoder::Result::kBadRecord ? 1 : 0;
    ++used;
  }
  block.ends = ending != nullptr && used == batch.count && !batch.more;
  batch.count = used;
  block.lines += encoder_.lines();
  if (block.ends) {
    const std::uint64_t now = ending->recovered ? 0 : spool_.clock_map().to_ns(record::ticks());
    // Damage found just now has no later line of its own: the end record includes it.
    block.lost += block.damaged;
    block.damaged = 0;
    if (!encoder_.end({head.trace_lines + block.lines, block.lost, now, ending->recovered,
                       ending->details, ending->totals},
                      text_)) {
      return false;
    }
    ++block.lines;
    ++block.metadata;
  }
  block.metadata += encoder_.metadata_lines() - metadata_before;
  block.files = encoder_.files() - files_before;
  block.text = text_.view();
  if ((head.flags & buffer::kCompressed) == 0) return true;
  if (!gzip_.member(block.text, static_cast<std::uint32_t>(block.lines), member_)) return false;
  block.text = member_.view();
  return true;
}

// Encodes a block and moves it into the file exactly once (buffer/transaction.hpp). Returns 0, or
// -errno: then the records stay in the spool.
int Sink::write_block(Batch& batch, const Ending* ending) noexcept {
  Block block;
  if (!encode_block(batch, ending, block)) return -ENOMEM;
  buffer::SpoolHead& head = spool_.head();
  buffer::Transaction transaction(head);
  for (std::uint32_t i = 0; i < batch.count; ++i)
    transaction.add(batch.range[i].offset, batch.range[i].to);
  transaction.announce(
      {block.text.size(), block.lines, block.metadata, block.files, block.lost, block.ends});
  FileState file{head.trace_inode, head.trace_size};
  const int error = append(directory_, head.trace_name, block.text, file, head.file_mode & 0777);
  if (error != 0) {
    transaction.withdraw();
    return error;
  }
  transaction.commit(file.inode);
  transaction.apply([&](std::uint32_t i) {
    batch.range[i].chunk->drained.store(batch.range[i].to, std::memory_order_release);
  });
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    ChunkHead& chunk = *batch.range[i].chunk;
    if (is(chunk, ChunkState::kFull) && chunk.committed.load() == batch.range[i].to)
      set_free(chunk);
  }
  if (block.damaged != 0) spool_.add_lost(block.damaged);
  if (block.ends) head.lost.store(block.lost);
  heartbeat();
  blocks_.fetch_add(1);
  notice();
  return 0;
}

void Sink::notice() noexcept {
  progress_.fetch_add(1);
  if (waiting_.load() != 0) sys::futex_wake(&progress_, 1 << 20);
}

void Sink::wait(std::uint32_t seen, long timeout_ns) noexcept {
  waiting_.fetch_add(1);
  sys::futex_wait(&progress_, seen, timeout_ns);
  waiting_.fetch_sub(1);
}

bool Sink::has_full_chunks() noexcept {
  Batch batch;
  return collect(Scope::kFull, batch);
}

bool Sink::is_unused() noexcept {
  bool unused = spool_.head().trace_lines == 0 && spool_.head().lost.load() == 0;
  spool_.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    const auto state = chunk.state.load();
    const bool holds = state == buffer::ChunkState::kOwned || state == buffer::ChunkState::kFull;
    unused &= !holds || chunk.committed.load() == 0;
  });
  return unused;
}

void Sink::heartbeat() noexcept {
  if (closed_.load()) return;
  timespec wall;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &wall);
  spool_.head().heartbeat.store(static_cast<std::uint64_t>(wall.tv_sec));
}

bool Sink::reclaim_or_drop() noexcept {
  const std::uint64_t before = blocks_.load();
  {
    Locked locked(lock_);
    if (blocks_.load() != before) return true;  // the previous holder of the lock freed some
    if (closed_.load()) return false;
    Batch batch;
    if (!collect(Scope::kFull, batch)) return false;
    bool more = false;
    if (write_one_block(&more) && blocks_.load() != before) return true;
  }
  if (last_error_ == -EMFILE && wait_for_writer(before)) return true;
  Locked locked(lock_);
  drop_oldest();
  return true;
}

// The program has run out of descriptors; the writer thread has its own table.
bool Sink::wait_for_writer(std::uint64_t before) noexcept {
  for (int i = 0; i < 100 && blocks_.load() == before; ++i) sys::sleep_ns(1'000'000);
  return blocks_.load() != before;
}

void Sink::drop_oldest() noexcept {
  Batch batch;
  if (!collect(Scope::kFull, batch)) return;
  ChunkHead& chunk = *batch.range[0].chunk;
  const std::uint64_t events = buffer::records_in(chunk);
  spool_.add_lost(events);
  buffer::g_losses.fetch_add(1);
  set_free(chunk);
  report_once("events are being lost, and counted");
}

// One message per process, however many things go wrong: the first one that the user has to know.
void Sink::report_once(const char* consequence) noexcept {
  if (reported_) return;
  reported_ = true;
  const char* why =
      last_error_ == -ESTALE ? "it was removed or replaced during the run" : reason(last_error_);
  say("%.300s/%s cannot be written: %s; %s", directory_, spool_.head().trace_name, why,
      consequence);
}

bool Sink::finish(const Ending& ending) noexcept {
  if (closed_.load()) return true;
  retry_at_ = 0;
  bool done = drain(Scope::kEverything, &ending);
  // Bounded: threads that keep recording while the program ends could continue this forever.
  for (int i = 0; done && i < 16 && (spool_.head().flags & buffer::kEnded) == 0; ++i) {
    done = drain(Scope::kEverything, &ending);
  }
  if (!done) report_once("its last events stay in the spool beside it, for `dftracer recover`");
  abandon();
  return done;
}

void Sink::discard() noexcept {
  this->~Sink();
  sys::unmap(this, sizeof(Sink));
}

void Sink::abandon() noexcept {
  closed_.store(true);
  text_.free();
  member_.free();
  gzip_.free();
  encoder_.free();
}

}  // namespace dft::sink
