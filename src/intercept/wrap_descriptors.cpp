// Wrappers written by hand: calls that change what a descriptor means, or where paths begin.
#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <sys/mman.h>

#include "intercept/mappings.hpp"
#include "intercept/processes.hpp"
#include "intercept/wrap_rows.hpp"
#include "session/session.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_rows.cpp
namespace record = dft::record;

namespace {

constexpr int kCwd = AT_FDCWD;

struct OpenFlags {
  int flags;
  mode_t mode;
  [[nodiscard]] Optional shown_mode() const {
    return {Key::mode, (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE, mode};
  }
};

bool goes_up(const char* path) {
  const char* at = std::strstr(path, "../");
  return at != nullptr && (at == path || at[-1] == '/');
}

// A call that opens a path. The descriptor is known from then on, traced or not.
template <Row row, Set set, class Call, class To, class... F>
[[gnu::always_inline]] inline auto open_path(int directory, const char* path, bool names_the_file,
                                             Call call, To descriptor, F... fields) {
  File* found = nullptr;
  int opened = -1;
  const auto run = [&] {
    const auto ret = call();
    if (!has_failed(ret)) opened = descriptor(ret);
    return ret;
  };
  const auto find = [&](bool& traced) {
    if (opened >= 0 && goes_up(path)) {
      found = discover(opened);  // text alone does not tell where ".." leads after a symbolic link
    } else {
      found = may_be_traced(path) ? file_at(directory, path) : &g_elsewhere;
    }
    traced = found->traced;
    return found;
  };
  const auto result =
      probe_path<row, set>([path] { return kernel_reads(path); }, [] { return true; }, find, run,
                           DFT_AFTER(moves_nothing()), fields...);
  const int fd = descriptor(result);
  if (fd >= 0) set_file_of(fd, names_the_file ? found : nullptr);
  return result;
}

constexpr auto kItself = [](auto fd) { return static_cast<int>(fd); };
constexpr auto kOfStream = [](FILE* stream) { return descriptor_of(stream); };
constexpr auto kOfDirectory = [](DIR* stream) { return descriptor_of(stream); };

bool names_the_file(int flags) { return (flags & O_TMPFILE) != O_TMPFILE; }

}  // namespace

// The third argument is read whether the caller gave one or not, and passed on as it is.
#define DFT_OPEN(symbol)                                                                     \
  extern "C" int DFT_WRAPPER(symbol)(const char* path, int flags, mode_t mode) {             \
    const OpenFlags open{flags, mode};                                                       \
    return open_path<Row::symbol, Set::POSIX>(                                               \
        kCwd, path, names_the_file(flags),                                                   \
        [&] { return real<int(const char*, int, mode_t)>(Row::symbol)(path, flags, mode); }, \
        kItself, N(flags), DFT_AFTER(open.shown_mode()));                                    \
  }
#define DFT_OPENAT(symbol)                                                                        \
  extern "C" int DFT_WRAPPER(symbol)(int dirfd, const char* path, int flags, mode_t mode) {       \
    const OpenFlags open{flags, mode};                                                            \
    return open_path<Row::symbol, Set::POSIX>(                                                    \
        dirfd, path, names_the_file(flags),                                                       \
        [&] {                                                                                     \
          return real<int(int, const char*, int, mode_t)>(Row::symbol)(dirfd, path, flags, mode); \
        },                                                                                        \
        kItself, N(dirfd), N(flags), DFT_AFTER(open.shown_mode()));                               \
  }
#define DFT_CREAT(symbol)                                                                          \
  extern "C" int DFT_WRAPPER(symbol)(const char* path, mode_t mode) {                              \
    return open_path<Row::symbol, Set::POSIX>(                                                     \
        kCwd, path, true, [&] { return real<int(const char*, mode_t)>(Row::symbol)(path, mode); }, \
        kItself, N(mode));                                                                         \
  }
DFT_OPEN(open)
DFT_OPEN(open64)
DFT_OPEN(__open)
DFT_OPEN(__open64)
DFT_OPEN(__open_2)
DFT_OPEN(__open64_2)
DFT_OPENAT(openat)
DFT_OPENAT(openat64)
DFT_OPENAT(__openat_2)
DFT_OPENAT(__openat64_2)
DFT_CREAT(creat)
DFT_CREAT(creat64)

// The template holds the name that was chosen once the call has succeeded.
#define DFT_TEMPORARY(symbol, params, args, ...)                              \
  extern "C" int DFT_WRAPPER(symbol) params {                                 \
    return open_path<Row::symbol, Set::POSIX>(                                \
        kCwd, path, true, [&] { return real<int params>(Row::symbol) args; }, \
        kItself __VA_OPT__(, ) __VA_ARGS__);                                  \
  }
DFT_TEMPORARY(mkstemp, (char* path), (path))
DFT_TEMPORARY(mkstemp64, (char* path), (path))
DFT_TEMPORARY(mkostemp, (char* path, int flags), (path, flags), N(flags))
DFT_TEMPORARY(mkostemp64, (char* path, int flags), (path, flags), N(flags))
DFT_TEMPORARY(mkstemps, (char* path, int suffixlen), (path, suffixlen), N(suffixlen))
DFT_TEMPORARY(mkstemps64, (char* path, int suffixlen), (path, suffixlen), N(suffixlen))
DFT_TEMPORARY(mkostemps, (char* path, int suffixlen, int flags), (path, suffixlen, flags),
              N(suffixlen), N(flags))
DFT_TEMPORARY(mkostemps64, (char* path, int suffixlen, int flags), (path, suffixlen, flags),
              N(suffixlen), N(flags))

// Descriptors whose names only the kernel knows: they are asked for when they are first used.
#define DFT_UNNAMED(symbol, params, args, fd, ...)                               \
  extern "C" int DFT_WRAPPER(symbol) params {                                    \
    const int result = DFT_PROBE(POSIX, symbol, int, params, args, on_unnamed(), \
                                 moves_nothing() __VA_OPT__(, ) __VA_ARGS__);    \
    if (result >= 0) set_file_of(fd, nullptr);                                   \
    return result;                                                               \
  }
DFT_UNNAMED(memfd_create, (const char* name, unsigned flags), (name, flags), result,
            S(name, given(ret, name)), N(flags))
DFT_UNNAMED(shm_open, (const char* name, int flags, mode_t mode), (name, flags, mode), result,
            S(name, given(ret, name)), N(flags), N(mode))
DFT_UNNAMED(shm_unlink, (const char* name), (name), -1, S(name, given(ret, name)))
DFT_UNNAMED(pipe, (int* fds), (fds), (set_file_of(fds[1], nullptr), fds[0]))
DFT_UNNAMED(__pipe, (int* fds), (fds), (set_file_of(fds[1], nullptr), fds[0]))
DFT_UNNAMED(pipe2, (int* fds, int flags), (fds, flags), (set_file_of(fds[1], nullptr), fds[0]),
            N(flags))

// ---- Closing. What a descriptor meant is forgotten before it is free for others, and also while
// nobody watches.

namespace {

template <Row row, Set set, class Call>
[[gnu::always_inline]] inline auto close_call(int fd, Call call) {
  dft::buffer::ThreadState* t = watch(set);
  if (t == nullptr) {
    set_file_of(fd, nullptr);
    return call();
  }
  File* file = take_file_of(fd);
  return probe_open<row, set>(*t, file, file->traced, fd, call, DFT_AFTER(moves_nothing()));
}

}  // namespace

extern "C" int DFT_WRAPPER(close)(int fd) {
  return close_call<Row::close, Set::POSIX>(fd, [&] { return real<int(int)>(Row::close)(fd); });
}
extern "C" int DFT_WRAPPER(__close)(int fd) {
  return close_call<Row::__close, Set::POSIX>(fd, [&] { return real<int(int)>(Row::__close)(fd); });
}
#define DFT_FCLOSE(symbol)                                                               \
  extern "C" int DFT_WRAPPER(symbol)(FILE * stream) {                                    \
    const int fd = descriptor_of(stream);                                                \
    if (stream == stderr && watch(Set::STDIO) != nullptr) dft::session::stderr_closes(); \
    return close_call<Row::symbol, Set::STDIO>(                                          \
        fd, [&] { return real<int(FILE*)>(Row::symbol)(stream); });                      \
  }
DFT_FCLOSE(fclose)
DFT_FCLOSE(_IO_fclose)
extern "C" int DFT_WRAPPER(pclose)(FILE* stream) {
  const int fd = descriptor_of(stream);
  return close_call<Row::pclose, Set::STDIO>(fd,
                                             [&] { return real<int(FILE*)>(Row::pclose)(stream); });
}
extern "C" int DFT_WRAPPER(closedir)(DIR* stream) {
  const int fd = descriptor_of(stream);
  return close_call<Row::closedir, Set::POSIX>(
      fd, [&] { return real<int(DIR*)>(Row::closedir)(stream); });
}
extern "C" int DFT_WRAPPER(close_range)(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyMark = 4;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyMark) == 0) forget_descriptors(first, last);
  return DFT_PROBE(POSIX, close_range, int, (unsigned, unsigned, int), (first, last, flags),
                   on_unnamed(), moves_nothing(), N(first), N(last), N(flags));
}
extern "C" void DFT_WRAPPER(closefrom)(int first) {
  forget_descriptors(first > 0 ? static_cast<unsigned>(first) : 0, ~0u);
  return DFT_PROBE(POSIX, closefrom, void, (int), (first), on_unnamed(), moves_nothing(), N(first));
}

