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
  explicit Writer(Sink& sink) noexcept : sink_(sink) {}
  // A chunk is full. Starts the thread the first time; wakes it. The caller is on a slow path.
  void notify() noexcept;
  // The thread leaves after what it is doing. Does not wait.
  void stop() noexcept;

 private:
  static void* main(void* self) noexcept;
  void run() noexcept;
  bool start() noexcept;

  enum class State : std::uint32_t { kNone, kRuns, kCannot };

  Sink& sink_;
  std::atomic<std::uint32_t> work_{0};
  std::atomic<State> state_{State::kNone};
  std::atomic<bool> stopping_{false};
};

}  // namespace dft::sink
