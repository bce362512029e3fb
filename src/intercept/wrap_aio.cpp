// Wrappers written by hand: asynchronous I/O of POSIX (aio_*) and of libaio (io_*). Each request is
// an event of its own, from its submission to its completion; the bytes are there. Requests whose
// submission was not seen have them where their results are collected.
#include "intercept/wrap_aio.hpp"

#include <aio.h>

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

std::uint8_t op_of(const aiocb& request) {
  const int opcode = request.aio_lio_opcode & 127;
  return opcode == LIO_WRITE ? kOpAioWrite : opcode == LIO_READ ? kOpAioRead : kOpAioNop;
}

// Around the submission of one request. libc reads it before it returns.
template <Row row, class Call, class... F>
[[gnu::always_inline]] inline int submit(aiocb* request, std::uint8_t op, Call call, F... fields) {
  dft::buffer::ThreadState* t = watch(Category::AIO);
  if (t != nullptr) {
    const bool moves = op == kOpAioRead || op == kOpAioWrite;
    aio_submits(
        *t,
        {request, op, request->aio_fildes,
         moves ? static_cast<std::uint64_t>(request->aio_offset) : kNoOffset, request->aio_nbytes},
        record::ticks(), site_of(*t, caller_of_wrapper()));
  }
  const int result = probe_path<row, Category::POSIX>(
      kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); }, call,
      DFT_AFTER(moves_nothing()), fields...);
  if (t != nullptr && result != 0 && (t = watch(Category::AIO)) != nullptr)
    aio_refused(*t, request);
  return result;
}

// Those of a list that are complete by now.
void see_done(const aiocb* const list[], int nr) {
  dft::buffer::ThreadState* t = nr > 0 ? watch(Category::AIO) : nullptr;
  if (t == nullptr) return;
  const std::uint64_t now = record::ticks();
  for (int i = 0; i < nr; ++i) {
    const aiocb* one = list[i];
    if (one == nullptr || one->__error_code == EINPROGRESS) continue;
    aio_is_done(*t, one, now, one->__error_code != 0 ? -one->__error_code : one->__return_value);
  }
}

}  // namespace

#define DFT_AIO(symbol, op)                                                               \
  extern "C" int DFT_WRAPPER(symbol)(aiocb * request) {                                   \
    return submit<Row::symbol>(                                                           \
        request, op, [&] { return real<int(aiocb*)>(Row::symbol)(request); },             \
        DFT_NUM_AS(count, request->aio_nbytes), DFT_NUM_AS(offset, request->aio_offset)); \
  }
#define DFT_AIO_FSYNC(symbol)                                                    \
  extern "C" int DFT_WRAPPER(symbol)(int operation, aiocb* request) {            \
    return submit<Row::symbol>(                                                  \
        request, operation == O_DSYNC ? kOpAioFdatasync : kOpAioFsync,           \
        [&] { return real<int(int, aiocb*)>(Row::symbol)(operation, request); }, \
        DFT_NUM(operation));                                                     \
  }
#define DFT_AIO_RETURN(symbol)                                                                \
  extern "C" ssize_t DFT_WRAPPER(symbol)(aiocb * request) {                                   \
    File* joined = nullptr;                                                                   \
    const auto call = [&] {                                                                   \
      const ssize_t ret = real<ssize_t(aiocb*)>(Row::symbol)(request);                        \
      dft::buffer::ThreadState* t = watch(Category::AIO);                                     \
      if (t != nullptr)                                                                       \
        joined = aio_collected(*t, request, record::ticks(),                                  \
                               ret >= 0 ? ret : -ssize_t{reason<Row::symbol>()});             \
      return ret;                                                                             \
    };                                                                                        \
    const auto length = [&](Key key, std::uint64_t moved) {                                   \
      return OptionalArg{key, joined == nullptr, static_cast<std::int64_t>(moved)};           \
    };                                                                                        \
    return probe_path<Row::symbol, Category::POSIX>(                                          \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); }, call, \
        DFT_AFTER(returned(*request, ret)), DFT_NUM_AS(offset, request->aio_offset),          \
        DFT_AFTER(length(Key::read_len, returned(*request, ret).read)),                       \
        DFT_AFTER(length(Key::write_len, returned(*request, ret).written)),                   \
        DFT_AFTER((OptionalArg{Key::joined, joined != nullptr, 1})));                         \
  }
