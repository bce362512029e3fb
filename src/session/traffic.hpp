// What the kernel counts for this process. Called when a spool is made and when it is closed.
#pragma once
#include <cstdint>

namespace dft::session {

// Whether a child has been waited for.
bool has_reaped_children() noexcept;
// Bytes that the process has read and written so far. The kernel adds those of children that were
// waited for; then the living threads are asked one by one. False when it does not tell.
bool read_traffic(std::uint64_t& read, std::uint64_t& written) noexcept;

}  // namespace dft::session
