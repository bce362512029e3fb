// Wrappers written by hand: asynchronous I/O of POSIX (aio_*) and of libaio (io_*). Submission
// records what was requested, completion what came of it.
#include <aio.h>
#include <linux/aio_abi.h>

#include "intercept/wrap_macros.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp
namespace record = dft::record;

namespace {

constexpr auto kMayBe = [] { return true; };

// glibc stores the operation in the request, with a flag for 64-bit requests.
Moved returned(const aiocb& request, ssize_t ret) {
  const int opcode = request.aio_lio_opcode & 127;
  return opcode == LIO_WRITE ? writes(ret) : opcode == LIO_READ ? reads(ret) : moves_nothing();
}

File* file_of_request(const aiocb* request, bool& traced) {
  File* file = file_of(request->aio_fildes);
  traced = file->traced;
  return file;
}

}  // namespace

#define DFT_AIO(symbol)                                                                      \
  extern "C" int DFT_WRAPPER(symbol)(aiocb * request) {                                      \
    return probe_path<Row::symbol, Category::POSIX>(                                         \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); },      \
        [&] { return real<int(aiocb*)>(Row::symbol)(request); }, DFT_AFTER(moves_nothing()), \
        DFT_NUM_AS(count, request->aio_nbytes), DFT_NUM_AS(offset, request->aio_offset));    \
  }
#define DFT_AIO_FSYNC(symbol)                                                           \
  extern "C" int DFT_WRAPPER(symbol)(int operation, aiocb* request) {                   \
    return probe_path<Row::symbol, Category::POSIX>(                                    \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); }, \
        [&] { return real<int(int, aiocb*)>(Row::symbol)(operation, request); },        \
        DFT_AFTER(moves_nothing()), DFT_NUM(operation));                                \
  }
#define DFT_AIO_RETURN(symbol)                                                          \
  extern "C" ssize_t DFT_WRAPPER(symbol)(aiocb * request) {                             \
    return probe_path<Row::symbol, Category::POSIX>(                                    \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); }, \
        [&] { return real<ssize_t(aiocb*)>(Row::symbol)(request); },                    \
        DFT_AFTER(returned(*request, ret)), DFT_NUM_AS(offset, request->aio_offset),    \
        DFT_NUM_AS(read_len, returned(*request, ret).read),                             \
        DFT_NUM_AS(write_len, returned(*request, ret).written));                        \
  }
#define DFT_LIO(symbol)                                                                        \
  extern "C" int DFT_WRAPPER(symbol)(int mode, aiocb* const list[], int nr, sigevent* event) { \
    return DFT_PROBE(POSIX, symbol, int, (int, aiocb* const*, int, sigevent*),                 \
                     (mode, list, nr, event), on_unnamed(), moves_nothing(), DFT_NUM(mode),    \
                     DFT_NUM(nr));                                                             \
  }
DFT_AIO(aio_read)
DFT_AIO(aio_read64)
DFT_AIO(aio_write)
DFT_AIO(aio_write64)
DFT_AIO_FSYNC(aio_fsync)
DFT_AIO_FSYNC(aio_fsync64)
DFT_AIO_RETURN(aio_return)
DFT_AIO_RETURN(aio_return64)
DFT_LIO(lio_listio)
DFT_LIO(lio_listio64)

// libaio's functions return -errno.
extern "C" int DFT_WRAPPER(io_submit)(void* context, long nr, iocb** requests) {
  const auto find = [&](bool& traced) {
    File* file = nr > 0 ? file_of(static_cast<int>(requests[0]->aio_fildes)) : &g_nameless;
    traced = file->traced;
    return file;
  };
  const auto call = [&] {
    return real<int(void*, long, iocb**)>(Row::io_submit)(context, nr, requests);
  };
  if (watch(Category::POSIX) == nullptr) return call();
  std::uint64_t start = record::ticks();
  const int ret = call();
  const std::uint64_t end = record::ticks();
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  bool traced = g_nameless.traced;
  File* file = ret > 0 ? find(traced) : nullptr;
  if (t == nullptr || !traced) return ret;
  record_call<Row::io_submit>(*t, file, -1, start, end, ret, field(Key::nr, nr));
  return ret;
}

