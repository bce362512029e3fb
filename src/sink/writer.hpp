// The thread that turns full chunks into compressed blocks, so that the program's threads need not.
// Started by a thread that fills a large chunk; leaves when idle; has a table of descriptors of its
// own.
#pragma once
#include <atomic>
#include <cstdint>

#include "sink/sink.hpp"

namespace dft::sink {

class Writer {
 public:
  // `bare`: whoever changes the process's rights will hold() the writer, so its thread may be one
  // that libc does not know of.
  Writer(Sink& sink, buffer::Spool& spool, bool bare) noexcept
      : sink_(sink), spool_(spool), bare_(bare) {}
  // A chunk is full. Starts the thread the first time; wakes it when many are. The caller is on a
  // slow path.
  void notify() noexcept;
  // For a thread that found no free chunk: has the thread grow the spool or write a block, and
  // waits for it. False when there is no such thread, or it gained nothing.
  bool make_room(std::size_t size, bool small, std::uint32_t seen_segments) noexcept;
  // The thread leaves after what it is doing. Does not wait.
  void stop() noexcept;
  // The thread leaves after what it is doing, and is gone when this returns, unless that takes
  // long. The next notify() starts another. For a program that is about to fork: Python warns
  // where a process with more than one thread does.
  void pause() noexcept;
  // Like pause(), and there is no thread until let_go(). For a program that is about to change what
  // all of its threads must have in common.
  void hold() noexcept;
  void let_go() noexcept;
  [[nodiscard]] bool runs() const noexcept { return state_.load() == State::kRuns; }

 private:
  static void main(void* self) noexcept;
  void run() noexcept;
  void work_off() noexcept;
  bool start_if_needed() noexcept;
  void ring() noexcept;
  bool leave() noexcept;
  [[nodiscard]] bool is_sent_away() const noexcept { return pauses_.load() != pauses_before_; }

  enum class State : std::uint32_t { kNone, kRuns, kCannot };
  State start() noexcept;

  void grow_if_asked() noexcept;

  Sink& sink_;
  buffer::Spool& spool_;
  Lock ask_lock_;  // of the three below
  std::size_t asked_size_ = 0;
  bool asked_small_ = false;
  std::uint32_t asked_seen_ = 0;
  std::atomic<std::uint32_t> rounds_{0};
  std::atomic<std::uint32_t> work_{0};  // chunks that were filled, and whatever else there is to do
  std::atomic<std::uint32_t> taken_{0};  // of those, what the thread has seen
  std::atomic<std::uint32_t> bell_{0};   // rung when it must not sleep on
  std::atomic<State> state_{State::kNone};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> pauses_{0};
  std::uint32_t pauses_before_ = 0;  // the thread was started
  std::atomic<std::uint32_t> holds_{0};
  std::atomic<int> thread_{0};  // the kernel's number, of the last that started
  bool bare_;
};

}  // namespace dft::sink
