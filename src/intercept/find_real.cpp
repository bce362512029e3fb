// Where calls go when we have seen them.
#include <dlfcn.h>
#include <link.h>

#include "intercept/intercept.hpp"
#include "intercept/patch.hpp"
#include "intercept/wrappers.hpp"

// The preload library's: the next function of that name, as seen from there. It is not there when
// the program itself has started the tracer.
extern "C" void* dftracer_preload_next(const char* name) __attribute__((weak));

namespace dft::intercept {

constinit RowState g_row_state[kRows] = {};

bool is_preload() noexcept { return dftracer_preload_next != nullptr; }

namespace {

// What the program's own calls are bound to. A program at a fixed address that takes a function's
// address has a name for it as well, which leads back to its own import table.
void* find_definition(const char* symbol) {
  void* found = ::dlsym(RTLD_DEFAULT, symbol);
  if (found == nullptr || !is_import_of_program(symbol, found)) return found;
  static void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return libc != nullptr ? ::dlsym(libc, symbol) : found;
}

// The paths of all loaded objects, one after the other.
struct Loaded {
  static constexpr std::size_t kRoom = std::size_t{1} << 20;
  std::size_t used;
  char text[kRoom];
};

int add_path(dl_phdr_info* object, std::size_t, void* data) {
  auto& loaded = *static_cast<Loaded*>(data);
  const std::size_t size = std::strlen(object->dlpi_name) + 1;
  if (size == 1 || size > sizeof loaded.text - loaded.used) return 0;
  std::memcpy(loaded.text + loaded.used, object->dlpi_name, size);
  loaded.used += size;
  return 0;
}

void* find_in(const char* path, const char* symbol, const void* but_not_in) {
  void* handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = ::dlsym(handle, symbol);
  Dl_info where{};
  if (found != nullptr && ::dladdr(found, &where) != 0 && where.dli_fbase != but_not_in)
    return found;  // and the library stays
  ::dlclose(handle);
  return nullptr;
}

// A function of a library that was loaded for those who asked for it and nobody else, as extensions
// of Python bring libaio with them.
void* find_in_private(const char* symbol) {
  auto* loaded = static_cast<Loaded*>(sys::map_private(sizeof(Loaded)));
  if (loaded == nullptr) return nullptr;
  ::dl_iterate_phdr(add_path, loaded);
  Dl_info preload{};
  if (is_preload()) ::dladdr(reinterpret_cast<const void*>(dftracer_preload_next), &preload);
  void* found = nullptr;
  for (std::size_t at = 0; at < loaded->used && found == nullptr;
       at += std::strlen(loaded->text + at) + 1)
    found = find_in(loaded->text + at, symbol, preload.dli_fbase);
  sys::unmap(loaded, sizeof(Loaded));
  return found;
}

void* keep(OwnRow row, void* found) {
  const std::size_t index = index_of(row);
  if (found == reinterpret_cast<void*>(kWrappers[index].function)) found = nullptr;
  if (found == nullptr) ::dlerror();  // no news for the program
  g_row_state[index].real.store(found, std::memory_order_relaxed);
  return found;
}

void* find_in_public(const char* symbol) {
  return is_preload() ? dftracer_preload_next(symbol) : find_definition(symbol);
}

}  // namespace

void look_up(OwnRow row) noexcept {
  const SlowPath slow;
  keep(row, find_in_public(kWrappers[index_of(row)].symbol));
}

void* find_real(OwnRow row) noexcept {
  const char* symbol = kWrappers[index_of(row)].symbol;
  const SlowPath slow;
  void* found = find_in_public(symbol);
  return keep(row, found != nullptr ? found : find_in_private(symbol));
}

long missing() noexcept {
  errno = ENOSYS;
  return -1;
}
void* missing_pointer() noexcept {
  errno = ENOSYS;
  return nullptr;
}

}  // namespace dft::intercept
