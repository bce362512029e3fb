#include "intercept/ring.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/signals.hpp"
#include "intercept/request_record.hpp"

namespace dft::intercept {
namespace {

enum SqeFlag : std::uint8_t { kFixedFile = 1, kSkipSuccess = 1 << 6 };
enum CqeFlag : unsigned {
  kMore = 1 << 1,
  kNotification = 1 << 3,
  kFiller = 1 << 5,
  kWide = 1 << 15
};
constexpr unsigned kSpliceFixedIn = 1u << 31;
constexpr unsigned kDataSync = 1;
// What liburing itself submits to wait with a timeout, on kernels that cannot.
constexpr std::uint64_t kLibraryTimeout = ~std::uint64_t{0};
constexpr std::uint32_t kAnySlot = ~std::uint32_t{0};
constexpr unsigned kMostFiles = 1 << 15;
constexpr std::size_t kMostInFlight = 1 << 16;
constexpr std::size_t kLongestPath = 4096;

unsigned load(const unsigned* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

// Copies text that the kernel is about to read, and fails where it would.
bool copy_path(std::uint64_t from, char (&to)[kLongestPath]) noexcept {
  constexpr std::size_t kPage = 4096;
  std::size_t got = 0;
  while (got < kLongestPath) {
    const std::size_t part = std::min(kPage - (from + got) % kPage, kLongestPath - got);
    const iovec local{to + got, part};
    const iovec remote{reinterpret_cast<void*>(from + got), part};
    const long n = sys::call(SYS_process_vm_readv, sys::process_id(), &local, 1, &remote, 1, 0);
    if (n != static_cast<long>(part)) return false;
    if (std::memchr(to + got, '\0', part) != nullptr) return true;
    got += part;
  }
  return false;
}

[[gnu::noinline]] File* file_at_submitted(int directory, std::uint64_t path) noexcept {
  char text[kLongestPath];
  if (!copy_path(path, text)) return nullptr;
  return may_be_traced(text) ? file_at(directory, text) : &g_elsewhere;
}

// Which requests are about a descriptor: all but these and those about a path.
constexpr bool has_descriptor(std::uint8_t op) {
  switch (op) {
    case 0:
    case kOpPollRemove:
    case kOpTimeout:
    case kOpTimeoutRemove:
    case kOpCancel:
    case kOpLinkTimeout:
    case kOpFilesUpdate:
    case kOpMadvise:
    case kOpProvideBuffers:
    case kOpRemoveBuffers:
    case kOpSocket:
    case kOpPipe:
    case kOpNop128:
    case kOpOther:
      return false;
    default:
      return op < kOpWaitid || op > kOpFutexWaitv;
  }
}
// Where the request has a path: its address, and the directory that it begins at.
constexpr bool has_path(std::uint8_t op) {
  return op == kOpOpenat || op == kOpOpenat2 || op == kOpStatx ||
         (op >= kOpRenameat && op <= kOpMkdirat) || op == kOpLinkat;
}
constexpr bool has_offset(std::uint8_t op) {
  switch (op) {
    case kOpReadv:
    case kOpWritev:
    case kOpReadFixed:
    case kOpWriteFixed:
    case kOpRead:
    case kOpWrite:
    case kOpReadvFixed:
    case kOpWritevFixed:
    case kOpReadMultishot:
    case kOpSyncRange:
    case kOpFallocate:
    case kOpFadvise:
      return true;
    default:
      return false;
  }
}
constexpr bool opens(std::uint8_t op) { return op == kOpOpenat || op == kOpOpenat2; }

}  // namespace

bool Ring::begin(const RingQueues& queues, unsigned sq_seen, std::uint64_t generation) noexcept {
  if (!pending_.reserve(std::min<std::size_t>(std::size_t{2} * queues.cq_entries, kMostInFlight)))
    return false;
  queues_ = queues;
  generation_ = generation;
  sq_seen_ = sq_seen;
  cq_seen_ = load(queues.cq_tail);
  unseen_ = 0;
  file_count_ = 0;
  return true;
}

bool Ring::lock(const buffer::ThreadState& t) noexcept {
  if (!lock_.lock(t.generation)) return false;
  if (queues_.cq_tail == nullptr) {
    unlock();
    return false;
  }
  if (generation_ != t.generation) [[unlikely]] {
    pending_.clear();
    sq_seen_ = load(queues_.sq_tail);
    cq_seen_ = load(queues_.cq_tail);
    generation_ = t.generation;
  }
  return true;
}

File* Ring::fixed_file(unsigned slot) const noexcept {
  File* file = slot < file_count_ ? files_[slot].load(std::memory_order_relaxed) : nullptr;
  return file != nullptr ? file : &g_nameless;
}

unsigned Ring::see_submissions(buffer::ThreadState& t, unsigned tail, std::uint64_t start,
                               std::uint64_t site) noexcept {
  const unsigned fresh = tail - sq_seen_;
  if (fresh == 0) return 0;
  if (fresh > queues_.sq_entries) [[unlikely]] {
    // More than fit were submitted since: the oldest are overwritten, and complete unmatched.
    if (fresh > 1u << 31) return 0;
    sq_seen_ = tail - queues_.sq_entries;
  }
  const unsigned mask = queues_.sq_entries - 1;
  const unsigned shift = (queues_.setup_flags & kSetupSqe128) != 0 ? 7 : 6;
  const bool mixed = (queues_.setup_flags & kSetupSqeMixed) != 0;
  for (; sq_seen_ != tail; ++sq_seen_) {
    unsigned index = sq_seen_ & mask;
    if (queues_.sq_array != nullptr) index = __atomic_load_n(queues_.sq_array + index, 0);
    if (index > mask) continue;  // the kernel drops it
    Sqe sqe;
    std::memcpy(&sqe, queues_.sqes + (std::size_t{index} << shift), sizeof sqe);
    add(t, sqe, start, site);
    if (mixed && (sqe.opcode == kOpNop128 || sqe.opcode == kOpUringCmd128) && sq_seen_ + 1 != tail)
      ++sq_seen_;
  }
  return fresh;
}

void Ring::add(buffer::ThreadState& t, const Sqe& sqe, std::uint64_t start,
               std::uint64_t site) noexcept {
  Request* request = pending_.add(sqe.user_data);
  if (request == nullptr) [[unlikely]] {
    if (!make_room(t, start) || (request = pending_.add(sqe.user_data)) == nullptr) return;
  }
  const std::uint8_t op = sqe.opcode < kOpOther ? sqe.opcode : std::uint8_t{kOpOther};
  request->start = start;
  request->offset = has_offset(op) ? sqe.off : kNoOffset;
  request->count = sqe.len;
  request->parent = t.parent;
  request->site = site;
  request->result = 0;
  request->done = 0;
  request->second = nullptr;
  request->fd = sqe.fd;
  request->level = record::clamp_level(t.level + std::uint64_t{1});
  request->op = op == kOpFsync && (sqe.op_flags & kDataSync) != 0 ? std::uint8_t{kOpFdatasync} : op;
  request->flags = sqe.flags;
  request->slot = opens(op) || op == kOpAccept || op == kOpClose || op == kOpSocket
                      ? static_cast<std::uint32_t>(sqe.file_index)
                      : 0;
  const auto file_of_sqe = [this](int fd, bool is_fixed) {
    return is_fixed ? fixed_file(static_cast<unsigned>(fd)) : file_of(fd);
  };
  const bool is_fixed = (sqe.flags & kFixedFile) != 0;
  if (op == kOpSplice || op == kOpTee) {
    request->file = file_of_sqe(sqe.file_index, (sqe.op_flags & kSpliceFixedIn) != 0);
    request->second = file_of_sqe(sqe.fd, is_fixed);
    request->offset = op == kOpSplice ? sqe.addr : kNoOffset;
  } else if (has_path(op)) {
    request->file = file_at_submitted(sqe.fd, sqe.addr);
  } else if (op == kOpClose) {
    // Its number may belong to another file as soon as the kernel has closed it.
    request->file = request->slot != 0 ? fixed_file(request->slot - 1) : take_file_of(sqe.fd);
  } else {
    request->file = has_descriptor(op) ? file_of_sqe(sqe.fd, is_fixed) : nullptr;
  }
}

void Ring::record_unfinished(buffer::ThreadState& t, const Request& request,
                             std::uint64_t now) noexcept {
  const bool is_silent = (request.flags & kSkipSuccess) != 0;
  record_request(t, request,
                 {is_silent ? request.start : std::max(now, request.start), 0, queues_.fd,
                  is_silent ? Completion::kSilent : Completion::kUnfinished});
}

// A request that reports only failure stays in the table for good: it gives way.
bool Ring::make_room(buffer::ThreadState& t, std::uint64_t now) noexcept {
  const std::size_t before = pending_.size();
  std::uint64_t keys[64];
  do {
    std::size_t count = 0;
    pending_.for_each([&](const Request& request) {
      if ((request.flags & kSkipSuccess) != 0 && count < std::size(keys))
        keys[count++] = request.key;
    });
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) {
      const Request* silent = pending_.find(keys[i]);
      if (silent == nullptr || (silent->flags & kSkipSuccess) == 0) continue;
      record_unfinished(t, *silent, now);
      pending_.remove(silent);
    }
  } while (pending_.size() == before);
  return pending_.size() != before;
}

void Ring::see_completions(buffer::ThreadState& t, std::uint64_t now) noexcept {
  unsigned tail = load(queues_.cq_tail);
  if (tail == cq_seen_) return;
  const unsigned entries = queues_.cq_entries;
  const unsigned shift = (queues_.setup_flags & kSetupCqe32) != 0 ? 5 : 4;
  if (tail - cq_seen_ > 1u << 31) return;
  while (cq_seen_ != tail) {
    if (tail - cq_seen_ > entries) {
      unseen_ += tail - cq_seen_ - entries;
      cq_seen_ = tail - entries;
    }
    Cqe cqe;
    std::memcpy(&cqe, queues_.cqes + (std::size_t{cq_seen_ & (entries - 1)} << shift), sizeof cqe);
    // Another thread of the program may have taken it, and the kernel put another in its place.
    const unsigned later = load(queues_.cq_tail);
    if (later - cq_seen_ > entries) [[unlikely]] {
      tail = later;
      continue;
    }
    ++cq_seen_;
    if ((queues_.setup_flags & kSetupCqeMixed) != 0) {
      if ((cqe.flags & kFiller) != 0) continue;
      if ((cqe.flags & kWide) != 0 && cq_seen_ != tail) ++cq_seen_;
    }
    complete(t, cqe, now);
  }
}

void Ring::complete(buffer::ThreadState& t, const Cqe& cqe, std::uint64_t now) noexcept {
  Request* request = pending_.find(cqe.user_data);
  if (request == nullptr) {
    if ((cqe.flags & kNotification) == 0 && cqe.user_data != kLibraryTimeout) ++unseen_;
    return;
  }
  const bool goes_on = (cqe.flags & kMore) != 0;
  if ((cqe.flags & kNotification) == 0) {
    const std::uint64_t end = std::max(now, request->start);
    record_request(t, *request, {end, cqe.res, queues_.fd});
    if (cqe.res >= 0 && opens(request->op)) {
      if (request->slot == 0) {
        set_file_of(cqe.res, request->file);
      } else {
        const unsigned slot =
            request->slot == kAnySlot ? static_cast<unsigned>(cqe.res) : request->slot - 1;
        if (slot < file_count_) files_[slot].store(request->file, std::memory_order_relaxed);
      }
    } else if (cqe.res >= 0 && (request->op == kOpAccept || request->op == kOpSocket) &&
               request->slot == 0) {
      set_file_of(cqe.res, nullptr);
    } else if (cqe.res >= 0 && request->op == kOpClose && request->slot != 0 &&
               request->slot - 1 < file_count_) {
      files_[request->slot - 1].store(nullptr, std::memory_order_relaxed);
    }
    request->start = end;  // a request with more completions begins anew with each
  }
  if (!goes_on) pending_.remove(request);
}

std::uint64_t Ring::finish(buffer::ThreadState& t, std::uint64_t now) noexcept {
  see_completions(t, now);
  pending_.for_each([&](const Request& request) { record_unfinished(t, request, now); });
  pending_.clear();
  return std::exchange(unseen_, 0);
}

void Ring::resize_files(unsigned count) noexcept {
  count = std::min(count, kMostFiles);
  if (count > file_room_) {
    const SlowPath slow;
    void* memory = sys::map_private(count * sizeof *files_);
    if (memory == nullptr) return;
    if (files_ != nullptr) sys::unmap(files_, file_room_ * sizeof *files_);
    files_ = static_cast<std::atomic<File*>*>(memory);
    file_room_ = count;
  }
  for (unsigned i = 0; i < count; ++i) files_[i].store(nullptr, std::memory_order_relaxed);
  file_count_ = count;
}

void Ring::set_files(unsigned first, const int* fds, unsigned count) noexcept {
  constexpr int kSkip = -2;
  for (unsigned i = 0; i < count && first + i < file_count_; ++i) {
    if (fds[i] == kSkip) continue;
    files_[first + i].store(fds[i] >= 0 ? file_of(fds[i]) : nullptr, std::memory_order_relaxed);
  }
}

}  // namespace dft::intercept