#define DFT_LIO(symbol)                                                                            \
  extern "C" int DFT_WRAPPER(symbol)(int mode, aiocb* const list[], int nr, sigevent* event) {     \
    dft::buffer::ThreadState* t = watch(Category::AIO);                                            \
    const std::uint64_t site = t != nullptr ? site_of(*t, caller_of_wrapper()) : 0;                \
    const std::uint64_t start = record::ticks();                                                   \
    for (int i = 0; t != nullptr && i < nr; ++i) {                                                 \
      const aiocb* one = list[i];                                                                  \
      if (one == nullptr || one->aio_lio_opcode == LIO_NOP) continue;                              \
      aio_submits(*t,                                                                              \
                  {one, op_of(*one), one->aio_fildes, static_cast<std::uint64_t>(one->aio_offset), \
                   one->aio_nbytes},                                                               \
                  start, site);                                                                    \
    }                                                                                              \
    const int result = DFT_PROBE(POSIX, symbol, int, (int, aiocb* const*, int, sigevent*),         \
                                 (mode, list, nr, event), on_unnamed(), moves_nothing(),           \
                                 DFT_NUM(mode), DFT_NUM(nr));                                      \
    if (mode == LIO_WAIT) see_done(list, nr);                                                      \
    return result;                                                                                 \
  }
#define DFT_AIO_SUSPEND(symbol)                                                                    \
  extern "C" int DFT_WRAPPER(symbol)(const aiocb* const list[], int nr, const timespec* timeout) { \
    const int result = DFT_PROBE(POSIX, symbol, int, (const aiocb* const*, int, const timespec*),  \
                                 (list, nr, timeout), on_unnamed(), moves_nothing(), DFT_NUM(nr)); \
    see_done(list, nr);                                                                            \
    return result;                                                                                 \
  }
DFT_AIO(aio_read, kOpAioRead)
DFT_AIO(aio_read64, kOpAioRead)
DFT_AIO(aio_write, kOpAioWrite)
DFT_AIO(aio_write64, kOpAioWrite)
DFT_AIO_FSYNC(aio_fsync)
DFT_AIO_FSYNC(aio_fsync64)
DFT_AIO_RETURN(aio_return)
DFT_AIO_RETURN(aio_return64)
DFT_AIO_SUSPEND(aio_suspend)
DFT_AIO_SUSPEND(aio_suspend64)
DFT_LIO(lio_listio)
DFT_LIO(lio_listio64)

// libaio's functions return -errno.
extern "C" int DFT_WRAPPER(io_submit)(void* context, long nr, iocb** requests) {
  return submit_blocks<Row::io_submit>(nr, requests, caller_of_wrapper(), [&] {
    return real<int(void*, long, iocb**)>(Row::io_submit)(context, nr, requests);
  });
}
extern "C" int DFT_WRAPPER(io_getevents)(void* context, long min_nr, long nr, void* events,
                                         void* timeout) {
  return collect<Row::io_getevents>(
      [&] {
        return real<int(void*, long, long, void*, void*)>(Row::io_getevents)(context, min_nr, nr,
                                                                             events, timeout);
      },
      min_nr, nr, events, caller_of_wrapper());
}
extern "C" int DFT_WRAPPER(io_pgetevents)(void* context, long min_nr, long nr, void* events,
                                          void* timeout, void* mask) {
  return collect<Row::io_pgetevents>(
      [&] {
        return real<int(void*, long, long, void*, void*, void*)>(Row::io_pgetevents)(
            context, min_nr, nr, events, timeout, mask);
      },
      min_nr, nr, events, caller_of_wrapper());
}
