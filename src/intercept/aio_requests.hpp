// Requests of aio_* and of io_submit between their submission and their completion, by the address
// of their control blocks. On the program's threads.
#pragma once
#include "intercept/request_record.hpp"

namespace dft::intercept {

// This thread is inside libaio, which may make the same call through syscall().
extern thread_local constinit bool t_in_aio __attribute__((tls_model("initial-exec")));

struct AioRequest {
  const void* block;
  std::uint8_t op;
  int fd;
  std::uint64_t offset;
  std::uint64_t count;
};
// Before the request is submitted, because another thread may collect it before the call returns.
void aio_submits(buffer::ThreadState& t, const AioRequest& request, std::uint64_t start,
                 std::uint64_t site) noexcept;
// The submission failed.
void aio_refused(buffer::ThreadState& t, const void* block) noexcept;
// The request is complete, and its result has yet to be taken.
void aio_is_done(buffer::ThreadState& t, const void* block, std::uint64_t now,
                 std::int64_t result) noexcept;
// Records the request. Its file, or null if its submission was not seen.
File* aio_collected(buffer::ThreadState& t, const void* block, std::uint64_t now,
                    std::int64_t result) noexcept;
// Before a trace is closed: what is in flight is recorded as unfinished.
void aio_before_close() noexcept;

}  // namespace dft::intercept