// ---- Copies

extern "C" int DFT_WRAPPER(dup)(int oldfd) {
  const int result =
      DFT_PROBE(POSIX, dup, int, (int), (oldfd), on_fd(oldfd), moves_nothing(), N(oldfd));
  if (result >= 0) copy_file_of(oldfd, result);
  return result;
}
#define DFT_DUP2(symbol)                                                                       \
  extern "C" int DFT_WRAPPER(symbol)(int oldfd, int newfd) {                                   \
    const int result = DFT_PROBE(POSIX, symbol, int, (int, int), (oldfd, newfd), on_fd(oldfd), \
                                 moves_nothing(), N(oldfd), N(newfd));                         \
    if (result >= 0 && oldfd != newfd) copy_file_of(oldfd, newfd);                             \
    return result;                                                                             \
  }
DFT_DUP2(dup2)
DFT_DUP2(__dup2)
extern "C" int DFT_WRAPPER(dup3)(int oldfd, int newfd, int flags) {
  const int result = DFT_PROBE(POSIX, dup3, int, (int, int, int), (oldfd, newfd, flags),
                               on_fd(oldfd), moves_nothing(), N(oldfd), N(newfd), N(flags));
  if (result >= 0) copy_file_of(oldfd, newfd);
  return result;
}
#define DFT_FCNTL(symbol)                                                                         \
  extern "C" int DFT_WRAPPER(symbol)(int fd, int cmd, long arg) {                                 \
    const int result = DFT_PROBE(POSIX, symbol, int, (int, int, long), (fd, cmd, arg), on_fd(fd), \
                                 moves_nothing(), N(cmd));                                        \
    if (result >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)) copy_file_of(fd, result);      \
    return result;                                                                                \
  }
