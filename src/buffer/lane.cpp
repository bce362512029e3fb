#include "buffer/lane.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <cstring>
#include <new>

#include "base/hot.hpp"
#include "base/thread_io.hpp"

namespace dft::buffer {

namespace {
Guard g_off{};  // stands in until the real page exists
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint32_t kHandlerLanes = 3;
constexpr std::uint32_t kIdBlock = 256;
std::atomic<std::uint64_t> g_generations{0};
std::atomic<std::uint32_t> g_serials{0};
std::atomic<std::uint32_t> g_epoch{1};
// Fallback if a thread's stack page cannot be mapped: its spans are assumed to end in order.
std::uint64_t g_no_stack[kStackDepth];
static_assert(sizeof g_no_stack == kPage);
std::atomic<bool> g_have_key{false};
pthread_key_t g_exit_key;
pthread_once_t g_once = PTHREAD_ONCE_INIT;
}  // namespace

DFT_HOT constinit std::atomic<Guard*> g_guard{&g_off};
constinit Hooks g_hooks{};
constinit std::atomic<Spool*> g_spool{nullptr};
DFT_HOT constinit std::atomic<bool> g_on{false};
DFT_HOT constinit std::atomic<std::uint64_t> g_losses{0};
constinit std::atomic<bool> g_forked{false};
thread_local constinit ThreadState t_thread = {kNever, {}, 0,       0, 0,       0,
                                               0,      0,  nullptr, 0, nullptr, nullptr};

namespace {

void give_back(Lane& lane) {
  if (lane.chunk == nullptr) return;
  lane.chunk->state.store(ChunkState::kFull, std::memory_order_release);
  lane = Lane{};
}

// Runs when a thread ends. Its records are already committed; this only releases the chunk.
void thread_ends(void*) {
  ThreadState& t = t_thread;
  SlowPath slow;
  if (t.generation == g_guard.load()->generation.load()) {
    give_back(t.lane);
    for (std::uint32_t i = 0; t.handlers != nullptr && i < kHandlerLanes; ++i)
      give_back(t.handlers[i]);
    // A few records do not justify starting the writer thread.
    static std::atomic<std::uint32_t> ended{0};
    if (ended.fetch_add(1) % 16 == 15 && g_hooks.filled != nullptr) g_hooks.filled();
  }
  give_tally(t.tally);
  leave_thread_io();
  if (t.handlers != nullptr) sys::unmap(t.handlers, kPage);
  if (t.stack != nullptr && t.stack != g_no_stack) sys::unmap(t.stack, kPage);
  t = {kNever, {}, 0, 0, 0, 0, 0, 0, nullptr, 0, nullptr, nullptr};
}

// The rest waits for the child's first event. But a fork inside a signal handler may have
// interrupted a record: when the child resumes, that record must not reach the parent's spool.
void in_forked_child() {
  g_forked.store(false);
  t_vforked_from = 0;
  // Not wiped before Linux 4.14, nor by emulators that ignore the advice. Only read where it was:
  // a store would cost every child a page.
  std::atomic<std::uint64_t>& generation = g_guard.load()->generation;
  if (generation.load() != 0) generation.store(0);
  ThreadState& t = t_thread;
  bool busy = t.lane.busy;
  for (std::uint32_t i = 0; t.handlers != nullptr && i < kHandlerLanes; ++i)
    busy |= t.handlers[i].busy;
  Spool* spool = g_spool.load();
  if (busy && spool != nullptr) spool->retire(false);
}

void prepare_process() {
  auto* page = static_cast<Guard*>(sys::map_private(kPage));
  if (page != nullptr) {
#ifdef MADV_WIPEONFORK
    sys::call(SYS_madvise, page, kPage, MADV_WIPEONFORK);
#endif
    g_guard.store(new (page) Guard{});
  }
  pthread_atfork(nullptr, [] { g_forked.store(true); }, in_forked_child);
  g_have_key.store(pthread_key_create(&g_exit_key, thread_ends) == 0);
}

// Records the name that the program gave its thread; the main thread has the program's name.
void announce_thread(ThreadState& t) {
  char name[32] = {};
  const Spool* spool = g_spool.load();
  if (spool == nullptr || !spool->shows_threads() ||
      static_cast<int>(t.thread) == sys::process_id() ||
      sys::call(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) != 0) {
    return;
  }
  const std::size_t length = std::strlen(name);
  const std::size_t size = sizeof(record::Head) + sizeof(record::Arg) + record::padded(length);
  const Slot slot = reserve(t, size);
  if (slot.at == nullptr) return;
  record::Head head{};
  head.size = static_cast<std::uint32_t>(size);
  head.kind = record::Kind::kThread;
  const record::Arg arg{0, record::ArgType::kString, {}, length};
  std::memcpy(slot.at, &head, sizeof head);
  std::memcpy(slot.at + sizeof head, &arg, sizeof arg);
  std::memcpy(slot.at + sizeof head + sizeof arg, name,
              sizeof name < record::padded(length) ? sizeof name : record::padded(length));
  commit(*slot.lane, size);
}

// Reclaims chunks of threads that ended without their destructor (killed, or a raw clone).
bool reclaim_dead_threads(Spool& spool) {
  bool any = false;
  const int pid = sys::process_id();
  spool.each_chunk([&](ChunkHead& chunk, std::uint64_t) {
    if (chunk.state.load() != ChunkState::kOwned) return;
    const std::uint32_t thread = chunk.thread.load();
    if (thread == 0 || sys::call(SYS_tgkill, pid, thread, 0) != -ESRCH) return;
    auto owned = ChunkState::kOwned;
    any |= chunk.state.compare_exchange_strong(owned, ChunkState::kFull);
  });
  return any;
}

// No chunk is free, and there is no writer thread to provide one.
bool make_chunk(Spool& spool, std::size_t size, bool small, std::uint32_t seen) {
  // Growing absorbs a burst; beyond that, the thread that needs room drains a chunk itself.
  const bool huge = size > kLargeChunk - sizeof(ChunkHead);
  const bool may_grow = small || huge || spool.large_chunks() < kMostLargeChunks;
  if (may_grow && spool.grow(size, small, seen)) return true;
  // Compression needs more stack than a signal handler may have.
  if (on_alternate_stack()) return spool.grow(size, small, seen);
  if (g_hooks.make_room()) return true;
  if (reclaim_dead_threads(spool)) return true;
  // Living threads hold every chunk: there are more threads than chunks.
  return !may_grow && spool.grow(size, small, seen);
}

// A child of vfork(), or of a clone that shares memory, borrows its parent's spool. It must neither
// start the parent's writer nor do its work: the child's exec or exit would cut both off midway.
bool is_borrower(Spool& spool, ThreadState& t) {
  const std::uint32_t owner = spool.head().owner.pid;
  // A forked child without a spool of its own yet has a wiped guard page, and borrows nothing.
  if (owner == 0 || !generation_is_live() || owner == static_cast<std::uint32_t>(sys::process_id()))
    return false;
  if (t_vforked_from == 0) t_vforked_from = static_cast<std::int32_t>(owner);
  t.handed_seen = kOutOfStep;
  return true;
}

ChunkHead* find_chunk(Spool& spool, ThreadState& t, bool first, std::size_t size, bool borrowed) {
  const bool small = first && size <= kSmallChunk - sizeof(ChunkHead);
  for (int attempt = 0; attempt < 64; ++attempt) {
    const std::uint32_t seen = spool.segments();
    if (ChunkHead* chunk = spool.take(size, first, t.thread)) return chunk;
    // Back off after a failed attempt: do not retry everything on every event.
    if (spool.is_resting() || !is_attached(t)) break;
    if (borrowed) {
      if (!spool.grow(size, small, seen)) break;
      continue;
    }
    // In a program with threads, only the writer opens files: it has its own descriptor table.
    if (g_hooks.ask_writer(size, small, seen)) continue;
    if (make_chunk(spool, size, small, seen)) continue;
    if (attempt > 1) {
      spool.rest();
      break;
    }
  }
  return spool.take(size, true, t.thread);  // a small chunk is better than none
}

}  // namespace

void new_generation() noexcept {
  pthread_once(&g_once, prepare_process);
  g_guard.load()->generation.store(g_generations.fetch_add(1) + 1);
}

void stop_generation() noexcept {
  g_guard.load()->generation.store(0);
  Spool* spool = g_spool.load();
  if (spool == nullptr) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto self = static_cast<std::uint32_t>(sys::thread_id());
  bool others = false;
  bool busy = false;
  const auto look = [&](ChunkHead& chunk, std::uint64_t) {
    if (chunk.state.load() != ChunkState::kOwned) return;
    if (chunk.thread.load() == self) return;
    others = true;
    busy |= chunk.busy.load() != 0;
  };
  spool->each_chunk(look);
  // Bounded: a thread may be stopped, or in a signal handler, in the middle of a record.
  for (int i = 0; others && i < 250; ++i) {
    sys::sleep_ns(200'000);
    busy = false;
    spool->each_chunk(look);
    if (!busy) return;
  }
}

void new_epoch() noexcept { g_epoch.fetch_add(1); }
bool generation_is_live() noexcept { return g_guard.load()->generation.load() != 0; }

ThreadState* attach_thread() noexcept {
  SlowPath slow;
  if (!g_hooks.begin()) return nullptr;
  ThreadState& t = t_thread;
  // begin() may have recorded an event on this thread already.
  if (t.generation == g_guard.load()->generation.load()) return &t;
  Lane* handlers = t.handlers;
  if (handlers != nullptr)
    std::memset(static_cast<void*>(handlers), 0, sizeof(Lane) * kHandlerLanes);
  const std::uint32_t epoch = g_epoch.load();
  if (static_cast<std::uint32_t>(t.live) == epoch) {
    // The same thread with a new spool, as after the session closed: its spans are still open.
    t.lane = {};
    t.next_id = t.last_id = 0;
  } else {
    std::uint64_t* stack = t.stack;
    Tally* tally = t.tally;
    t = {};
    t.handlers = handlers;
    t.stack = stack;
    t.tally = tally;
    t.live = std::uint64_t{g_serials.fetch_add(1) + 1} << 32 | epoch;
  }
  if (t.stack == nullptr) t.stack = static_cast<std::uint64_t*>(sys::map_private(kPage));
  if (t.stack == nullptr) t.stack = g_no_stack;
  if (t.tally == nullptr) t.tally = take_tally();
  t.generation = g_guard.load()->generation.load();
  t.thread = static_cast<std::uint32_t>(sys::thread_id());
  if (g_have_key.load()) pthread_setspecific(g_exit_key, &t);
  announce_thread(t);
  return &t;
}

bool next_chunk(ThreadState& t, Lane& lane, std::size_t size) noexcept {
  SlowPath slow;
  Spool* spool = g_spool.load(std::memory_order_acquire);
  if (spool == nullptr) return false;
  const bool first = !lane.used;
  const bool borrowed = is_borrower(*spool, t);
  if (lane.chunk != nullptr) {
    const bool large = lane.chunk->size >= kLargeChunk;
    lane.chunk->state.store(ChunkState::kFull, std::memory_order_release);
    lane.chunk = nullptr;
    lane.cursor = lane.end = nullptr;
    if (large && !borrowed) g_hooks.filled();
  }
  if (size > record::kMaxRecord) {
    spool->add_lost(1);
    return false;
  }
  ChunkHead* chunk = find_chunk(*spool, t, first, size, borrowed);
  if (chunk == nullptr) {
    if (is_attached(t)) spool->add_lost(1);
    return false;
  }
  // stop_generation() ends the generation and then looks for owned chunks; enter() reads the
  // generation after this chunk became owned. With a fence on each side, one of them sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lane.chunk = chunk;
  lane.cursor = payload(*chunk);
  lane.end = lane.cursor + room(*chunk);
  lane.used = true;
  return true;
}

Lane* handler_lane(ThreadState& t) noexcept {
  if (t.handlers == nullptr) {
    SlowPath slow;
    t.handlers = static_cast<Lane*>(sys::map_private(kPage));
  }
  for (std::uint32_t i = 0; t.handlers != nullptr && i < kHandlerLanes; ++i) {
    if (!t.handlers[i].busy) return &t.handlers[i];
  }
  // Handlers that left by siglongjmp() never committed. Real nesting does not go this deep.
  for (std::uint32_t i = 0; t.handlers != nullptr && i < kHandlerLanes; ++i)
    t.handlers[i].busy = false;
  if (t.handlers != nullptr) return &t.lane;
  if (Spool* spool = g_spool.load()) spool->add_lost(1);
  return nullptr;
}

void next_ids(ThreadState& t) noexcept {
  Spool* spool = g_spool.load(std::memory_order_acquire);
  if (spool == nullptr) {  // stopped meanwhile: the record will not be written either
    t.next_id = 0;
    t.last_id = 1;
    return;
  }
  const std::uint64_t block = spool->head().next_id.fetch_add(kIdBlock);
  // In this order, a signal handler in between finds no ids left and takes a block of its own.
  t.last_id = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t.next_id = block;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t.last_id = block + kIdBlock;
}

}  // namespace dft::buffer
