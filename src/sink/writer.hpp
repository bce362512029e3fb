// The thread that turns full chunks into compressed blocks, so that the program's threads need not.
// Started by the first thread that fills a large chunk; has a table of descriptors of its own.
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

  Sink& sink_;
  std::atomic<std::uint32_t> work_{0};
  std::atomic<std::uint32_t> started_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace dft::sink