DFT_FCNTL(fcntl)
DFT_FCNTL(fcntl64)
DFT_FCNTL(__fcntl)

// ---- Directories

extern "C" DIR* DFT_WRAPPER(opendir)(const char* path) {
  return open_path<Row::opendir, Set::POSIX>(
      kCwd, path, true, [&] { return real<DIR*(const char*)>(Row::opendir)(path); }, kOfDirectory);
}
// The path is relative to the directory that was current before the call.
extern "C" int DFT_WRAPPER(chdir)(const char* path) {
  if (watch(Set::POSIX) != nullptr) know_cwd();
  const int result =
      DFT_PROBE(POSIX, chdir, int, (const char*), (path), on_path(path), moves_nothing());
  if (result == 0) forget_cwd();
  return result;
}
extern "C" int DFT_WRAPPER(chroot)(const char* path) {
  if (watch(Set::POSIX) != nullptr) know_cwd();
  const int result =
      DFT_PROBE(POSIX, chroot, int, (const char*), (path), on_path(path), moves_nothing());
  if (result == 0) forget_cwd();
  return result;
}
extern "C" int DFT_WRAPPER(fchdir)(int fd) {
  const int result = DFT_PROBE(POSIX, fchdir, int, (int), (fd), on_fd(fd), moves_nothing());
  if (result == 0) forget_cwd();
  return result;
}

