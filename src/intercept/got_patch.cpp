#include "intercept/got_patch.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <bitset>

#include "intercept/dlmopen.hpp"
#include "intercept/elf_object.hpp"
#include "intercept/import_slots.hpp"
#include "intercept/intercept.hpp"
#include "intercept/library_layers.hpp"
#include "intercept/vfork.hpp"
#include "intercept/wrapper_list.hpp"

namespace dft::intercept {
namespace {

// Rows by the hash of their symbol: an object may import thousands.
constexpr std::size_t kSlots = 2048;
std::uint16_t g_rows[kSlots];  // row + 1
static_assert(kRows < kSlots / 2);

std::size_t slot_of(const char* symbol) {
  std::uint32_t h = 5381;
  for (; *symbol != '\0'; ++symbol) h = h * 33 + static_cast<unsigned char>(*symbol);
  return (h ^ h >> 11) % kSlots;
}

void index_rows() {
  if (g_rows[slot_of(kWrappers[0].symbol)] != 0) return;
  for (std::size_t i = 0; i < kRows; ++i) {
    std::size_t slot = slot_of(kWrappers[i].symbol);
    while (g_rows[slot] != 0) slot = (slot + 1) % kSlots;
    g_rows[slot] = static_cast<std::uint16_t>(i + 1);
  }
}

int find_row(const char* symbol) {
  for (std::size_t slot = slot_of(symbol); g_rows[slot] != 0; slot = (slot + 1) % kSlots) {
    const int row = g_rows[slot] - 1;
    if (std::strcmp(kWrappers[row].symbol, symbol) == 0) return row;
  }
  return -1;
}

// The number of an object's namespace: 0 is the program's own.
using SpaceNumber = unsigned;

// `real` is 0 if it has not been looked up yet.
Exchange ways_of(SpaceNumber space, std::size_t row) {
  if (space == 0) {
    return {reinterpret_cast<ElfW(Addr)>(g_row_state[row].real.load()),
            reinterpret_cast<ElfW(Addr)>(kWrappers[row].function)};
  }
  return {reinterpret_cast<ElfW(Addr)>(other_real(space, row)),
          reinterpret_cast<ElfW(Addr)>(other_entry(space, row))};
}

// What one look at all objects is to do, and what it finds.
struct PatchWalk {
  Direction direction;
  Which which;
  ElfW(Addr) own;
  ElfW(Addr) kernels;
  bool others_seen;
  std::bitset<kRows> unknown;  // imported, and the real function is not known
};

void walk(const Object& object, SpaceNumber space, PatchWalk& what) {
  each_import(object, [&](const char* name, ElfW(Addr) slot) {
    const int row = find_row(name);
    if (row < 0) return;
    const Exchange ways = ways_of(space, static_cast<std::size_t>(row));
    if (ways.real != 0) {
      exchange(object, slot, ways, what.direction);
    } else if (space == 0) {
      what.unknown.set(static_cast<std::size_t>(row));
    }
  });
}

void look_at(const Object& object, SpaceNumber space, PatchWalk& what) {
  if (what.own >= object.begin && what.own < object.end) return;
  if (space != 0 && object.is_called("libdftracer_core.so")) return;  // has its own state
  walk(object, space, what);
}

void look_at_others(PatchWalk& what) {
  meet_others();
  for (SpaceNumber space = 1; space <= kMostOthers; ++space) {
    for (const link_map* map = other_objects(space); map != nullptr; map = map->l_next) {
      Object object;
      if (describe(*map, object)) look_at(object, space, what);
    }
  }
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& what = *static_cast<PatchWalk*>(data);
  if (!what.others_seen) {  // while the loader is locked
    what.others_seen = true;
    look_at_others(what);
  }
  if (what.which == Which::kOthers) return 1;
  Object object;
  if (info->dlpi_addr == what.kernels && what.kernels != 0) return 0;
  if (describe(*info, object)) look_at(object, 0, what);
  return 0;
}

std::bitset<kRows> each_object(Direction direction, Which which) {
  index_rows();
  PatchWalk what{
      direction, which, reinterpret_cast<ElfW(Addr)>(&g_rows), ::getauxval(AT_SYSINFO_EHDR),
      false,     {}};
  ::dl_iterate_phdr(visit, &what);
  return what.unknown;
}

Lock g_lock;
bool g_patched = false;
std::atomic<Which> g_stale{Which::kNone};  // where a library may have been loaded unpatched

bool is_watching() {
  return g_watched[static_cast<std::size_t>(Category::POSIX)].load(std::memory_order_relaxed) ||
         g_watched[static_cast<std::size_t>(Category::STDIO)].load(std::memory_order_relaxed);
}

}  // namespace

// Unknown functions are looked up with no lock held: find_real() calls the loader, and another
// thread may be inside it, in a constructor that calls a wrapper.
void patch_objects(Which which) noexcept {
  if (which == Which::kOthers && !has_others()) return;
  for (bool again = true; again;) {
    std::bitset<kRows> unknown;
    {
      Locked locked(g_lock);
      unknown = each_object(Direction::kPatch, which);
      g_patched = true;
    }
    again = false;
    for (std::size_t row = 0; row < kRows; ++row)
      if (unknown[row] && find_real(static_cast<OwnRow>(row)) != nullptr) again = true;
  }
}

void restore_objects() noexcept {
  Locked locked(g_lock);
  if (g_patched) each_object(Direction::kRestore, Which::kAll);
  g_patched = false;
}

namespace {

bool may_follow() { return t_slow == 0 && is_watching() && !in_vfork_child(); }

// The loader needs its caller for a name without a directory, which it searches along the caller's
// RUNPATH, and for one with a `$` token.
bool needs_caller(const char* file) {
  return std::strchr(file, '/') == nullptr || std::strchr(file, '$') != nullptr;
}

}  // namespace

Which unpreloaded() noexcept { return is_preload() ? Which::kOthers : Which::kAll; }

void expect_library(Which which) noexcept {
  Which now = g_stale.load();
  while (now < which && !g_stale.compare_exchange_weak(now, which)) {
  }
}

// With the preload library, only objects that bind to their own libraries first (RTLD_DEEPBIND)
// escape it; of the others, only imports of library layers are patched.
bool can_follow_dlopen(const char* file, int mode) noexcept {
  if (!may_follow() || file == nullptr) return false;
  if (!needs_caller(file)) return true;
  expect_library_layers();
  if (!is_preload() || (mode & RTLD_DEEPBIND) != 0) expect_library(Which::kAll);
  return false;
}

bool can_follow_dlmopen(const char* file) noexcept {
  if (!may_follow() || file == nullptr) return false;
  if (!needs_caller(file)) return true;
  expect_library(unpreloaded());
  return false;
}

// A program looks up a library's functions by dlsym before it calls them.
void before_dlsym() noexcept {
  if (!may_follow()) return;
  patch_expected_layers();
  if (g_stale.load(std::memory_order_relaxed) == Which::kNone) return;
  SlowPath slow;
  patch_objects(g_stale.exchange(Which::kNone));
}

bool can_follow_dlsym(void* handle, const char* symbol) noexcept {
  return handle != RTLD_DEFAULT && handle != RTLD_NEXT && symbol != nullptr && may_follow() &&
         is_library_call(symbol);
}

void* followed_dlsym(void* handle, const char* symbol) {
  return wrapper_for(symbol, real<void*(void*, const char*)>(OwnRow::dlsym)(handle, symbol));
}

namespace {

void* followed(void* handle, Which which) {
  if (handle != nullptr) {
    SlowPath slow;
    patch_objects(which);
    patch_library_layers();
  }
  return handle;
}

}  // namespace

void* followed_dlopen(const char* file, int mode) {
  const bool escapes = !is_preload() || (mode & RTLD_DEEPBIND) != 0;
  return followed(real<void*(const char*, int)>(OwnRow::dlopen)(file, mode),
                  escapes ? Which::kAll : Which::kOthers);
}

void* followed_dlmopen(long space, const char* file, int mode) {
  return followed(real<void*(long, const char*, int)>(OwnRow::dlmopen)(space, file, mode),
                  unpreloaded());
}

}  // namespace dft::intercept
