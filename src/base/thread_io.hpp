// Bytes that the kernel has counted as read and written by the threads of this process.
// The count of the whole process includes children that were waited for; counts per thread do not,
// but are gone with the thread. So threads leave theirs here when they end.
// Called by the session, and by every thread that ends once children may come.
#pragma once
#include <cstdint>

namespace dft::record {

struct IoBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

// Of all threads, living or not, and of children that were waited for. False without /proc.
[[nodiscard]] bool process_io(IoBytes& out) noexcept;

// From here on `thread_io` counts, and threads that end leave their counts. `ended_before`: count
// what threads that have ended already moved, which only a process without children can tell.
[[nodiscard]] bool keep_thread_io(bool ended_before) noexcept;
// In a forked child: its threads, and their counts, are its parent's.
void forget_thread_io() noexcept;
// The calling thread ends. Uses neither thread-locals nor libc's locale: a raw thread may call it.
void leave_thread_io() noexcept;
// Of the living threads and of those that left their counts. False without /proc.
[[nodiscard]] bool thread_io(IoBytes& out) noexcept;

}  // namespace dft::record
