// Where a thread's records go: reserve, fill, commit. This is the hot path: no lock, no heap, no system
// call. On the program's threads, also inside signal handlers; the slow paths are in lane.cpp.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "buffer/spool.hpp"

namespace dft::buffer {

// A page that the kernel wipes in a forked child, so that the child's first event notices the fork even
// when nobody ran fork handlers. Generation 0: off, or just forked.
struct Guard {
  std::atomic<std::uint64_t> generation;
};
extern std::atomic<Guard*> g_guard;

// The chunk that a thread is filling.
struct Lane {
  std::byte* cursor;
  std::byte* end;
  ChunkHead* chunk;
  bool busy;  // between reserve and commit
  bool used;  // has had a chunk before
};

struct ThreadState {
  std::uint64_t generation;
  Lane lane;
  std::uint64_t next_id;
  std::uint64_t last_id;
  std::uint64_t parent;  // innermost open span
  std::uint64_t live;    // low half: generation; high half: differs between threads. Never 0
  std::uint32_t level;   // open spans
  std::uint32_t thread;
  std::uint32_t cut_level;  // spans from this level on that are older than cut_id were taken off the
  std::uint64_t cut_id;     // stack by the end of one that enclosed them
  std::uint64_t handed_seen;  // g_handed at the last look
  Lane* handlers;  // lanes for signal handlers that interrupt a reserve, made when first needed
};
extern thread_local constinit ThreadState t_thread __attribute__((tls_model("initial-exec")));

// What the rooms to the right of this one do for it.
struct Hooks {
  bool (*begin)();  // a thread's first event: is there a spool? makes a forked child's own
  bool (*make_room)(bool wait);  // no free chunk: drain some; false when nothing was gained
  void (*filled)();  // a chunk is ready to be drained
};
extern Hooks g_hooks;
extern std::atomic<Spool*> g_spool;
extern std::atomic<bool> g_on;

ThreadState* attach_thread() noexcept;
bool next_chunk(ThreadState& thread, Lane& lane, std::size_t size) noexcept;
Lane* handler_lane(ThreadState& thread) noexcept;
void next_ids(ThreadState& thread) noexcept;
// Fork, stop and start: every thread attaches anew. Returns the generation.
std::uint64_t new_generation() noexcept;
void stop_generation() noexcept;
bool generation_is_live() noexcept;

// The calling thread's state, nullptr while nothing is recorded.
inline ThreadState* this_thread() noexcept {
  ThreadState& t = t_thread;
  const Guard* guard = g_guard.load(std::memory_order_relaxed);
  if (t.generation == guard->generation.load(std::memory_order_relaxed)) [[likely]] return &t;
  if (!g_on.load(std::memory_order_relaxed)) return nullptr;
  return attach_thread();
}

inline std::uint64_t new_id(ThreadState& t) noexcept {
  if (t.next_id == t.last_id) [[unlikely]] next_ids(t);
  return t.next_id++;
}

struct Slot {
  std::byte* at;
  Lane* lane;
};

// Room for one record; `at` is nullptr when the event is lost (and counted).
inline Slot reserve(ThreadState& t, std::size_t size) noexcept {
  Lane* lane = &t.lane;
  if (lane->busy) [[unlikely]] {
    lane = handler_lane(t);
    if (lane == nullptr) return {nullptr, nullptr};
  }
  lane->busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (static_cast<std::size_t>(lane->end - lane->cursor) < size) [[unlikely]] {
    if (!next_chunk(t, *lane, size)) {
      lane->busy = false;
      return {nullptr, nullptr};
    }
  }
  return {lane->cursor, lane};
}

inline void commit(const Slot& slot, std::size_t size) noexcept {
  Lane& lane = *slot.lane;
  lane.cursor += size;
  const auto filled = static_cast<std::uint64_t>(lane.cursor - payload(*lane.chunk));
  lane.chunk->committed.store(filled, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  lane.busy = false;
}

}  // namespace dft::buffer
