// The sink of one spool: takes committed records out of it and into the trace file, exactly once.
// Everything but the lock-free counters happens under its lock, on the writer thread or on a thread
// that needs room or ends the session.
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
  // `directory` is where the trace file is; it is copied. `block` is the text gathered for one
  // member.
  static Sink* create(buffer::Spool& spool, const char* directory, std::size_t block) noexcept;

  enum class Scope { kFull, kEverything };
  // Drains chunks in the order in which they were taken. True when all in scope is in the file.
  bool drain(Scope scope) noexcept;
  // One block of it. `more`: there is another.
  bool write_batch(Scope scope, bool* more) noexcept;
  // For a thread that found no free chunk: writes one block, or, where nothing can be written,
  // gives up the oldest chunk and counts its events. False when no chunk came free.
  bool make_room() noexcept;
  // Writes the end record after draining everything; closes. True when nothing is left in the
  // spool. `recovered`: by somebody else, after the owner's death.
  bool finish(bool details, bool recovered, const Encoder::Traffic* traffic = nullptr) noexcept;
  // Drops all memory without writing: the spool now belongs to nobody, or to a recoverer.
  void abandon() noexcept;

  // Gives the object's memory back; nobody else may know it.
  void discard() noexcept;
  // A sign of life for those who cannot see the process.
  void heartbeat() noexcept;

  [[nodiscard]] bool has_full_chunks() noexcept;
  // Nothing has been written, and there is nothing to write.
  [[nodiscard]] bool is_unused() noexcept;
  // For those who wait for room: the blocks written, and a word that changes with each, and with
  // notice().
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_.load(); }
  [[nodiscard]] std::uint32_t progress() const noexcept { return progress_.load(); }
  void wait(std::uint32_t seen, long timeout_ns) noexcept;
  void notice() noexcept;
  [[nodiscard]] bool told() const noexcept { return told_; }
  Lock& lock() noexcept { return lock_; }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(); }

 private:
  Sink(buffer::Spool& spool, const char* directory, std::size_t block) noexcept;
  struct Batch;
  bool collect(Scope scope, Batch& batch) noexcept;
  bool write_block(Batch& batch) noexcept;
  void read_names() noexcept;
  void give_up_oldest() noexcept;
  void tell(const char* what) noexcept;
  bool wait_for_writer(std::uint64_t before) noexcept;

  buffer::Spool& spool_;
  Encoder encoder_;
  Gzip gzip_;
  Text text_;
  Text member_;
  std::size_t block_;
  Lock lock_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint32_t> progress_{0};
  std::atomic<std::uint32_t> waiting_{0};
  int last_error_ = 0;
  bool recovering_ = false;
  bool finishing_ = false;
  bool details_ = true;
  const Encoder::Traffic* traffic_ = nullptr;  // while finishing
  bool told_ = false;
  std::uint64_t retry_at_ = 0;
  char directory_[4096];
};

}  // namespace dft::sink
