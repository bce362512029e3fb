// The io_urings of the process: those of liburing by the address of their struct, and those that a
// program makes by system calls of its own, by their descriptor. On the program's threads.
#pragma once
#include <string_view>

#include "intercept/request_record.hpp"
#include "intercept/ring.hpp"

namespace dft::intercept {

// struct io_uring_params.
struct RingParams {
  std::uint32_t sq_entries;
  std::uint32_t cq_entries;
  std::uint32_t flags;
  std::uint32_t sq_thread_cpu;
  std::uint32_t sq_thread_idle;
  std::uint32_t features;
  std::uint32_t wq_fd;
  std::uint32_t reserved[3];
  struct {
    std::uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, reserved;
    std::uint64_t user_addr;
  } sq_off;
  struct {
    std::uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, reserved;
    std::uint64_t user_addr;
  } cq_off;
};
static_assert(sizeof(RingParams) == 120);

// struct io_uring of liburing 2.0 and later; 2.2 put ring_mask and ring_entries into its padding.
struct LiburingRing {
  struct {
    unsigned *khead, *ktail, *kring_mask, *kring_entries, *kflags, *kdropped, *array;
    void* sqes;
    unsigned sqe_head, sqe_tail;
    std::size_t ring_size;
    void* ring;
    unsigned padding[4];
  } sq;
  struct {
    unsigned *khead, *ktail, *kring_mask, *kring_entries, *kflags, *koverflow;
    void* cqes;
    std::size_t ring_size;
    void* ring;
    unsigned padding[4];
  } cq;
  unsigned flags;
  int ring_fd;
};
static_assert(sizeof(LiburingRing) == 200);

// Null for a ring that does not look like one, or if there are too many.
Ring* ring_of(const LiburingRing* ring) noexcept;
// After liburing has made one; what was at the address is gone.
void ring_begins(const LiburingRing* ring) noexcept;
void ring_ends(const LiburingRing* ring) noexcept;

// A ring made by io_uring_setup. It is known once its queues are mapped.
void ring_was_set_up(int fd, const RingParams& params) noexcept;
void ring_was_mapped(int fd, std::uint64_t offset, void* at, std::size_t length) noexcept;
// Memory of the program is about to go: perhaps that of a ring.
void memory_goes(const void* at, std::size_t length) noexcept;
// The descriptor of a ring, known or not, is about to be closed.
void ring_closes(int fd) noexcept;
Ring* ring_of(int fd) noexcept;
// After io_uring_register has succeeded.
void ring_registered(Ring& ring, unsigned opcode, const void* argument, unsigned number) noexcept;

inline bool is_ring(const File* file) noexcept {
  return std::string_view(file->path, file->length) == "anon_inode:[io_uring]";
}
// Before a trace is closed: what is in flight is recorded as unfinished, and requests that only the
// kernel has seen are counted, `for_good` also those of rings that no call has made.
void rings_before_close(bool for_good) noexcept;
// When interception begins.
void begin_rings() noexcept;

// What a call on a ring asks for.
struct RingAsked {
  unsigned tail;    // of the queue of requests
  bool submits;     // the requests up to there
  unsigned nr;      // requests that it submits, where `submits` does not say
  unsigned min_nr;  // completions to wait for
  bool recorded;
};

// Looks at the ring around a call. `error` makes -errno of a result.
template <class Call, class Error>
[[gnu::always_inline]] inline auto probe_ring(RingCall& name, Ring* ring, const RingAsked& asked,
                                              const void* caller, Call call, Error error) {
  buffer::ThreadState* t = ring != nullptr ? watch(Category::IO_URING) : nullptr;
  if (t == nullptr) return call();
  const std::uint64_t site = site_of(*t, caller);
  const std::uint64_t start = record::ticks();
  unsigned fresh = asked.nr;
  if (ring->lock(*t)) {
    ring->see_completions(*t, start);
    if (asked.submits) fresh = ring->see_submissions(*t, asked.tail, start, site);
    ring->unlock();
  }
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  t = watch(Category::IO_URING);
  if (t == nullptr) return ret;
  std::size_t in_flight = 0;
  if (ring->lock(*t)) {
    ring->see_completions(*t, end);
    in_flight = ring->in_flight();
    ring->unlock();
  }
  if (asked.recorded) {
    record_ring_call(*t, name, start, end,
                     {fresh, asked.min_nr, error(ret), ring->queues().fd, in_flight, site});
  }
  return ret;
}

// Around io_uring_enter on a ring of the program's own.
[[gnu::visibility("hidden")]] extern RingCall g_enter;
template <class Call, class Error>
[[gnu::always_inline]] inline auto enter_ring(int fd, unsigned submit, unsigned nr, unsigned flags,
                                              const void* caller, Call call, Error error) {
  constexpr unsigned kGetEvents = 1;
  constexpr unsigned kRegisteredRing = 1u << 4;  // `fd` is not a descriptor
  Ring* ring = (flags & kRegisteredRing) == 0 ? ring_of(fd) : nullptr;
  const unsigned tail =
      ring != nullptr ? __atomic_load_n(ring->queues().sq_tail, __ATOMIC_ACQUIRE) : 0;
  return probe_ring(g_enter, ring, {tail, true, submit, (flags & kGetEvents) != 0 ? nr : 0, true},
                    caller, call, error);
}

}  // namespace dft::intercept
