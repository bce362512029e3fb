#include "buffer/transaction.hpp"

namespace dft::buffer {

void Transaction::announce(const BlockCounts& block) noexcept {
  Intent& intent = head_.intent;
  intent.from = head_.trace_size;
  intent.to = head_.trace_size + block.bytes;
  intent.lines = head_.trace_lines + block.lines;
  intent.metadata = head_.trace_metadata + block.metadata;
  intent.files = head_.trace_files + block.files;
  intent.lost = block.lost;
  intent.ends = block.ends ? 1 : 0;
  head_.intent_number.store(number_, std::memory_order_release);
}

void Transaction::apply_to_head(SpoolHead& head) noexcept {
  head.trace_size = head.intent.to;
  head.trace_lines = head.intent.lines;
  head.trace_metadata = head.intent.metadata;
  head.trace_files = head.intent.files;
  head.lost_written = head.intent.lost;
  if (head.intent.ends != 0) head.flags |= kEnded;
}

}  // namespace dft::buffer
