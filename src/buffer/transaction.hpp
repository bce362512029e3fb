// Moves one block of records from a spool to the trace file exactly once. Three numbers in the spool's
// head say how far block n has come; a recoverer reads them after a death at any instant:
//
//   announce()  intent_number = n    the file is about to grow from intent.from to intent.to
//   commit()    done_number = n      the file holds the block
//   apply()     applied_number = n   the chunks are drained up to where the block ends
//
// Announced and not committed: the file may hold a part of the block. It is cut back to intent.from, and
// the same records are written again. Committed and not applied: apply_to_head() catches up from the
// intent. So no record is lost and none is written twice. Used under the sink's lock.
#pragma once
#include <cstdint>

#include "buffer/layout.hpp"

namespace dft::buffer {

// What a block adds to the trace file.
struct BlockCounts {
  std::uint64_t bytes;
  std::uint64_t lines;
  std::uint64_t metadata;  // of the lines, those that are no events
  std::uint64_t files;     // of those, FH lines of calls
  std::uint64_t lost;      // events lost so far, all of which the file tells of after this block
  bool ends;               // the end record is in it
};

class Transaction {
 public:
  explicit Transaction(SpoolHead& head) noexcept
      : head_(head), number_(head.applied_number.load() + 1) {
    head_.intent.entries = 0;
  }

  // The block holds the records of this chunk up to `drained`.
  void add(std::uint64_t chunk_offset, std::uint64_t drained) noexcept {
    head_.intent.entry[head_.intent.entries++] = {chunk_offset, drained};
  }
  void announce(const BlockCounts& block) noexcept;
  // The file could not be written, and is as it was.
  void withdraw() noexcept { head_.intent_number.store(number_ - 1, std::memory_order_release); }
  // The file holds the block, under this inode.
  void commit(std::uint64_t inode) noexcept {
    head_.trace_inode = inode;
    head_.done_number.store(number_, std::memory_order_release);
  }
  // `drain(i)` notes in the chunk of entry i that its records are in the file.
  template <class Drain>
  void apply(Drain drain) noexcept {
    apply_to_head(head_);
    for (std::uint32_t i = 0; i < head_.intent.entries; ++i) drain(i);
    head_.applied_number.store(number_, std::memory_order_release);
  }

  // What a death may have left half done.
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
