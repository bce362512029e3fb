// Wrappers written by hand: calls that change what a descriptor means, or where paths begin.
#include "intercept/wrap_open.hpp"
#include "session/session.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp

// The third argument is passed on whether the caller gave one or not: it is in a register.
#define DFT_OPEN(symbol)                                                                     \
  extern "C" int DFT_WRAPPER(symbol)(const char* path, int flags, mode_t mode) {             \
    const OpenFlags open{flags, mode};                                                       \
    return open_path<Row::symbol, Category::POSIX>(                                          \
        kCwd, path, names_the_file(flags),                                                   \
        [&] { return real<int(const char*, int, mode_t)>(Row::symbol)(path, flags, mode); }, \
        kItself, DFT_NUM(flags), DFT_AFTER(open.shown_mode()));                              \
  }
#define DFT_OPENAT(symbol)                                                                        \
  extern "C" int DFT_WRAPPER(symbol)(int dirfd, const char* path, int flags, mode_t mode) {       \
    const OpenFlags open{flags, mode};                                                            \
    return open_path<Row::symbol, Category::POSIX>(                                               \
        dirfd, path, names_the_file(flags),                                                       \
        [&] {                                                                                     \
          return real<int(int, const char*, int, mode_t)>(Row::symbol)(dirfd, path, flags, mode); \
        },                                                                                        \
        kItself, DFT_NUM(dirfd), DFT_NUM(flags), DFT_AFTER(open.shown_mode()));                   \
  }
#define DFT_CREAT(symbol)                                                                          \
  extern "C" int DFT_WRAPPER(symbol)(const char* path, mode_t mode) {                              \
    return open_path<Row::symbol, Category::POSIX>(                                                \
        kCwd, path, true, [&] { return real<int(const char*, mode_t)>(Row::symbol)(path, mode); }, \
        kItself, DFT_NUM(mode));                                                                   \
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

// Once the call has succeeded, the template holds the chosen name.
#define DFT_TEMPORARY(symbol, params, args, ...)                              \
  extern "C" int DFT_WRAPPER(symbol) params {                                 \
    return open_path<Row::symbol, Category::POSIX>(                           \
        kCwd, path, true, [&] { return real<int params>(Row::symbol) args; }, \
        kItself __VA_OPT__(, ) __VA_ARGS__);                                  \
  }
DFT_TEMPORARY(mkstemp, (char* path), (path))
DFT_TEMPORARY(mkstemp64, (char* path), (path))
DFT_TEMPORARY(mkostemp, (char* path, int flags), (path, flags), DFT_NUM(flags))
DFT_TEMPORARY(mkostemp64, (char* path, int flags), (path, flags), DFT_NUM(flags))
DFT_TEMPORARY(mkstemps, (char* path, int suffixlen), (path, suffixlen), DFT_NUM(suffixlen))
DFT_TEMPORARY(mkstemps64, (char* path, int suffixlen), (path, suffixlen), DFT_NUM(suffixlen))
DFT_TEMPORARY(mkostemps, (char* path, int suffixlen, int flags), (path, suffixlen, flags),
              DFT_NUM(suffixlen), DFT_NUM(flags))
DFT_TEMPORARY(mkostemps64, (char* path, int suffixlen, int flags), (path, suffixlen, flags),
              DFT_NUM(suffixlen), DFT_NUM(flags))

// Descriptors whose names only the kernel knows: they are looked up when they are first used.
#define DFT_UNNAMED(symbol, params, args, fd, ...)                               \
  extern "C" int DFT_WRAPPER(symbol) params {                                    \
    const int result = DFT_PROBE(POSIX, symbol, int, params, args, on_unnamed(), \
                                 moves_nothing() __VA_OPT__(, ) __VA_ARGS__);    \
    if (result >= 0) set_file_of(fd, nullptr);                                   \
    return result;                                                               \
  }
DFT_UNNAMED(memfd_create, (const char* name, unsigned flags), (name, flags), result,
            DFT_STR(name, given(ret, name)), DFT_NUM(flags))
DFT_UNNAMED(shm_open, (const char* name, int flags, mode_t mode), (name, flags, mode), result,
            DFT_STR(name, given(ret, name)), DFT_NUM(flags), DFT_NUM(mode))
DFT_UNNAMED(shm_unlink, (const char* name), (name), -1, DFT_STR(name, given(ret, name)))
DFT_UNNAMED(pipe, (int* fds), (fds), (set_file_of(fds[1], nullptr), fds[0]))
DFT_UNNAMED(__pipe, (int* fds), (fds), (set_file_of(fds[1], nullptr), fds[0]))
DFT_UNNAMED(pipe2, (int* fds, int flags), (fds, flags), (set_file_of(fds[1], nullptr), fds[0]),
            DFT_NUM(flags))

// ---- Closing. A descriptor's file is forgotten before its number is free for reuse, and also
// while the category is off.

extern "C" int DFT_WRAPPER(close)(int fd) {
  return close_call<Row::close, Category::POSIX>(fd,
                                                 [&] { return real<int(int)>(Row::close)(fd); });
}
extern "C" int DFT_WRAPPER(__close)(int fd) {
  return close_call<Row::__close, Category::POSIX>(
      fd, [&] { return real<int(int)>(Row::__close)(fd); });
}
#define DFT_FCLOSE(symbol)                                                                    \
  extern "C" int DFT_WRAPPER(symbol)(FILE * stream) {                                         \
    const int fd = descriptor_of(stream);                                                     \
    if (stream == stderr && watch(Category::STDIO) != nullptr) dft::session::stderr_closes(); \
    return close_call<Row::symbol, Category::STDIO>(                                          \
        fd, [&] { return real<int(FILE*)>(Row::symbol)(stream); });                           \
  }
DFT_FCLOSE(fclose)
DFT_FCLOSE(_IO_fclose)
extern "C" int DFT_WRAPPER(pclose)(FILE* stream) {
  const int fd = descriptor_of(stream);
  return close_call<Row::pclose, Category::STDIO>(
      fd, [&] { return real<int(FILE*)>(Row::pclose)(stream); });
}
extern "C" int DFT_WRAPPER(closedir)(DIR* stream) {
  const int fd = descriptor_of(stream);
  return close_call<Row::closedir, Category::POSIX>(
      fd, [&] { return real<int(DIR*)>(Row::closedir)(stream); });
}
extern "C" int DFT_WRAPPER(close_range)(unsigned first, unsigned last, int flags) {
  constexpr int kOnlyMark = 4;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyMark) == 0) forget_descriptors(first, last);
  return DFT_PROBE(POSIX, close_range, int, (unsigned, unsigned, int), (first, last, flags),
                   on_unnamed(), moves_nothing(), DFT_NUM(first), DFT_NUM(last), DFT_NUM(flags));
}
extern "C" void DFT_WRAPPER(closefrom)(int first) {
  forget_descriptors(first > 0 ? static_cast<unsigned>(first) : 0, ~0u);
  return DFT_PROBE(POSIX, closefrom, void, (int), (first), on_unnamed(), moves_nothing(),
                   DFT_NUM(first));
}

