// Shared by the wrappers of libaio's functions and those of the same calls made through syscall():
// submitting control blocks, and collecting their completions.
#pragma once
#include <linux/aio_abi.h>

#include "intercept/aio_requests.hpp"
#include "intercept/wrap_macros.hpp"

namespace dft::intercept {
namespace {

class InAio {
 public:
  InAio() { t_in_aio = true; }
  ~InAio() { t_in_aio = false; }
  InAio(const InAio&) = delete;
  InAio& operator=(const InAio&) = delete;
};

// libaio's functions return -errno, system calls set it.
template <auto row, class R>
std::int64_t result_or_error(R ret) {
  return row == Row::syscall && ret == -1 ? -std::int64_t{reason<Row::syscall>()} : ret;
}

inline std::uint8_t op_of(const iocb& request) {
  switch (request.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
      return kOpAioRead;
    case IOCB_CMD_PWRITE:
      return kOpAioWrite;
    case IOCB_CMD_PREADV:
      return kOpAioReadv;
    case IOCB_CMD_PWRITEV:
      return kOpAioWritev;
    case IOCB_CMD_FSYNC:
      return kOpAioFsync;
    case IOCB_CMD_FDSYNC:
      return kOpAioFdatasync;
    case IOCB_CMD_POLL:
      return kOpAioPoll;
    default:
      return kOpAioNop;
  }
}

// The program's pointers may be bad, which the kernel has to find: process_vm_readv fails where a
// plain read would crash. Returns how many are whole.
inline int read_blocks(const std::uint64_t* addresses, int number, iocb* out) {
  iovec from[16];
  for (int i = 0; i < number; ++i) from[i] = {reinterpret_cast<void*>(addresses[i]), sizeof(iocb)};
  const iovec to{out, static_cast<std::size_t>(number) * sizeof(iocb)};
  const long got = sys::call(SYS_process_vm_readv, sys::process_id(), &to, 1, from, number, 0);
  return got > 0 ? static_cast<int>(static_cast<std::size_t>(got) / sizeof(iocb)) : 0;
}
inline int read_list(iocb* const* list, long number, std::uint64_t* out) {
  const std::size_t size = static_cast<std::size_t>(number) * sizeof *out;
  const iovec from{const_cast<iocb**>(list), size};
  const iovec to{out, size};
  return sys::call(SYS_process_vm_readv, sys::process_id(), &to, 1, &from, 1, 0) ==
                 static_cast<long>(size)
             ? static_cast<int>(number)
             : 0;
}

// Submits control blocks: the call is recorded with the file of the first one.
template <Row row, auto shown = Row::io_submit, class Call>
[[gnu::always_inline]] inline auto submit_blocks(long nr, iocb** requests, const void* caller,
                                                 Call call) {
  constexpr long kAtOnce = 16;
  buffer::ThreadState* t = t_in_aio ? nullptr : watch(Category::AIO);
  if (t == nullptr) return call();
  const std::uint64_t site = site_of(*t, caller);
  const std::uint64_t start = record::ticks();
  File* first = nullptr;
  const auto each = [&](long from, auto act) {
    std::uint64_t addresses[kAtOnce];
    iocb blocks[kAtOnce];
    for (long done = from; done < nr; done += kAtOnce) {
      const long n = nr - done < kAtOnce ? nr - done : kAtOnce;
      const int whole = read_blocks(addresses, read_list(requests + done, n, addresses), blocks);
      for (int i = 0; i < whole; ++i) act(reinterpret_cast<const void*>(addresses[i]), blocks[i]);
      if (whole < n) return;
    }
  };
  each(0, [&](const void* block, const iocb& request) {
    const int fd = static_cast<int>(request.aio_fildes);
    if (first == nullptr) first = file_of(fd);
    const std::uint8_t op = op_of(request);
    const bool moves = op >= kOpAioRead && op <= kOpAioWritev;
    aio_submits(*t,
                {block, op, fd, moves ? static_cast<std::uint64_t>(request.aio_offset) : kNoOffset,
                 request.aio_nbytes},
                start, site);
  });
  const auto ret = [&] {
    const InAio inside;
    return call();
  }();
  const std::uint64_t end = record::ticks();
  const std::int64_t result = result_or_error<row>(ret);
  t = watch(Category::AIO);
  if (t == nullptr) return ret;
  if (result < nr) {
    each(result > 0 ? static_cast<long>(result) : 0,
         [&](const void* block, const iocb&) { aio_refused(*t, block); });
  }
  if (result <= 0) first = nullptr;
  if (!(first != nullptr ? first->traced : g_nameless.traced)) return ret;
  count_call(*t, moves_nothing());
  CallArgs args;
  if (first != nullptr) put_file(*t, args, Key::fhash, *first, -1);
  if (g_details.load(std::memory_order_relaxed)) {
    put_field(*t, args, field(Key::nr, nr));
    put_field(*t, args, field(Key::ret, result));
    if (site != 0) args.put(Key::site_hash, record::ArgType::kHash, site);
  }
  emit(t, index_of(shown), start, end, args);
  return ret;
}

// What the completions of one call add up to, by file.
struct Collected {
  struct Of {
    File* file;
    int fd;
    Moved moved;
    int requests;
    std::int64_t offset;  // of the last one
  };
  static constexpr std::size_t kMost = 16;  // further files are left out, and the sums unknown
  Of of[kMost];
  std::size_t files = 0;
  bool known = true;
  bool traced = false;
  int joined = 0;  // requests that have events of their own

