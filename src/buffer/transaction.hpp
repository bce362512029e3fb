// Moves one block of records from a spool to the trace file exactly once. Three numbers in the
// spool's head show how far block n has come; a recoverer reads them after a death at any instant:
//
//   announce()  intent_number = n    the file is about to grow from intent.from to intent.to
//   commit()    done_number = n      the file holds the block
//   apply()     applied_number = n   the chunks are drained up to where the block ends
//
// Announced but not committed: the file may hold a part of the block. It is cut back to
// intent.from, and the same records are written again. Committed but not applied: apply_to_head()
// catches up from the intent. So no record is lost, and none is written twice. Used under the
// lock of the sink.
#pragma once
#include <cstdint>

#include "buffer/layout.hpp"

namespace dft::buffer {

// What a block adds to the trace file.
struct BlockCounts {
  std::uint64_t bytes;
  std::uint64_t lines;
  std::uint64_t metadata;  // lines that are not events
  std::uint64_t files;     // FH lines of intercepted calls
  std::uint64_t lost;      // events lost so far, all reported once this block is written
  bool ends;               // contains the end record
};

class Transaction {
 public:
  explicit Transaction(SpoolHead& head) noexcept
      : head_(head), number_(head.applied_number.load() + 1) {
    head_.intent.entries = 0;
  }

  // The block holds this chunk's records up to `drained`.
  void add(std::uint64_t chunk_offset, std::uint64_t drained) noexcept {
    head_.intent.entry[head_.intent.entries++] = {chunk_offset, drained};
  }
  void announce(const BlockCounts& block) noexcept;
  // The file could not be written, and is unchanged.
  void withdraw() noexcept { head_.intent_number.store(number_ - 1, std::memory_order_release); }
  // The file holds the block and has this inode.
  void commit(std::uint64_t inode) noexcept {
    head_.trace_inode = inode;
    head_.done_number.store(number_, std::memory_order_release);
  }
  // `drain(i)` marks the chunk of entry i as drained up to where the block ends.
  template <class Drain>
  void apply(Drain drain) noexcept {
    apply_to_head(head_);
    for (std::uint32_t i = 0; i < head_.intent.entries; ++i) drain(i);
    head_.applied_number.store(number_, std::memory_order_release);
  }

  // True if the owner died between commit() and the end of apply().
  static bool is_unapplied(const SpoolHead& head) noexcept {
    const std::uint64_t announced = head.intent_number.load();
    return announced == head.done_number.load() && announced != head.applied_number.load();
  }
  static void apply_to_head(SpoolHead& head) noexcept;

 private:
  SpoolHead& head_;
  std::uint64_t number_;
};

}  // namespace dft::buffer
