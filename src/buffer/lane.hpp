// Where a thread's records go: reserve, fill, commit. This is the hot path: no lock, no heap, no
// system call. Runs on the program's threads, also in signal handlers; slow paths are in lane.cpp.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/hot.hpp"
#include "buffer/spool.hpp"
#include "buffer/tally.hpp"

namespace dft::buffer {

// A page that the kernel wipes in a forked child (MADV_WIPEONFORK), so that the child's first
// event notices the fork even if no atfork handler ran. Generation 0: off, or just forked.
struct Guard {
  std::atomic<std::uint64_t> generation;
};
DFT_HOT extern std::atomic<Guard*> g_guard;

// The chunk that a thread is filling.
struct Lane {
  std::byte* cursor;
  std::byte* end;
  ChunkHead* chunk;
  bool busy;  // between reserve and commit
  bool used;  // has had a chunk before
};

// Never equals g_handed: forces the slow path.
inline constexpr std::uint64_t kOutOfStep = ~std::uint64_t{0};

// Spans nested deeper than this are assumed to end in order.
inline constexpr std::uint32_t kStackDepth = 512;

// Aligned, so that it occupies two cache lines and not three. Not on aarch64, where dlopen() fails
// for a library whose thread-locals are aligned more than libc's own: 16 bytes in its older releases.
#if defined(__aarch64__)
inline constexpr std::size_t kThreadAlign = 16;
#else
inline constexpr std::size_t kThreadAlign = 64;
#endif
struct alignas(kThreadAlign) ThreadState {
  std::uint64_t generation;
  Lane lane;
  std::uint64_t next_id;
  std::uint64_t last_id;  // the thread owns the ids below this one
  std::uint64_t parent;   // innermost open span
  // Low half: g_epoch; high half: unique per thread. Never 0 once attached.
  std::uint64_t live;
  std::uint32_t level;  // open spans
  std::uint32_t thread;
  std::uint64_t* stack;       // ids of the open spans by level, up to kStackDepth
  std::uint64_t handed_seen;  // last value of g_handed that was handled, or kOutOfStep
  // Lanes for signal handlers that interrupt a reserve, mapped on first use.
  Lane* handlers;
  Tally* tally;  // counts of intercepted calls
};
extern thread_local constinit ThreadState t_thread __attribute__((tls_model("initial-exec")));

// Callbacks into the rooms that this one must not include; the session sets them.
struct Hooks {
  // On a thread's first event: whether there is a spool. Creates one in a forked child.
  bool (*begin)();
  // No free chunk: drain some. False if nothing was gained.
  bool (*make_room)();
  // Makes the writer thread provide room, and waits. False if there is no writer, or it failed.
  bool (*ask_writer)(std::size_t size, bool small, std::uint32_t seen_segments);
  void (*filled)();  // a chunk is ready to be drained
};
extern Hooks g_hooks;
extern std::atomic<Spool*> g_spool;
DFT_HOT extern std::atomic<bool> g_on;
// Incremented when records are lost: data that is recorded once per trace may be among them.
DFT_HOT extern std::atomic<std::uint64_t> g_losses;
extern std::atomic<bool> g_forked;  // this process has forked

ThreadState* attach_thread() noexcept;
bool next_chunk(ThreadState& thread, Lane& lane, std::size_t size) noexcept;
Lane* handler_lane(ThreadState& thread) noexcept;
void next_ids(ThreadState& thread) noexcept;
// A new spool: every thread attaches again.
void new_generation() noexcept;
// No spool any more. Returns when no other thread is in the middle of a record.
void stop_generation() noexcept;
bool generation_is_live() noexcept;
// Spans that are open now will not be recorded: their trace is closed, or belongs to the parent.
void new_epoch() noexcept;

// The calling thread's state; nullptr while nothing is recorded.
[[gnu::always_inline]] inline ThreadState* this_thread() noexcept {
  ThreadState& t = t_thread;
  const Guard* guard = g_guard.load(std::memory_order_relaxed);
  if (t.generation == guard->generation.load(std::memory_order_relaxed)) [[likely]]
    return &t;
  if (!g_on.load(std::memory_order_relaxed)) return nullptr;
  return attach_thread();
}

// A single instruction, so that a signal handler that records cannot get the same id.
[[gnu::always_inline]] inline std::uint64_t take_id(ThreadState& t) noexcept {
#if defined(__x86_64__)
  std::uint64_t id = 1;
  asm volatile("xaddq %0, %1" : "+r"(id), "+m"(t.next_id) : : "cc");
  return id;
#else
  return __atomic_fetch_add(&t.next_id, 1, __ATOMIC_RELAXED);
#endif
}

inline std::uint64_t new_id(ThreadState& t) noexcept {
  for (;;) {
    const std::uint64_t id = take_id(t);
    if (id < t.last_id) [[likely]]
      return id;
    next_ids(t);
  }
}

// Changes whenever something announced earlier may be missing from the trace.
inline std::uint64_t announcing(const ThreadState& t) noexcept {
  return t.generation + (g_losses.load(std::memory_order_relaxed) << 32);
}

inline bool is_attached(const ThreadState& t) noexcept {
  return t.generation ==
         g_guard.load(std::memory_order_relaxed)->generation.load(std::memory_order_relaxed);
}

// Marks the lane's chunk as being written, unless the spool is being closed. The closer ends the
// generation first and checks the marks afterwards, after a pause that is longer than any store
// takes to become visible; so one of the two sees the other, and this side needs no fence.
[[gnu::always_inline]] inline bool enter(const ThreadState& t, Lane& lane) noexcept {
  lane.chunk->busy.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const Guard* guard = g_guard.load(std::memory_order_relaxed);
  if (t.generation == guard->generation.load(std::memory_order_relaxed)) [[likely]]
    return true;
  lane.chunk->busy.store(0, std::memory_order_relaxed);
  return false;
}

struct Slot {
  std::byte* at;
  Lane* lane;
  bool stale;  // the spool was closed meanwhile: get the thread's state again
};

// Room for one record; nullptr if there is none: the event is lost, and counted unless stale.
inline Slot reserve(ThreadState& t, std::size_t size) noexcept {
  Lane* lane = &t.lane;
  if (lane->busy) [[unlikely]] {
    lane = handler_lane(t);
    if (lane == nullptr) return {nullptr, nullptr, false};
  }
  lane->busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (static_cast<std::size_t>(lane->end - lane->cursor) < size && !next_chunk(t, *lane, size))
      [[unlikely]] {
    lane->busy = false;
    return {nullptr, nullptr, !is_attached(t)};
  }
  if (!enter(t, *lane)) [[unlikely]] {
    lane->busy = false;
    return {nullptr, nullptr, true};
  }
  return {lane->cursor, lane, false};
}

// The thread that drained the chunk last has its cache lines on another core. Prefetching for
// write a few events ahead brings them back in time: a store that misses would otherwise delay
// the kernel in the next system call. Never faults.
[[gnu::always_inline]] inline void expect_writes(const std::byte* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

[[gnu::always_inline]] inline void commit(Lane& lane, std::size_t size) noexcept {
  lane.cursor += size;
  const auto filled = static_cast<std::uint64_t>(lane.cursor - payload(*lane.chunk));
  lane.chunk->committed.store(filled, std::memory_order_release);
  lane.chunk->busy.store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  lane.busy = false;
  expect_writes(lane.cursor + 256);
  expect_writes(lane.cursor + 320);
}

}  // namespace dft::buffer