// ---- Streams

#define DFT_FOPEN(symbol)                                                                          \
  extern "C" FILE* DFT_WRAPPER(symbol)(const char* path, const char* mode) {                       \
    return open_path<Row::symbol, Set::STDIO>(                                                     \
        kCwd, path, true,                                                                          \
        [&] { return real<FILE*(const char*, const char*)>(Row::symbol)(path, mode); }, kOfStream, \
        S(mode, mode));                                                                            \
  }
DFT_FOPEN(fopen)
DFT_FOPEN(fopen64)
DFT_FOPEN(_IO_fopen)

// Without a path it is the same file in another mode.
#define DFT_FREOPEN(symbol)                                                                      \
  extern "C" FILE* DFT_WRAPPER(symbol)(const char* path, const char* mode, FILE* stream) {       \
    const auto call = [&] {                                                                      \
      return real<FILE*(const char*, const char*, FILE*)>(Row::symbol)(path, mode, stream);      \
    };                                                                                           \
    if (path == nullptr) {                                                                       \
      return probe<Row::symbol, Set::STDIO>(on_stream(stream), call, DFT_AFTER(moves_nothing()), \
                                            S(mode, mode));                                      \
    }                                                                                            \
    set_file_of(descriptor_of(stream), nullptr);                                                 \
    return open_path<Row::symbol, Set::STDIO>(kCwd, path, true, call, kOfStream, S(mode, mode)); \
  }
DFT_FREOPEN(freopen)
DFT_FREOPEN(freopen64)

// ---- Mapped files. Memory of other kinds is none of our business.

namespace {

// A queue of requests that the kernel takes from memory: what goes that way is not seen, so that it
// is there is always recorded.
bool is_ring(const File* file) {
  return std::string_view(file->path, file->length) == "anon_inode:[io_uring]";
}

}  // namespace

#define DFT_MMAP(symbol)                                                                         \
  extern "C" void* DFT_WRAPPER(symbol)(void* at, size_t length, int prot, int flags, int fd,     \
                                       off_t offset) {                                           \
    using Function = void*(void*, size_t, int, int, int, off_t);                                 \
    const auto call = [&] {                                                                      \
      return real<Function>(Row::symbol)(at, length, prot, flags, fd, offset);                   \
    };                                                                                           \
    dft::buffer::ThreadState* t =                                                                \
        fd < 0 || (flags & MAP_ANONYMOUS) != 0 ? nullptr : watch(Set::POSIX);                    \
    if (t == nullptr) return call();                                                             \
    File* file = file_of(fd);                                                                    \
    void* result = probe_open<Row::symbol, Set::POSIX>(*t, file, file->traced || is_ring(file),  \
                                                       fd, call, DFT_AFTER(moves_nothing()),     \
                                                       N(length), N(prot), N(flags), N(offset)); \
    if (result != MAP_FAILED && watch(Set::POSIX) != nullptr && file->traced)                    \
      remember_mapping(result, length, file);                                                    \
    return result;                                                                               \
  }
DFT_MMAP(mmap)
DFT_MMAP(mmap64)

namespace {

template <Row row, class Call, class... F>
[[gnu::always_inline]] inline auto mapped_call(const void* at, Call call, F... fields) {
  dft::buffer::ThreadState* t = watch(Set::POSIX);
  File* file = t != nullptr ? mapped_file(at) : nullptr;
  if (file == nullptr) return call();
  return probe_open<row, Set::POSIX>(*t, file, true, -1, call, DFT_AFTER(moves_nothing()),
                                     fields...);
}

}  // namespace

