// Wrappers written by hand: files mapped into memory. Memory of other kinds is not looked at.
#include <sys/mman.h>

#include "intercept/mappings.hpp"
#include "intercept/page_faults.hpp"
#include "intercept/rings.hpp"
#include "intercept/wrap_macros.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp

#define DFT_MMAP(symbol)                                                                     \
  extern "C" void* DFT_WRAPPER(symbol)(void* at, size_t length, int prot, int flags, int fd, \
                                       off_t offset) {                                       \
    using Function = void*(void*, size_t, int, int, int, off_t);                             \
    const auto call = [&] {                                                                  \
      return real<Function>(Row::symbol)(at, length, prot, flags, fd, offset);               \
    };                                                                                       \
    dft::buffer::ThreadState* t =                                                            \
        fd < 0 || (flags & MAP_ANONYMOUS) != 0 ? nullptr : watch(Category::POSIX);           \
    if (t == nullptr) return call();                                                         \
    File* file = file_of(fd);                                                                \
    /* The requests of an io_uring may go unseen: its mapping is always recorded. */         \
    void* result = probe_known<Row::symbol, Category::POSIX>(                                \
        *t, file, file->traced || is_ring(file), fd, call, DFT_AFTER(moves_nothing()),       \
        DFT_NUM(length), DFT_NUM(prot), DFT_NUM(flags), DFT_NUM(offset));                    \
    if (result != MAP_FAILED && watch(Category::POSIX) != nullptr && file->traced) {         \
      remember_mapping(result, length, file, static_cast<std::uint64_t>(offset));            \
      watch_mapping();                                                                       \
    }                                                                                        \
    if (result != MAP_FAILED && is_ring(file))                                               \
      ring_was_mapped(fd, static_cast<std::uint64_t>(offset), result, length);               \
    return result;                                                                           \
  }
DFT_MMAP(mmap)
DFT_MMAP(mmap64)

namespace {

template <Row row, class Call, class... F>
[[gnu::always_inline]] inline auto mapped_call(const void* at, Call call, F... fields) {
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  File* file = t != nullptr ? mapped_file(at) : nullptr;
  if (file == nullptr) return call();
  return probe_known<row, Category::POSIX>(*t, file, true, -1, call, DFT_AFTER(moves_nothing()),
                                           fields...);
}

}  // namespace

extern "C" int DFT_WRAPPER(munmap)(void* at, size_t length) {
  const auto call = [&] { return real<int(void*, size_t)>(Row::munmap)(at, length); };
  memory_goes(at, length);
  if (watch(Category::POSIX) != nullptr) before_unmap(at, length);
  const int result = mapped_call<Row::munmap>(at, call, DFT_NUM(length));
  if (result == 0 && watch(Category::POSIX) != nullptr) forget_mapping(at, length);
  return result;
}
extern "C" void* DFT_WRAPPER(mremap)(void* at, size_t old_size, size_t new_size, int flags,
                                     void* to) {
  const auto call = [&] {
    return real<void*(void*, size_t, size_t, int, void*)>(Row::mremap)(at, old_size, new_size,
                                                                       flags, to);
  };
  MappedRange before;
  const bool is_file = watch(Category::POSIX) != nullptr && mapping_at(at, before);
  void* result =
      mapped_call<Row::mremap>(at, call, DFT_NUM(old_size), DFT_NUM(new_size), DFT_NUM(flags));
  if (is_file && result != MAP_FAILED) {
    forget_mapping(at, old_size);
    const std::uintptr_t skipped = reinterpret_cast<std::uintptr_t>(at) - before.begin;
    remember_mapping(result, new_size, before.file, before.offset + skipped);
  }
  return result;
}
extern "C" int DFT_WRAPPER(msync)(void* at, size_t length, int flags) {
  const auto call = [&] { return real<int(void*, size_t, int)>(Row::msync)(at, length, flags); };
  return mapped_call<Row::msync>(at, call, DFT_NUM(length), DFT_NUM(flags));
}
extern "C" int DFT_WRAPPER(madvise)(void* at, size_t length, int advice) {
  const auto call = [&] { return real<int(void*, size_t, int)>(Row::madvise)(at, length, advice); };
  return mapped_call<Row::madvise>(at, call, DFT_NUM(length), DFT_NUM(advice));
}
extern "C" int DFT_WRAPPER(posix_madvise)(void* at, size_t length, int advice) {
  const auto call = [&] {
    return real<int(void*, size_t, int)>(Row::posix_madvise)(at, length, advice);
  };
  return mapped_call<Row::posix_madvise>(at, call, DFT_NUM(length), DFT_NUM(advice));
}
