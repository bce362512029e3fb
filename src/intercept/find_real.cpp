// Where calls go when we have seen them.
#include <dlfcn.h>

#include "intercept/intercept.hpp"
#include "intercept/name_spaces.hpp"
#include "intercept/object.hpp"
#include "intercept/wrappers.hpp"

// In the preload library. It is not there when the program itself has started the tracer.
extern "C" const char dftracer_preload_here __attribute__((weak));

namespace dft::intercept {

constinit RowState g_row_state[kRows] = {};

bool is_preload() noexcept { return &dftracer_preload_here != nullptr; }

namespace {

// The objects of the name space that we are in, in the order in which the loader searches them;
// what it tells debuggers. Nobody is called for it: dl_iterate_phdr may be a sanitizer's, which is
// about to begin itself. Those that were there when the program started are never taken away, and
// libc is one of them.
const link_map* own_objects() noexcept {
  for (const Space* space = first_space(); space != nullptr; space = next_space(space)) {
    for (const link_map* map = space->common.r_map; map != nullptr; map = map->l_next)
      if (map->l_ld == _DYNAMIC) return space->common.r_map;
  }
  return nullptr;
}

// Shows `look` one object after the other, from behind the preload library if there is one, until
// it says that it has seen enough: libc and other interposers before it, which stay as long as the
// process; then what was loaded later, and may have been for those who asked for it only, as
// extensions of Python bring libaio with them.
template <class Look>
void search(Look look) noexcept {
  bool begun = !is_preload();
  bool past_libc = false;
  Object object;
  for (const link_map* map = own_objects(); map != nullptr; map = map->l_next) {
    if (map->l_ld == _DYNAMIC || !describe_offers(*map, object)) continue;
    if (!begun) {
      begun = object.is_called("libdftracer_preload.so");
      continue;
    }
    if (look(object, past_libc ? map->l_name : "")) return;
    past_libc = past_libc || object.is_called("libc.so.6");
  }
}

}  // namespace

// Not by dlsym: it would free the text that the program has from dlerror(), or the error that it
// has yet to ask for.
void* find_real(OwnRow row) noexcept {
  const SlowPath slow;
  void* found = nullptr;
  const char* path = "";
  search([&](const Object& object, const char* at) {
    found = object.function(kWrappers[index_of(row)].symbol);
    path = at;
    return found != nullptr;
  });
  if (found != nullptr && path[0] != '\0') ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);  // it must stay
  g_row_state[index_of(row)].real.store(found, std::memory_order_relaxed);
  return found;
}

void find_all_real() noexcept {
  search([](const Object& object, const char*) {
    for (std::size_t row = 0; row < kRows; ++row) {
      std::atomic<void*>& real = g_row_state[row].real;
      if (real.load(std::memory_order_relaxed) != nullptr) continue;
      real.store(object.function(kWrappers[row].symbol), std::memory_order_relaxed);
    }
    return object.is_called("libc.so.6");
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
