// Bytes that the kernel counts as read, written and fetched from storage by the threads of this process. The count per
// process includes reaped children; the counts per thread do not, but disappear with the thread.
// So each thread hands in its counts when it ends.
// Called by the session, and by every ending thread once the process may have children.
#pragma once
#include <cstdint>

namespace dft {

struct IoBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t storage = 0;  // fetched from storage, by calls and by page faults
};

// Of all threads, living or ended, and of reaped children. False without /proc.
[[nodiscard]] bool process_io(IoBytes& out) noexcept;

// Starts collecting: ending threads hand in their counts, and thread_io() works. `ended_before`:
// include the bytes of threads that ended earlier, which can be computed only without children.
[[nodiscard]] bool keep_thread_io(bool ended_before) noexcept;
// In a forked child: the collected counts are those of the parent's threads.
void forget_thread_io() noexcept;
// Called by an ending thread. Uses neither thread-locals nor libc's locale: safe on a raw thread.
void leave_thread_io() noexcept;
// Of the living threads and of those that handed in their counts. False without /proc.
[[nodiscard]] bool thread_io(IoBytes& out) noexcept;

}  // namespace dft
