// Writes the record of one asynchronous request, from its submission until its completion was
// seen, and of the calls that submit requests or wait for them. On the program's threads, on the
// one that saw the completion; requests are shown on lanes beside it, because they overlap.
#pragma once
#include "intercept/pending.hpp"
#include "intercept/probe.hpp"

namespace dft::intercept {

// What the number of a request means.
enum class CountKey : std::uint8_t { kNone, kCount, kIovcnt, kNr };
struct RequestName {
  const char* name;
  CountKey count;
};

// Requests of io_uring come first, by their opcodes.
inline constexpr RequestName kRequestNames[] = {
    {"nop", CountKey::kNone},
    {"readv", CountKey::kIovcnt},
    {"writev", CountKey::kIovcnt},
    {"fsync", CountKey::kNone},
    {"read_fixed", CountKey::kCount},
    {"write_fixed", CountKey::kCount},
    {"poll_add", CountKey::kNone},
    {"poll_remove", CountKey::kNone},
    {"sync_file_range", CountKey::kCount},
    {"sendmsg", CountKey::kNone},
    {"recvmsg", CountKey::kNone},
    {"timeout", CountKey::kNone},
    {"timeout_remove", CountKey::kNone},
    {"accept", CountKey::kNone},
    {"async_cancel", CountKey::kNone},
    {"link_timeout", CountKey::kNone},
    {"connect", CountKey::kNone},
    {"fallocate", CountKey::kNone},
    {"openat", CountKey::kNone},
    {"close", CountKey::kNone},
    {"files_update", CountKey::kNr},
    {"statx", CountKey::kNone},
    {"read", CountKey::kCount},
    {"write", CountKey::kCount},
    {"posix_fadvise", CountKey::kNone},
    {"madvise", CountKey::kNone},
    {"send", CountKey::kCount},
    {"recv", CountKey::kCount},
    {"openat2", CountKey::kNone},
    {"epoll_ctl", CountKey::kNone},
    {"splice", CountKey::kCount},
    {"provide_buffers", CountKey::kNone},
    {"remove_buffers", CountKey::kNone},
    {"tee", CountKey::kCount},
    {"shutdown", CountKey::kNone},
    {"renameat", CountKey::kNone},
    {"unlinkat", CountKey::kNone},
    {"mkdirat", CountKey::kNone},
    {"symlinkat", CountKey::kNone},
    {"linkat", CountKey::kNone},
    {"msg_ring", CountKey::kNone},
    {"fsetxattr", CountKey::kNone},
    {"setxattr", CountKey::kNone},
    {"fgetxattr", CountKey::kNone},
    {"getxattr", CountKey::kNone},
    {"socket", CountKey::kNone},
    {"uring_cmd", CountKey::kNone},
    {"send_zc", CountKey::kCount},
    {"sendmsg_zc", CountKey::kNone},
    {"read_multishot", CountKey::kNone},
    {"waitid", CountKey::kNone},
    {"futex_wait", CountKey::kNone},
    {"futex_wake", CountKey::kNone},
    {"futex_waitv", CountKey::kNone},
    {"fixed_fd_install", CountKey::kNone},
    {"ftruncate", CountKey::kNone},
    {"bind", CountKey::kNone},
    {"listen", CountKey::kNone},
    {"recv_zc", CountKey::kCount},
    {"epoll_wait", CountKey::kNone},
    {"readv_fixed", CountKey::kIovcnt},
    {"writev_fixed", CountKey::kIovcnt},
    {"pipe", CountKey::kNone},
    {"nop128", CountKey::kNone},
    {"uring_cmd128", CountKey::kNone},
    {"request", CountKey::kNone},  // an opcode of a later kernel
    {"fdatasync", CountKey::kNone},
    {"nop", CountKey::kNone},  // from here on: requests of aio_* and io_submit
    {"read", CountKey::kCount},
    {"write", CountKey::kCount},
    {"readv", CountKey::kIovcnt},
    {"writev", CountKey::kIovcnt},
    {"fsync", CountKey::kNone},
    {"fdatasync", CountKey::kNone},
    {"poll", CountKey::kNone},
};
enum RequestOp : std::uint8_t {
  kOpReadv = 1,
  kOpWritev = 2,
  kOpFsync = 3,
  kOpReadFixed = 4,
  kOpWriteFixed = 5,
  kOpPollRemove = 7,
  kOpSyncRange = 8,
  kOpTimeout = 11,
  kOpTimeoutRemove = 12,
  kOpAccept = 13,
  kOpCancel = 14,
  kOpLinkTimeout = 15,
  kOpFallocate = 17,
  kOpOpenat = 18,
  kOpClose = 19,
  kOpFilesUpdate = 20,
  kOpStatx = 21,
  kOpRead = 22,
  kOpWrite = 23,
  kOpFadvise = 24,
  kOpMadvise = 25,
  kOpOpenat2 = 28,
  kOpEpollCtl = 29,
  kOpSplice = 30,
  kOpProvideBuffers = 31,
  kOpRemoveBuffers = 32,
  kOpTee = 33,
  kOpRenameat = 35,
  kOpUnlinkat = 36,
  kOpMkdirat = 37,
  kOpSymlinkat = 38,
  kOpLinkat = 39,
  kOpSetxattr = 42,
  kOpGetxattr = 44,
  kOpSocket = 45,
  kOpReadMultishot = 49,
  kOpWaitid = 50,
  kOpFutexWaitv = 53,
  kOpReadvFixed = 60,
  kOpWritevFixed = 61,
  kOpPipe = 62,
  kOpNop128 = 63,
  kOpUringCmd128 = 64,
  kOpOther = 65,
  kOpFdatasync = 66,
  kOpAioNop = 67,
  kOpAioRead,
  kOpAioWrite,
  kOpAioReadv,
  kOpAioWritev,
  kOpAioFsync,
  kOpAioFdatasync,
  kOpAioPoll,
  kOps
};
static_assert(std::size(kRequestNames) == kOps);

struct Completion {
  std::uint64_t end;
  std::int64_t result;  // negative: -errno
  int ring = -1;        // the descriptor of its ring
  // kUnfinished: it was in flight when its ring or the recording ended. kSilent: it reports failure
  // only, and there was none.
  enum State : std::uint8_t { kKnown, kUnfinished, kSilent } state = kKnown;
};
// Records a request, or counts it if its file is not traced.
void record_request(buffer::ThreadState& t, const Request& request,
                    const Completion& completion) noexcept;

// A call that submits requests or waits for them. Its id is kept by the caller, 0 at first.
struct RingCall {
  const char* name;
  std::atomic<std::uint32_t> shape[2];  // without and with an error
};
struct RingCallArgs {
  std::uint64_t nr;      // requests that it submits
  std::uint64_t min_nr;  // completions that it waits for
  std::int64_t ret;      // negative: -errno
  int ring;
  std::uint64_t in_flight;  // requests in flight after it
  std::uint64_t site;
};
void record_ring_call(buffer::ThreadState& t, RingCall& call, std::uint64_t start,
                      std::uint64_t end, const RingCallArgs& args) noexcept;

}  // namespace dft::intercept
