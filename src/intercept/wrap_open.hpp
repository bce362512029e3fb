// Shared by the wrappers of libc's functions and those of the same calls made through syscall():
// opening a path and closing a descriptor, which change what a descriptor means.
#pragma once
#include <fcntl.h>

#include "intercept/rings.hpp"
#include "intercept/wrap_macros.hpp"

namespace dft::intercept {
namespace {

struct OpenFlags {
  int flags;
  mode_t mode;
  [[nodiscard]] OptionalArg shown_mode() const {
    return {Key::mode, (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE, mode};
  }
};

inline bool goes_up(const char* path) {
  const char* at = std::strstr(path, "../");
  return at != nullptr && (at == path || at[-1] == '/');
}

// A call that opens a path. The descriptor is known from then on, traced or not.
template <Row row, Category category, class Call, class To, class... F>
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
      // Text alone does not tell where ".." leads after a symbolic link.
      found = discover(opened);
    } else {
      found = may_be_traced(path) ? file_at(directory, path) : &g_elsewhere;
    }
    traced = found->traced;
    return found;
  };
  const auto result =
      probe_path<row, category>([path] { return kernel_reads(path); }, [] { return true; }, find,
                                run, DFT_AFTER(moves_nothing()), fields...);
  const int fd = descriptor(result);
  if (fd >= 0) set_file_of(fd, names_the_file ? found : nullptr);
  return result;
}

constexpr auto kItself = [](auto fd) { return static_cast<int>(fd); };
constexpr auto kOfStream = [](FILE* stream) { return descriptor_of(stream); };
constexpr auto kOfDirectory = [](DIR* stream) { return descriptor_of(stream); };

inline bool names_the_file(int flags) { return (flags & O_TMPFILE) != O_TMPFILE; }

template <Row row, Category category, class Call>
[[gnu::always_inline]] inline auto close_call(int fd, Call call) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) {
    set_file_of(fd, nullptr);
    return call();
  }
  File* file = take_file_of(fd);
  if (is_ring(file)) [[unlikely]]
    ring_closes(fd);
  return probe_known<row, category>(*t, file, file->traced, fd, call, DFT_AFTER(moves_nothing()));
}

}  // namespace
}  // namespace dft::intercept