// ---- Copies

extern "C" int DFT_WRAPPER(dup)(int oldfd) {
  const int result =
      DFT_PROBE(POSIX, dup, int, (int), (oldfd), on_fd(oldfd), moves_nothing(), DFT_NUM(oldfd));
  if (result >= 0) copy_file_of(oldfd, result);
  return result;
}
#define DFT_DUP2(symbol)                                                                       \
  extern "C" int DFT_WRAPPER(symbol)(int oldfd, int newfd) {                                   \
    const int result = DFT_PROBE(POSIX, symbol, int, (int, int), (oldfd, newfd), on_fd(oldfd), \
                                 moves_nothing(), DFT_NUM(oldfd), DFT_NUM(newfd));             \
    if (result >= 0 && oldfd != newfd) copy_file_of(oldfd, newfd);                             \
    return result;                                                                             \
  }
DFT_DUP2(dup2)
DFT_DUP2(__dup2)
extern "C" int DFT_WRAPPER(dup3)(int oldfd, int newfd, int flags) {
  const int result =
      DFT_PROBE(POSIX, dup3, int, (int, int, int), (oldfd, newfd, flags), on_fd(oldfd),
                moves_nothing(), DFT_NUM(oldfd), DFT_NUM(newfd), DFT_NUM(flags));
  if (result >= 0) copy_file_of(oldfd, newfd);
  return result;
}
#define DFT_FCNTL(symbol)                                                                         \
  extern "C" int DFT_WRAPPER(symbol)(int fd, int cmd, long arg) {                                 \
    const int result = DFT_PROBE(POSIX, symbol, int, (int, int, long), (fd, cmd, arg), on_fd(fd), \
                                 moves_nothing(), DFT_NUM(cmd));                                  \
    if (result >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)) copy_file_of(fd, result);      \
    return result;                                                                                \
  }
DFT_FCNTL(fcntl)
DFT_FCNTL(fcntl64)
DFT_FCNTL(__fcntl)

// ---- Directories

extern "C" DIR* DFT_WRAPPER(opendir)(const char* path) {
  return open_path<Row::opendir, Category::POSIX>(
      kCwd, path, true, [&] { return real<DIR*(const char*)>(Row::opendir)(path); }, kOfDirectory);
}
// The path is relative to the directory that was current before the call.
extern "C" int DFT_WRAPPER(chdir)(const char* path) {
  if (watch(Category::POSIX) != nullptr) know_cwd();
  const int result =
      DFT_PROBE(POSIX, chdir, int, (const char*), (path), on_path(path), moves_nothing());
  if (result == 0) forget_cwd();
  return result;
}
extern "C" int DFT_WRAPPER(chroot)(const char* path) {
  if (watch(Category::POSIX) != nullptr) know_cwd();
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
    return open_path<Row::symbol, Category::STDIO>(                                                \
        kCwd, path, true,                                                                          \
        [&] { return real<FILE*(const char*, const char*)>(Row::symbol)(path, mode); }, kOfStream, \
        DFT_STR(mode, mode));                                                                      \
  }
DFT_FOPEN(fopen)
DFT_FOPEN(fopen64)
DFT_FOPEN(_IO_fopen)

// Without a path, the same file is reopened in another mode.
#define DFT_FREOPEN(symbol)                                                                        \
  extern "C" FILE* DFT_WRAPPER(symbol)(const char* path, const char* mode, FILE* stream) {         \
    const auto call = [&] {                                                                        \
      return real<FILE*(const char*, const char*, FILE*)>(Row::symbol)(path, mode, stream);        \
    };                                                                                             \
    if (path == nullptr) {                                                                         \
      return probe<Row::symbol, Category::STDIO>(on_stream(stream), call,                          \
                                                 DFT_AFTER(moves_nothing()), DFT_STR(mode, mode)); \
    }                                                                                              \
    set_file_of(descriptor_of(stream), nullptr);                                                   \
    return open_path<Row::symbol, Category::STDIO>(kCwd, path, true, call, kOfStream,              \
                                                   DFT_STR(mode, mode));                           \
  }
DFT_FREOPEN(freopen)
DFT_FREOPEN(freopen64)