extern "C" int DFT_WRAPPER(munmap)(void* at, size_t length) {
  const auto call = [&] { return real<int(void*, size_t)>(Row::munmap)(at, length); };
  const int result = mapped_call<Row::munmap>(at, call, N(length));
  if (result == 0 && watch(Set::POSIX) != nullptr) forget_mapping(at, length);
  return result;
}
extern "C" void* DFT_WRAPPER(mremap)(void* at, size_t old_size, size_t new_size, int flags,
                                     void* to) {
  const auto call = [&] {
    return real<void*(void*, size_t, size_t, int, void*)>(Row::mremap)(at, old_size, new_size,
                                                                       flags, to);
  };
  File* file = watch(Set::POSIX) != nullptr ? mapped_file(at) : nullptr;
  void* result = mapped_call<Row::mremap>(at, call, N(old_size), N(new_size), N(flags));
  if (file != nullptr && result != MAP_FAILED) {
    forget_mapping(at, old_size);
    remember_mapping(result, new_size, file);
  }
  return result;
}
extern "C" int DFT_WRAPPER(msync)(void* at, size_t length, int flags) {
  const auto call = [&] { return real<int(void*, size_t, int)>(Row::msync)(at, length, flags); };
  return mapped_call<Row::msync>(at, call, N(length), N(flags));
}
extern "C" int DFT_WRAPPER(madvise)(void* at, size_t length, int advice) {
  const auto call = [&] { return real<int(void*, size_t, int)>(Row::madvise)(at, length, advice); };
  return mapped_call<Row::madvise>(at, call, N(length), N(advice));
}
extern "C" int DFT_WRAPPER(posix_madvise)(void* at, size_t length, int advice) {
  const auto call = [&] {
    return real<int(void*, size_t, int)>(Row::posix_madvise)(at, length, advice);
  };
  return mapped_call<Row::posix_madvise>(at, call, N(length), N(advice));
}

// ---- Asynchronous I/O: what was asked for, and what came of it

namespace {

constexpr auto kMayBe = [] { return true; };

// glibc notes in the request what it is, with a mark for those of 64 bits.
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
    return probe_path<Row::symbol, Set::POSIX>(                                              \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); },      \
        [&] { return real<int(aiocb*)>(Row::symbol)(request); }, DFT_AFTER(moves_nothing()), \
        K(count, request->aio_nbytes), K(offset, request->aio_offset));                      \
  }
#define DFT_AIO_FSYNC(symbol)                                                           \
  extern "C" int DFT_WRAPPER(symbol)(int operation, aiocb* request) {                   \
    return probe_path<Row::symbol, Set::POSIX>(                                         \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); }, \
        [&] { return real<int(int, aiocb*)>(Row::symbol)(operation, request); },        \
        DFT_AFTER(moves_nothing()), N(operation));                                      \
  }
#define DFT_AIO_RETURN(symbol)                                                                     \
  extern "C" ssize_t DFT_WRAPPER(symbol)(aiocb * request) {                                        \
    return probe_path<Row::symbol, Set::POSIX>(                                                    \
        kMayBe, kMayBe, [&](bool& traced) { return file_of_request(request, traced); },            \
        [&] { return real<ssize_t(aiocb*)>(Row::symbol)(request); },                               \
        DFT_AFTER(returned(*request, ret)), K(offset, request->aio_offset),                        \
        K(read_len, returned(*request, ret).read), K(write_len, returned(*request, ret).written)); \
  }