  void add(const iocb& request, std::int64_t result) {
    const int fd = static_cast<int>(request.aio_fildes);
    File* file = file_of(fd);
    if (!file->traced) return;
    traced = true;
    std::size_t at = 0;
    while (at < files && of[at].file != file) ++at;
    if (at == kMost) {
      known = false;
      return;
    }
    if (at == files) of[files++] = {file, fd, {}, 0, 0};
    ++of[at].requests;
    of[at].offset = request.aio_offset;
    const bool written =
        request.aio_lio_opcode == IOCB_CMD_PWRITE || request.aio_lio_opcode == IOCB_CMD_PWRITEV;
    const bool read =
        request.aio_lio_opcode == IOCB_CMD_PREAD || request.aio_lio_opcode == IOCB_CMD_PREADV;
    of[at].moved.read += read ? reads(result).read : 0;
    of[at].moved.written += written ? writes(result).written : 0;
  }

  // Records the requests whose submission was seen, and adds up the others. Returns the first file
  // of the former.
  File* take(dft::buffer::ThreadState& t, const io_event* events, int number, std::uint64_t now) {
    constexpr int kAtOnce = 16;
    io_event others[kAtOnce];
    int kept = 0;
    File* first = nullptr;
    for (int i = 0; i < number; ++i) {
      File* file =
          aio_collected(t, reinterpret_cast<const void*>(events[i].obj), now, events[i].res);
      if (file != nullptr) {
        traced = traced || file->traced;
        if (first == nullptr && file->traced) first = file;
        ++joined;
        continue;
      }
      others[kept++] = events[i];
      if (kept < kAtOnce) continue;
      add_all(others, kept);
      kept = 0;
    }
    if (kept != 0) add_all(others, kept);
    return first;
  }

  // The program may have freed its requests, which the kernel has copied.
  void add_all(const io_event* events, int number) {
    constexpr int kAtOnce = 16;
    iocb requests[kAtOnce];
    for (int done = 0; done < number; done += kAtOnce) {
      const int n = number - done < kAtOnce ? number - done : kAtOnce;
      std::uint64_t addresses[kAtOnce];
      for (int i = 0; i < n; ++i) addresses[i] = events[done + i].obj;
      const int whole = read_blocks(addresses, n, requests);
      for (int i = 0; i < whole; ++i) add(requests[i], events[done + i].res);
      if (whole < n) {
        known = false;
        traced = traced || g_nameless.traced;
        return;
      }
    }
  }
};

constinit std::atomic<std::uint32_t> g_event_name{0};

inline void put_lengths(CallArgs& args, const Collected& collected, const Collected::Of& one) {
  if (!collected.known) return;
  if (one.requests == 1)
    args.put(Key::offset, record::ArgType::kInt, static_cast<std::uint64_t>(one.offset));
  args.put(Key::read_len, record::ArgType::kInt, one.moved.read);
  args.put(Key::write_len, record::ArgType::kInt, one.moved.written);
}

// The call is recorded with the first file. Each further file of requests whose submission was not
// seen has a record of its own without a duration, so that the call counts once.
template <Row row, auto shown = row, class Call>
[[gnu::always_inline]] inline auto collect(Call call, long min_nr, long nr, const void* events,
                                           const void* caller) {
  if (t_in_aio || watch(Category::POSIX) == nullptr) return call();
  const std::uint64_t start = record::ticks();
  const auto ret = [&] {
    const InAio inside;
    return call();
  }();
  const std::uint64_t end = record::ticks();
  const std::int64_t result = result_or_error<row>(ret);
  buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr) return ret;
  Collected collected;
  File* first = nullptr;
  if (result > 0) {
    first = collected.take(*t, static_cast<const io_event*>(events), static_cast<int>(result), end);
  }
  if (!(result > 0 ? collected.traced : g_nameless.traced)) {
    count_filtered(*t, moves_nothing());
    return ret;
  }
  count_call(*t, moves_nothing());
  const bool details = g_details.load(std::memory_order_relaxed);
  const bool has_own = first == nullptr && collected.files != 0;  // lengths of its own
  CallArgs args;
  if (has_own) {
    put_file(*t, args, Key::fhash, *collected.of[0].file, collected.of[0].fd);
  } else if (first != nullptr) {
    put_file(*t, args, Key::fhash, *first, -1);
  }
  if (details) {
    put_field(*t, args, field(Key::min_nr, min_nr));
    put_field(*t, args, field(Key::nr, nr));
    if (has_own) {
      put_lengths(args, collected, collected.of[0]);
    } else if (collected.joined != 0 && collected.known) {
      put_field(*t, args, field(Key::joined, collected.joined));
    }
    put_field(*t, args, field(Key::ret, result));
    const std::uint64_t site = site_of(*t, caller);
    if (site != 0) args.put(Key::site_hash, record::ArgType::kHash, site);
  }
  emit(t, index_of(shown), start, end, args);
  for (std::size_t i = has_own ? 1 : 0; i < collected.files; ++i) {
    CallArgs further;
    put_file(*t, further, Key::fhash, *collected.of[i].file, collected.of[i].fd);
    if (details) put_lengths(further, collected, collected.of[i]);
    emit_as(g_event_name, "io_event", t, end, end, further);
  }
  return ret;
}

}  // namespace
}  // namespace dft::intercept
