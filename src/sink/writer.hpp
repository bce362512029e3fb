// The thread that turns full chunks into compressed blocks, so that the program's threads need not.
// Started by a thread that fills a large chunk; exits when idle; has its own descriptor table.
#pragma once
#include <atomic>
#include <cstdint>

#include "sink/sink.hpp"

namespace dft::sink {

// What the writer's thread looks at besides, for a room that this one must not include: something
// that needs descriptors which the program neither sees nor can close. While it watches, an idle
// thread stays. All three run on that thread, under the restrictions of raw_thread.hpp.
struct Watch {
  bool (*begin)() noexcept;  // false: there is nothing that can be watched
  bool (*look)() noexcept;   // every few milliseconds; true: it has filled a chunk
  void (*end)() noexcept;
};

class Writer {
 public:
  // `raw`: code that changes the process's credentials will hold() the writer, so its thread may
  // be one that libc does not know about (raw_thread.hpp).
  Writer(Sink& sink, buffer::Spool& spool, bool raw) noexcept
      : sink_(sink), spool_(spool), raw_(raw) {}
  // A chunk is full. Starts the thread if there is none, and wakes it if many chunks are full. The
  // caller is on a slow path.
  void notify() noexcept;
  // For a thread that found no free chunk: makes the writer thread grow the spool or write a
  // block, and waits. False if there is no writer thread, or nothing was gained.
  bool make_room(std::size_t size, bool small, std::uint32_t seen_segments) noexcept;
  // The thread exits after the current block. Does not wait.
  void stop() noexcept;
  // The thread exits after the current block, and is gone when this returns, unless that takes
  // too long. The next notify() starts another one. For a program about to fork: Python warns
  // when a process with several threads does.
  void pause() noexcept;
  // Like pause(), but no thread starts until let_go(). For a program about to change attributes
  // that all of its threads must share.
  void hold() noexcept;
  void let_go() noexcept;
  // Starts the thread, unless it is held, and has it watch from now on.
  void watch(const Watch& watch) noexcept;
  // Starts the thread again, after a pause, if it is to watch something.
  void resume_watch() noexcept;
  [[nodiscard]] bool runs() const noexcept { return state_.load() == WriterState::kRuns; }

 private:
  static void main(void* self) noexcept;
  void begin_watch() noexcept;
  void end_watch() noexcept;
  void run() noexcept;
  void work_off() noexcept;
  bool start_if_needed() noexcept;
  void ring() noexcept;
  bool leave() noexcept;
  [[nodiscard]] bool is_sent_away() const noexcept { return pauses_.load() != pauses_before_; }

  enum class WriterState : std::uint32_t { kNone, kRuns, kCannot };
  WriterState start() noexcept;

  void grow_if_asked() noexcept;

  Sink& sink_;
  buffer::Spool& spool_;
  Lock ask_lock_;  // guards the three below
  std::size_t asked_size_ = 0;
  bool asked_small_ = false;
  std::uint32_t asked_seen_ = 0;
  std::atomic<std::uint32_t> rounds_{0};
  // Number of filled chunks and other requests.
  std::atomic<std::uint32_t> work_{0};
  std::atomic<std::uint32_t> taken_{0};  // how many of those the thread has seen
  std::atomic<std::uint32_t> bell_{0};   // futex word: incremented to end a sleep early
  std::atomic<WriterState> state_{WriterState::kNone};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> pauses_{0};
  std::uint32_t pauses_before_ = 0;  // value of pauses_ when the thread was started
  std::atomic<std::uint32_t> holds_{0};
  std::atomic<int> thread_{0};  // kernel id of the last thread started
  bool raw_;
  std::atomic<const Watch*> watch_{nullptr};
  // On its thread:
  const Watch* watching_ = nullptr;
  bool has_own_table_ = false;
  bool watch_failed_ = false;
};

}  // namespace dft::sink