#define DFT_LIO(symbol)                                                                        \
  extern "C" int DFT_WRAPPER(symbol)(int mode, aiocb* const list[], int nr, sigevent* event) { \
    return DFT_PROBE(POSIX, symbol, int, (int, aiocb* const*, int, sigevent*),                 \
                     (mode, list, nr, event), on_unnamed(), moves_nothing(), N(mode), N(nr));  \
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

// libaio's functions return the reason of a failure as a negative number.
extern "C" int DFT_WRAPPER(io_submit)(void* context, long nr, iocb** requests) {
  const auto find = [&](bool& traced) {
    File* file = nr > 0 ? file_of(static_cast<int>(requests[0]->aio_fildes)) : &g_nameless;
    traced = file->traced;
    return file;
  };
  const auto call = [&] {
    return real<int(void*, long, iocb**)>(Row::io_submit)(context, nr, requests);
  };
  if (watch(Set::POSIX) == nullptr) return call();
  std::uint64_t start = record::ticks();
  const int ret = call();
  const std::uint64_t end = record::ticks();
  dft::buffer::ThreadState* t = watch(Set::POSIX);
  bool traced = g_nameless.traced;
  File* file = ret > 0 ? find(traced) : nullptr;
  if (t == nullptr || !traced) return ret;
  record_call<Row::io_submit>(*t, file, -1, start, end, ret, field(Key::nr, nr));
  return ret;
}

namespace {

// What the completions that one call hands over came to, by file.
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

  // A program may have freed its requests, which the kernel has copied: they are read as the kernel
  // reads memory, without harm if it is gone.
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
std::atomic<std::uint32_t> g_ring_name{0};

void put_lengths(Note& note, const Collected& collected, const Collected::Of& one) {
  if (!collected.known) return;
  if (one.requests == 1)
    note.put(Key::offset, record::ArgType::kInt, static_cast<std::uint64_t>(one.offset));
  note.put(Key::read_len, record::ArgType::kInt, one.moved.read);
  note.put(Key::write_len, record::ArgType::kInt, one.moved.written);
}

// The call itself is recorded with the first file. Each further one has a record of its own behind
// it, without a duration, so that the call counts once.
template <Row row, class Call>
int collect(Call call, long min_nr, long nr, const void* events) {
  if (watch(Set::POSIX) == nullptr) return call();
  const std::uint64_t start = record::ticks();
  const int ret = call();
  const std::uint64_t end = record::ticks();
  dft::buffer::ThreadState* t = watch(Set::POSIX);
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
    Note note;
    const Collected::Of& one = collected.of[i];
    if (i < collected.files) put_file(*t, note, Key::fhash, *one.file, one.fd);
    if (i != 0) {
      if (details) put_lengths(note, collected, one);
      emit_as(g_event_name, "io_event", t, end, end, note);
      continue;
    }
    if (details) {
      put_field(*t, note, field(Key::min_nr, min_nr));
      put_field(*t, note, field(Key::nr, nr));
      if (i < collected.files) put_lengths(note, collected, one);
      put_field(*t, note, field(Key::ret, ret));
    }
    emit(t, index_of(row), start, end, note);
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

// ---- Calls made through syscall(). Only those whose number is wanted come here (tail_calls.cpp).

using SystemCall = long(long, long, long, long, long, long, long);

namespace {

long copied(int from, long to) {
  if (to >= 0 && to != from) copy_file_of(from, static_cast<int>(to));
  return to;
}

}  // namespace

extern "C" long DFT_WRAPPER(syscall_wanted)(long number, long a, long b, long c, long d, long e,
                                            long f) {
  const auto call = [&] { return real<SystemCall>(Row::syscall)(number, a, b, c, d, e, f); };
  const int fd = static_cast<int>(a);
  const auto* path = reinterpret_cast<const char*>(b);
  switch (number) {
    case SYS_read:
      return probe<Row::read, Set::POSIX>(on_fd(fd), call, DFT_AFTER(reads(ret)), K(count, c));
    case SYS_write:
      return probe<Row::write, Set::POSIX>(on_fd(fd), call, DFT_AFTER(writes(ret)), K(count, c));
    case SYS_pread64:
      return probe<Row::pread64, Set::POSIX>(on_fd(fd), call, DFT_AFTER(reads(ret)), K(count, c),
                                             K(offset, d));
    case SYS_pwrite64:
      return probe<Row::pwrite64, Set::POSIX>(on_fd(fd), call, DFT_AFTER(writes(ret)), K(count, c),
                                              K(offset, d));
    case SYS_readv:
      return probe<Row::readv, Set::POSIX>(on_fd(fd), call, DFT_AFTER(reads(ret)), K(iovcnt, c));
    case SYS_writev:
      return probe<Row::writev, Set::POSIX>(on_fd(fd), call, DFT_AFTER(writes(ret)), K(iovcnt, c));
    case SYS_lseek:
      return probe<Row::lseek, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()),
                                           K(offset, b), K(whence, c));
    case SYS_fsync:
      return probe<Row::fsync, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()));
    case SYS_getdents64:
      return probe<Row::getdents64, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()),
                                                K(count, c));
    case SYS_openat: {
      const OpenFlags open{static_cast<int>(c), static_cast<mode_t>(d)};
      return open_path<Row::openat, Set::POSIX>(fd, path, names_the_file(open.flags), call, kItself,
                                                K(dirfd, fd), K(flags, open.flags),
                                                DFT_AFTER(open.shown_mode()));
    }
    case SYS_openat2: {
      const auto* how = reinterpret_cast<const open_how*>(c);
      static constexpr open_how kUnread{};
      return open_path<Row::syscall, Set::POSIX>(fd, path, true, call, kItself, K(dirfd, fd),
                                                 K(flags, (ret >= 0 ? how : &kUnread)->flags),
                                                 K(mode, (ret >= 0 ? how : &kUnread)->mode),
                                                 K(resolve, (ret >= 0 ? how : &kUnread)->resolve));
    }
    case SYS_close:
      return close_call<Row::close, Set::POSIX>(fd, call);
    case SYS_close_range:
      if ((c & 4) == 0) forget_descriptors(static_cast<unsigned>(a), static_cast<unsigned>(b));
      return probe<Row::close_range, Set::POSIX>(on_unnamed(), call, DFT_AFTER(moves_nothing()),
                                                 K(first, a), K(last, b), K(flags, c));
    case SYS_dup:
      return copied(fd, probe<Row::dup, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()),
                                                    K(oldfd, a)));
    case SYS_dup3:
      return copied(fd, probe<Row::dup3, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()),
                                                     K(oldfd, a), K(newfd, b), K(flags, c)));
