// Most of liburing is inlined into the program: requests are written, and completions read, without
// a call. Its exported functions tell when to look. They return -errno, and leave errno alone.
#include "intercept/liburing.hpp"

#include <iterator>

#include "intercept/rings.hpp"

namespace dft::intercept {
namespace {

constexpr auto kResult = [](auto ret) { return static_cast<std::int64_t>(ret); };

// The functions, in the order of g_calls.
enum Function : std::size_t {
#define DFT_LIBURING(name) k_##name,
#include "intercept/liburing.def"
  kFunctions
};
extern LibraryCall g_calls[kFunctions];

template <class F>
[[gnu::always_inline]] inline F* real_function(Function which) {
  return real_of<F>(g_calls[which]);
}

// The names under which calls are recorded, by function.
RingCall g_names[kFunctions] = {
#define DFT_LIBURING(name) {#name, {}},
#include "intercept/liburing.def"
};

RingAsked submits(const LiburingRing* ring, unsigned min_nr) {
  return {ring->sq.sqe_tail, true, 0, min_nr, true};
}
RingAsked waits(unsigned min_nr) { return {0, false, 0, min_nr, true}; }

using Params = void;
using Cqes = void**;
using Timeout = const void*;
using Signals = const void*;

#define DFT_RING_CALL(symbol, asked, parameters, arguments)                            \
  int wrap_##symbol parameters {                                                       \
    return probe_ring(                                                                 \
        g_names[k_##symbol], ring_of(ring), asked, caller_of_wrapper(),                \
        [&] { return real_function<int parameters>(k_##symbol) arguments; }, kResult); \
  }

DFT_RING_CALL(io_uring_submit, submits(ring, 0), (LiburingRing * ring), (ring))
DFT_RING_CALL(io_uring_submit_and_wait, submits(ring, nr), (LiburingRing * ring, unsigned nr),
              (ring, nr))
DFT_RING_CALL(io_uring_submit_and_wait_timeout, submits(ring, nr),
              (LiburingRing * ring, Cqes cqes, unsigned nr, Timeout timeout, Signals mask),
              (ring, cqes, nr, timeout, mask))
DFT_RING_CALL(io_uring_submit_and_wait_min_timeout, submits(ring, nr),
              (LiburingRing * ring, Cqes cqes, unsigned nr, Timeout timeout, unsigned least,
               Signals mask),
              (ring, cqes, nr, timeout, least, mask))
DFT_RING_CALL(io_uring_submit_and_wait_reg, submits(ring, nr),
              (LiburingRing * ring, Cqes cqes, unsigned nr, int index), (ring, cqes, nr, index))
DFT_RING_CALL(io_uring_submit_and_get_events, submits(ring, 0), (LiburingRing * ring), (ring))
DFT_RING_CALL(io_uring_get_events, waits(0), (LiburingRing * ring), (ring))
DFT_RING_CALL(io_uring_wait_cqes, waits(nr),
              (LiburingRing * ring, Cqes cqes, unsigned nr, Timeout timeout, Signals mask),
              (ring, cqes, nr, timeout, mask))
DFT_RING_CALL(io_uring_wait_cqes_min_timeout, waits(nr),
              (LiburingRing * ring, Cqes cqes, unsigned nr, Timeout timeout, unsigned least,
               Signals mask),
              (ring, cqes, nr, timeout, least, mask))
DFT_RING_CALL(io_uring_wait_cqe_timeout, waits(1),
              (LiburingRing * ring, Cqes cqes, Timeout timeout), (ring, cqes, timeout))
// Exported by liburing-ffi only.
DFT_RING_CALL(io_uring_wait_cqe, waits(1), (LiburingRing * ring, Cqes cqes), (ring, cqes))
DFT_RING_CALL(io_uring_wait_cqe_nr, waits(nr), (LiburingRing * ring, Cqes cqes, unsigned nr),
              (ring, cqes, nr))

// What the inlined io_uring_wait_cqe calls if there is no completion yet. The inlined
// io_uring_peek_cqe calls it too, to wait for none; a program that polls would fill its trace.
int wrap___io_uring_get_cqe(LiburingRing* ring, Cqes cqes, unsigned submit, unsigned nr,
                            Signals mask) {
  const RingAsked asked{0, false, submit, nr, submit != 0 || nr != 0};
  return probe_ring(
      g_names[k_io_uring_wait_cqe], ring_of(ring), asked, caller_of_wrapper(),
      [&] {
        return real_function<int(LiburingRing*, Cqes, unsigned, unsigned, Signals)>(
            k___io_uring_get_cqe)(ring, cqes, submit, nr, mask);
      },
      kResult);
}
unsigned wrap_io_uring_peek_batch_cqe(LiburingRing* ring, Cqes cqes, unsigned nr) {
  return probe_ring(
      g_names[k_io_uring_peek_batch_cqe], ring_of(ring), {0, false, 0, 0, false},
      caller_of_wrapper(),
      [&] {
        return real_function<unsigned(LiburingRing*, Cqes, unsigned)>(k_io_uring_peek_batch_cqe)(
            ring, cqes, nr);
      },
      kResult);
}

// ---- Rings

#define DFT_RING_BEGIN(symbol, parameters, arguments)                    \
  int wrap_##symbol parameters {                                         \
    const int ret = real_function<int parameters>(k_##symbol) arguments; \
    if (ret >= 0) ring_begins(ring);                                     \
    return ret;                                                          \
  }
DFT_RING_BEGIN(io_uring_queue_init, (unsigned entries, LiburingRing* ring, unsigned flags),
               (entries, ring, flags))
DFT_RING_BEGIN(io_uring_queue_init_params, (unsigned entries, LiburingRing* ring, Params* params),
               (entries, ring, params))
DFT_RING_BEGIN(io_uring_queue_init_mem,
               (unsigned entries, LiburingRing* ring, Params* params, void* memory,
                std::size_t size),
               (entries, ring, params, memory, size))
DFT_RING_BEGIN(io_uring_queue_mmap, (int fd, Params* params, LiburingRing* ring),
               (fd, params, ring))
void wrap_io_uring_queue_exit(LiburingRing* ring) {
  ring_ends(ring);
  real_function<void(LiburingRing*)>(k_io_uring_queue_exit)(ring);
}

// ---- Registered files

template <class Change>
void change_files(LiburingRing* ring, bool succeeded, Change change) {
  buffer::ThreadState* t = succeeded ? watch(Category::IO_URING) : nullptr;
  Ring* known = t != nullptr ? ring_of(ring) : nullptr;
  if (known == nullptr || !known->lock(*t)) return;
  change(*known);
  known->unlock();
}
#define DFT_RING_FILES(symbol, parameters, arguments, change)            \
  int wrap_##symbol parameters {                                         \
    const int ret = real_function<int parameters>(k_##symbol) arguments; \
    change_files(ring, ret >= 0, [&](Ring& known) { change; });          \
    return ret;                                                          \
  }
DFT_RING_FILES(io_uring_register_files, (LiburingRing * ring, const int* files, unsigned nr),
               (ring, files, nr), known.resize_files(nr);
               known.set_files(0, files, nr))
DFT_RING_FILES(io_uring_register_files_tags,
               (LiburingRing * ring, const int* files, const std::uint64_t* tags, unsigned nr),
               (ring, files, tags, nr), known.resize_files(nr);
               known.set_files(0, files, nr))
DFT_RING_FILES(io_uring_register_files_sparse, (LiburingRing * ring, unsigned nr), (ring, nr),
               known.resize_files(nr))
DFT_RING_FILES(io_uring_register_files_update,
               (LiburingRing * ring, unsigned first, const int* files, unsigned nr),
               (ring, first, files, nr), known.set_files(first, files, nr))
DFT_RING_FILES(io_uring_register_files_update_tag,
               (LiburingRing * ring, unsigned first, const int* files, const std::uint64_t* tags,
                unsigned nr),
               (ring, first, files, tags, nr), known.set_files(first, files, nr))
DFT_RING_FILES(io_uring_unregister_files, (LiburingRing * ring), (ring), known.resize_files(0))

// ---- The system calls, for rings that a program maps itself

int wrap_io_uring_setup(unsigned entries, RingParams* params) {
  const int fd = real_function<int(unsigned, RingParams*)>(k_io_uring_setup)(entries, params);
  if (fd >= 0 && watch(Category::IO_URING) != nullptr) ring_was_set_up(fd, *params);
  return fd;
}
int wrap_io_uring_enter(unsigned fd, unsigned submit, unsigned nr, unsigned flags, Signals mask) {
  return enter_ring(
      static_cast<int>(fd), submit, nr, flags, caller_of_wrapper(),
      [&] {
        return real_function<int(unsigned, unsigned, unsigned, unsigned, Signals)>(
            k_io_uring_enter)(fd, submit, nr, flags, mask);
      },
      kResult);
}
int wrap_io_uring_enter2(unsigned fd, unsigned submit, unsigned nr, unsigned flags, Signals mask,
                         std::size_t size) {
  return enter_ring(
      static_cast<int>(fd), submit, nr, flags, caller_of_wrapper(),
      [&] {
        return real_function<int(unsigned, unsigned, unsigned, unsigned, Signals, std::size_t)>(
            k_io_uring_enter2)(fd, submit, nr, flags, mask, size);
      },
      kResult);
}
int wrap_io_uring_register(unsigned fd, unsigned opcode, const void* argument, unsigned nr) {
  const int ret = real_function<int(unsigned, unsigned, const void*, unsigned)>(
      k_io_uring_register)(fd, opcode, argument, nr);
  Ring* ring = ret >= 0 ? ring_of(static_cast<int>(fd)) : nullptr;
  if (ring != nullptr) ring_registered(*ring, opcode, argument, nr);
  return ret;
}

constinit LibraryCall g_calls[kFunctions] = {
#define DFT_LIBURING(name) {#name, nullptr, {}},
#include "intercept/liburing.def"
};

// Not in the table itself: to Clang, a function of another type is no constant.
void fill_in() noexcept {
  LibraryCall* call = g_calls;
#define DFT_LIBURING(name) (call++)->wrapper = reinterpret_cast<void (*)()>(wrap_##name);
#include "intercept/liburing.def"
}

}  // namespace

constinit LibraryLayer g_liburing{"io_uring_queue_init", g_calls, std::size(g_calls), {}, fill_in};

}  // namespace dft::intercept
