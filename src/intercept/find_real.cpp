// Finds the next (real) definition of each intercepted function: the next interposer's, or libc's.
// On the thread that makes the first call, or when interception begins.
#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "intercept/elf_object.hpp"
#include "intercept/intercept.hpp"
#include "intercept/link_namespaces.hpp"
#include "intercept/wrapper_list.hpp"

// In the preload library; null if the program starts the tracer itself.
extern "C" const char dftracer_preload_here __attribute__((weak));

namespace dft::intercept {

constinit RowState g_row_state[kRows] = {};

bool is_preload() noexcept { return &dftracer_preload_here != nullptr; }

namespace {

// Whether the libc of these objects is the one that we use ourselves.
bool have_our_libc(const link_map* objects) noexcept {
  Object libc;
  return describe_libc(objects, libc) &&
         libc.function("gnu_get_libc_version") == reinterpret_cast<void*>(&::gnu_get_libc_version);
}

// The objects of our namespace in the loader's search order, from the list for debuggers. Not
// dl_iterate_phdr: a sanitizer may interpose it and not be initialized yet.
const link_map* own_objects() noexcept {
  for (const Space* space = first_space(); space != nullptr; space = next_space(space))
    if (have_our_libc(space->common.r_map)) return space->common.r_map;
  return first_space()->common.r_map;
}

bool is_preload_library(const Object& object) noexcept {
  return object.is_called("libdftracer_preload.so");
}

// Calls `look` for each object behind the preload library, if there is one, up to libc, until it
// returns true. These objects stay as long as the process, so no lock is needed. A preload library
// that was loaded by dlopen comes after libc.
template <class Look>
void search(Look look) noexcept {
  bool begun = !is_preload();
  Object object;
  for (const link_map* map = own_objects(); map != nullptr; map = map->l_next) {
    if (map->l_ld == _DYNAMIC || !describe_offers(*map, object)) continue;
    if ((begun || object.is_libc()) && (look(object) || object.is_libc())) return;
    begun = begun || is_preload_library(object);
  }
}

// A function of a library behind libc, possibly loaded with RTLD_LOCAL, as Python extensions bring
// libaio along. Objects there may be unloaded meanwhile: the loader is locked.
struct LateFunction {
  const char* symbol;
  void* found;
  const char* path;
  bool past_libc;
};

int look_for_late(dl_phdr_info* info, std::size_t, void* data) {
  auto& late = *static_cast<LateFunction*>(data);
  Object object;
  if (!describe(*info, object) || is_preload_library(object)) return 0;
  if (late.past_libc) {
    late.found = object.function(late.symbol);
    late.path = info->dlpi_name;
  }
  late.past_libc = late.past_libc || object.is_libc();
  return late.found != nullptr ? 1 : 0;
}

void* find_late(const char* symbol) noexcept {
  LateFunction late{symbol, nullptr, nullptr, false};
  ::dl_iterate_phdr(look_for_late, &late);
  if (late.found != nullptr) ::dlopen(late.path, RTLD_LAZY | RTLD_NOLOAD);  // keeps it loaded
  return late.found;
}

}  // namespace

// Not dlsym: it would clear the program's pending dlerror() state.
void* find_real(OwnRow row) noexcept {
  const SlowPath slow;
  const char* symbol = kWrappers[index_of(row)].symbol;
  void* found = nullptr;
  search([&](const Object& object) {
    found = object.function(symbol);
    return found != nullptr;
  });
  if (found == nullptr) found = find_late(symbol);
  g_row_state[index_of(row)].real.store(found, std::memory_order_relaxed);
  return found;
}

void find_all_real() noexcept {
  search([](const Object& object) {
    for (std::size_t row = 0; row < kRows; ++row) {
      std::atomic<void*>& real = g_row_state[row].real;
      if (real.load(std::memory_order_relaxed) != nullptr) continue;
      real.store(object.function(kWrappers[row].symbol), std::memory_order_relaxed);
    }
    return false;
  });
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
