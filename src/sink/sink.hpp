// The sink of one spool: moves committed records into the trace file, exactly once.
// Everything except the atomic counters happens under its lock: on the writer thread, on a thread
// that needs room, or on the one that ends the session.
#pragma once
#include <cstdint>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/spool.hpp"
#include "sink/deflate.hpp"
#include "sink/encode.hpp"
#include "sink/mmap_buffer.hpp"

namespace dft::sink {

class Sink {
 public:
  // `directory` is where the trace file is (copied). `block` is how much text goes into one member.
  static Sink* create(buffer::Spool& spool, const char* directory, std::size_t block) noexcept;

  enum class Scope { kFull, kEverything };
  // Drains chunks in the order in which they were taken. False if some could not be written:
  // their records stay in the spool.
  [[nodiscard]] bool drain(Scope scope) noexcept { return drain(scope, nullptr); }
  // Writes one block of full chunks. `more`: there is another. False if it could not be written.
  [[nodiscard]] bool write_one_block(bool* more) noexcept;
  // For a thread that found no free chunk: writes one block or, if nothing can be written, drops
  // the oldest chunk and counts its events as lost. False if no chunk became free.
  [[nodiscard]] bool reclaim_or_drop() noexcept;

  // How a trace ends.
  struct Ending {
    bool details = true;
    bool recovered = false;            // by another process, after the owner's death
    const IoTotals* totals = nullptr;  // null if unknown
  };
  // Drains everything, writes the end record and closes. False if something stays in the spool.
  [[nodiscard]] bool finish(const Ending& ending) noexcept;
  // Frees all memory without writing: leaves the spool to a recoverer.
  void abandon() noexcept;

  // Frees the object itself; no other thread may use it.
  void discard() noexcept;
  // A sign of life, for recoverers that cannot see the process.
  void heartbeat() noexcept;

  [[nodiscard]] bool has_full_chunks() noexcept;
  // Nothing has been written, and there is nothing to write.
  [[nodiscard]] bool is_unused() noexcept;
  // For threads that wait for room: the number of blocks written, and a futex word that changes
  // with every block and with notice().
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_.load(); }
  [[nodiscard]] std::uint32_t progress() const noexcept { return progress_.load(); }
  void wait(std::uint32_t seen, long timeout_ns) noexcept;
  void notice() noexcept;
  // A failure to write has been reported to the user.
  [[nodiscard]] bool has_reported() const noexcept { return reported_; }
  Lock& lock() noexcept { return lock_; }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(); }

 private:
  Sink(buffer::Spool& spool, const char* directory, std::size_t block) noexcept;
  struct Batch;
  struct Block;
  bool collect(Scope scope, Batch& batch) noexcept;
  bool drain(Scope scope, const Ending* ending) noexcept;
  bool write_batch(Scope scope, const Ending* ending, bool* more) noexcept;
  bool encode_block(Batch& batch, const Ending* ending, Block& block) noexcept;
  int write_block(Batch& batch, const Ending* ending) noexcept;
  void read_names() noexcept;
  void drop_oldest() noexcept;
  void report_once(const char* consequence) noexcept;
  bool wait_for_writer(std::uint64_t before) noexcept;

  buffer::Spool& spool_;
  Encoder encoder_;
  Gzip gzip_;
  MmapBuffer text_;
  MmapBuffer member_;
  std::size_t block_;
  Lock lock_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint32_t> progress_{0};
  std::atomic<std::uint32_t> waiting_{0};
  int last_error_ = 0;
  bool reported_ = false;
  std::uint64_t retry_at_ = 0;
  char directory_[4096];
};

}  // namespace dft::sink