#ifdef SYS_dup2
    case SYS_dup2:
      return copied(fd, probe<Row::dup2, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()),
                                                     K(oldfd, a), K(newfd, b)));
#endif
    case SYS_fcntl: {
      const long made =
          probe<Row::fcntl, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()), K(cmd, b));
      return b == F_DUPFD || b == F_DUPFD_CLOEXEC ? copied(fd, made) : made;
    }
    case SYS_chdir: {
      if (watch(Set::POSIX) != nullptr) know_cwd();
      const long done = probe<Row::chdir, Set::POSIX>(on_path(reinterpret_cast<const char*>(a)),
                                                      call, DFT_AFTER(moves_nothing()));
      if (done == 0) forget_cwd();
      return done;
    }
    case SYS_fchdir: {
      const long done = probe<Row::fchdir, Set::POSIX>(on_fd(fd), call, DFT_AFTER(moves_nothing()));
      if (done == 0) forget_cwd();
      return done;
    }
#ifdef SYS_open
    case SYS_open:
    case SYS_creat: {
      const auto* name = reinterpret_cast<const char*>(a);
      const bool creates = number == SYS_creat;
      const OpenFlags open{creates ? O_CREAT | O_WRONLY | O_TRUNC : static_cast<int>(b),
                           static_cast<mode_t>(creates ? b : c)};
      return open_path<Row::open, Set::POSIX>(kCwd, name, names_the_file(open.flags), call, kItself,
                                              K(flags, open.flags), DFT_AFTER(open.shown_mode()));
    }
#endif
    case SYS_io_uring_setup: {
      dft::buffer::ThreadState* t = watch(Set::POSIX);
      const std::uint64_t start = record::ticks();
      const long made = call();
      if (t == nullptr) return made;
      Note note;
      put_field(*t, note, field(Key::count, a));
      put_field(*t, note, field(Key::ret, made));
      emit_as(g_ring_name, "io_uring_setup", t, start, record::ticks(), note);
      return made;
    }
    case SYS_seccomp:
      if (a != 0 || b != 0) enters_sandbox();
      return call();
    case SYS_setuid:
      return call_as(static_cast<unsigned>(a), call);
    case SYS_setreuid:
    case SYS_setresuid:
      return call_as(static_cast<unsigned>(b), call);
    case SYS_setgid:
    case SYS_setregid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_capset:
    case SYS_unshare:
    case SYS_setns:
      return call_alone(call);
    case SYS_exit_group:
      process_leaves();
      return call();
    default:
      return call();
  }
}
