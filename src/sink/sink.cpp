#include "sink/sink.hpp"

#include <cstring>
#include <new>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "record/clock.hpp"
#include "sink/trace_file.hpp"

namespace dft::sink {
namespace {

using buffer::ChunkHead;
using buffer::ChunkState;

constexpr std::uint64_t kRetryNs = 100'000'000;

bool is(const ChunkHead& chunk, ChunkState state) {
  return chunk.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(state);
}

// `committed` goes first: a death in between leaves a chunk with nothing to drain, not one to drain
// again.
void set_free(ChunkHead& chunk) {
  chunk.committed.store(0, std::memory_order_release);
  chunk.drained.store(0, std::memory_order_release);
  chunk.state.store(static_cast<std::uint32_t>(ChunkState::kFree), std::memory_order_release);
}

}  // namespace

// What goes into one block, oldest chunk first.
struct Sink::Batch {
  struct Entry {
    ChunkHead* chunk;
    std::uint64_t offset;
    std::uint64_t sequence;
    std::uint64_t from;
    std::uint64_t to;
  };
  Entry entry[buffer::kMaxBatch];
  std::uint32_t count = 0;
  bool more = false;  // there was more than fits

  void insert(const Entry& fresh) {
    std::uint32_t i = count;
    if (count == buffer::kMaxBatch) {
      more = true;
      if (fresh.sequence >= entry[count - 1].sequence) return;
      i = count - 1;
    } else {
      ++count;
    }
    for (; i > 0 && entry[i - 1].sequence > fresh.sequence; --i) entry[i] = entry[i - 1];
    entry[i] = fresh;
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
               spool.timeline(), spool.head().next_id),
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

bool Sink::drain(Scope scope) noexcept {
  for (bool more = true; more;)
    if (!write_batch(scope, &more)) return false;
  return true;
}

bool Sink::write_batch(Scope scope, bool* more) noexcept {
  *more = false;
  if (closed_.load()) return true;
  Batch batch;
  const bool any = collect(scope, batch);
  const buffer::SpoolHead& head = spool_.head();
  const bool opening =
      scope == Scope::kEverything &&
      (head.trace_lines == 0 || (finishing_ && (head.flags & buffer::kEnded) == 0));
  const bool news = head.lost.load() > head.lost_written && scope == Scope::kEverything;
  if (!any && !opening && !news) return true;
  const std::uint64_t now = record::monotonic_ns();
  if (now < retry_at_ && scope == Scope::kFull) return false;
  if (!recovering_) spool_.timeline().follow();
  read_names();
  *more = batch.more;
  const std::uint32_t wanted = batch.count;
  if (!write_block(batch)) {
    retry_at_ = last_error_ == -EMFILE ? 0 : now + kRetryNs;
    return false;
  }
  *more |= batch.count < wanted;
  return true;
}

// Encodes the batch, as much of it as one block takes, and puts it into the file. The intent is
// written first and the chunks move on last, so that a death at any instant leaves enough to do it
// over.
bool Sink::write_block(Batch& batch) noexcept {
  buffer::SpoolHead& head = spool_.head();
  last_error_ = -ENOMEM;  // every way out but the last, unless it says otherwise
  text_.resize(0);
  encoder_.set_lines(0);
  std::uint64_t lines = 0;
  std::uint64_t metadata = 0;
  const std::uint64_t metadata_before = encoder_.metadata_lines();
  const std::uint64_t files_before = encoder_.files();
  if (head.trace_lines == 0) {
    const std::string_view preamble(spool_.preamble(), head.preamble_size);
    // A preamble that was to continue a file, which then went away, now opens one.
    if (head.trace_size == 0 && !preamble.starts_with('[') && !text_.append("[\n")) return false;
    if (!text_.append(preamble)) return false;
    lines = metadata = head.preamble_lines;
  }
  std::uint64_t lost = head.lost.load();
  if (lost > head.lost_written) {
    const std::uint64_t now = record::monotonic_ns() + spool_.timeline().wall_offset;
    if (!encoder_.lost(lost - head.lost_written, now, text_)) return false;
  }
  std::uint32_t used = 0;
  std::uint64_t damaged = 0;
  while (used < batch.count && (used == 0 || text_.size() < block_)) {
    const Batch::Entry& e = batch.entry[used];
    const std::size_t before = text_.size();
    const std::uint64_t lines_before = encoder_.lines();
    std::byte* data = payload(*e.chunk);
    const auto result = encoder_.encode(data + e.from, data + e.to, e.chunk->thread.load(), text_);
    if (result == Encoder::Result::kNoMemory) {  // the records stay where they are
      if (used == 0) return false;
      text_.resize(before);
      encoder_.set_lines(lines_before);
      break;
    }
    damaged += result == Encoder::Result::kBadRecord ? 1 : 0;
    ++used;
  }
  const bool last = finishing_ && used == batch.count && !batch.more;
  batch.count = used;
  lines += encoder_.lines();
  if (last) {
    const std::uint64_t now = recovering_ ? 0 : spool_.timeline().to_ns(record::ticks());
    // Damage that was found just now has no line of its own any more.
    lost += damaged;
    damaged = 0;
    if (!encoder_.end({head.trace_lines + lines, lost, now, recovering_, details_, traffic_},
                      text_)) {
      return false;
    }
    ++lines;
    ++metadata;
  }
  metadata += encoder_.metadata_lines() - metadata_before;
  std::string_view block = text_.view();
  if ((head.flags & buffer::kCompressed) != 0) {
    if (!gzip_.member(block, static_cast<std::uint32_t>(lines), member_)) return false;
    block = member_.view();
  }
  buffer::Intent& intent = head.intent;
  intent.from = head.trace_size;
  intent.to = head.trace_size + block.size();
  intent.lines = head.trace_lines + lines;
  intent.metadata = head.trace_metadata + metadata;
  intent.files = head.trace_files + encoder_.files() - files_before;
  intent.lost = lost;
  intent.entries = used;
  intent.ends = last ? 1 : 0;
  for (std::uint32_t i = 0; i < used; ++i)
    intent.entry[i] = {batch.entry[i].offset, batch.entry[i].to};
  const std::uint64_t number = head.applied_number.load() + 1;
  head.intent_number.store(number, std::memory_order_release);

  FileState file{head.trace_inode, head.trace_size};
  const int error = append(directory_, head.trace_name, block, file, head.file_mode & 0777);
  if (error != 0) {
    head.intent_number.store(number - 1, std::memory_order_release);
    last_error_ = error;
    return false;
  }
  head.trace_inode = file.inode;
  head.done_number.store(number, std::memory_order_release);
  head.trace_size = intent.to;
  head.trace_lines = intent.lines;
  head.trace_metadata = intent.metadata;
  head.trace_files = intent.files;
  head.lost_written = lost;
  if (last) head.flags |= buffer::kEnded;
  for (std::uint32_t i = 0; i < used; ++i) {
    batch.entry[i].chunk->drained.store(batch.entry[i].to, std::memory_order_release);
  }
  head.applied_number.store(number, std::memory_order_release);
  for (std::uint32_t i = 0; i < used; ++i) {
    ChunkHead& chunk = *batch.entry[i].chunk;
    if (is(chunk, ChunkState::kFull) && chunk.committed.load() == batch.entry[i].to)
      set_free(chunk);
  }
  if (damaged != 0) spool_.add_lost(damaged);
  if (last) head.lost.store(lost);
  heartbeat();
  blocks_.fetch_add(1);
  notice();
  last_error_ = 0;
  return true;
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
    const bool holds = state == static_cast<std::uint32_t>(buffer::ChunkState::kOwned) ||
                       state == static_cast<std::uint32_t>(buffer::ChunkState::kFull);
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

bool Sink::make_room() noexcept {
  const std::uint64_t before = blocks_.load();
  {
    Locked locked(lock_);
    if (blocks_.load() != before) return true;  // the thread that held the lock made some
    if (closed_.load()) return false;
    Batch batch;
    if (!collect(Scope::kFull, batch)) return false;
    bool more = false;
    if (write_batch(Scope::kFull, &more) && blocks_.load() != before) return true;
  }
  if (last_error_ == -EMFILE && wait_for_writer(before)) return true;
  Locked locked(lock_);
  give_up_oldest();
  return true;
}

// The program has used up its descriptors; the writer thread has a table of its own.
bool Sink::wait_for_writer(std::uint64_t before) noexcept {
  for (int i = 0; i < 100 && blocks_.load() == before; ++i) sys::sleep_ns(1'000'000);
  return blocks_.load() != before;
}

void Sink::give_up_oldest() noexcept {
  Batch batch;
  if (!collect(Scope::kFull, batch)) return;
  ChunkHead& chunk = *batch.entry[0].chunk;
  const std::uint64_t events = buffer::records_in(chunk);
  spool_.add_lost(events);
  buffer::g_losses.fetch_add(1);
  set_free(chunk);
  tell("events are being lost, and counted");
}

// One line for a process, however many things go wrong: the first that the user has to know of.
void Sink::tell(const char* what) noexcept {
  if (told_) return;
  told_ = true;
  const char* why =
      last_error_ == -ESTALE ? "it was removed or replaced during the run" : reason(last_error_);
  say("%.300s/%s cannot be written: %s; %s", directory_, spool_.head().trace_name, why, what);
}

bool Sink::finish(bool details, bool recovered, const Encoder::Traffic* traffic) noexcept {
  if (closed_.load()) return true;
  retry_at_ = 0;
  recovering_ = recovered;
  details_ = details;
  traffic_ = traffic;
  finishing_ = true;
  bool done = drain(Scope::kEverything);
  // Threads that go on recording while the program ends could keep this going for ever.
  for (int i = 0; done && i < 16 && (spool_.head().flags & buffer::kEnded) == 0; ++i) {
    done = drain(Scope::kEverything);
  }
  if (!done) tell("its last events stay in the spool beside it, for `dftracer recover`");
  traffic_ = nullptr;
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