namespace {

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

  // The program may have freed its requests, which the kernel has copied: process_vm_readv fails
  // where a plain read would crash.
  void add_all(const io_event* events, int number) {
    constexpr int kAtOnce = 16;
    iocb requests[kAtOnce];
    for (int done = 0; done < number; done += kAtOnce) {
      const int n = number - done < kAtOnce ? number - done : kAtOnce;
      iovec from[kAtOnce];
      for (int i = 0; i < n; ++i)
        from[i] = {reinterpret_cast<void*>(events[done + i].obj), sizeof(iocb)};
      const iovec to{requests, static_cast<std::size_t>(n) * sizeof(iocb)};
      const long got =
          dft::sys::call(SYS_process_vm_readv, dft::sys::process_id(), &to, 1, from, n, 0);
      const int whole =
          got > 0 ? static_cast<int>(static_cast<std::size_t>(got) / sizeof(iocb)) : 0;
      for (int i = 0; i < whole; ++i) add(requests[i], events[done + i].res);
      if (whole < n) {
        known = false;
        traced = traced || g_nameless.traced;
        return;
      }
    }
  }
};

std::atomic<std::uint32_t> g_event_name{0};

void put_lengths(CallArgs& args, const Collected& collected, const Collected::Of& one) {
  if (!collected.known) return;
  if (one.requests == 1)
    args.put(Key::offset, record::ArgType::kInt, static_cast<std::uint64_t>(one.offset));
  args.put(Key::read_len, record::ArgType::kInt, one.moved.read);
  args.put(Key::write_len, record::ArgType::kInt, one.moved.written);
}

// The call is recorded with the first file. Each further file has a record of its own without a
// duration, so that the call counts once.
template <Row row, class Call>
int collect(Call call, long min_nr, long nr, const void* events) {
  if (watch(Category::POSIX) == nullptr) return call();
  const std::uint64_t start = record::ticks();
  const int ret = call();
  const std::uint64_t end = record::ticks();
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr) return ret;
  Collected collected;
  if (ret > 0) collected.add_all(static_cast<const io_event*>(events), ret);
  if (!(ret > 0 ? collected.traced : g_nameless.traced)) {
    count_filtered(*t, moves_nothing());
    return ret;
  }
  count_call(*t, moves_nothing());
  const bool details = g_details.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < collected.files || i == 0; ++i) {
    CallArgs args;
    const Collected::Of& one = collected.of[i];
    if (i < collected.files) put_file(*t, args, Key::fhash, *one.file, one.fd);
    if (i != 0) {
      if (details) put_lengths(args, collected, one);
      emit_as(g_event_name, "io_event", t, end, end, args);
      continue;
    }
    if (details) {
      put_field(*t, args, field(Key::min_nr, min_nr));
      put_field(*t, args, field(Key::nr, nr));
      if (i < collected.files) put_lengths(args, collected, one);
      put_field(*t, args, field(Key::ret, ret));
    }
    emit(t, index_of(row), start, end, args);
  }
  return ret;
}

}  // namespace

extern "C" int DFT_WRAPPER(io_getevents)(void* context, long min_nr, long nr, void* events,
                                         void* timeout) {
  return collect<Row::io_getevents>(
      [&] {
        return real<int(void*, long, long, void*, void*)>(Row::io_getevents)(context, min_nr, nr,
                                                                             events, timeout);
      },
      min_nr, nr, events);
}
extern "C" int DFT_WRAPPER(io_pgetevents)(void* context, long min_nr, long nr, void* events,
                                          void* timeout, void* mask) {
  return collect<Row::io_pgetevents>(
      [&] {
        return real<int(void*, long, long, void*, void*, void*)>(Row::io_pgetevents)(
            context, min_nr, nr, events, timeout, mask);
      },
      min_nr, nr, events);
}
