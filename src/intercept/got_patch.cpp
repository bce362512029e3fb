#include "intercept/got_patch.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <bitset>

#include "intercept/dlmopen.hpp"
#include "intercept/elf_object.hpp"
#include "intercept/intercept.hpp"
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

#if defined(__x86_64__)
constexpr unsigned kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr unsigned kGlobal = R_X86_64_GLOB_DAT;
constexpr unsigned kPointer = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr unsigned kGlobal = R_AARCH64_GLOB_DAT;
constexpr unsigned kPointer = R_AARCH64_ABS64;
#else
#error "import tables of this architecture are not known"
#endif

// RAII: makes the page of a GOT slot that RELRO has protected writable.
class Writable {
 public:
  Writable(const Object& object, ElfW(Addr) slot) {
    if (slot < object.relro_begin || slot >= object.relro_end) return;
    page_ = slot / sys::page_size() * sys::page_size();
    open_ = sys::call(SYS_mprotect, page_, sys::page_size(), PROT_READ | PROT_WRITE) == 0;
    failed_ = !open_;
  }
  ~Writable() {
    if (open_) sys::call(SYS_mprotect, page_, sys::page_size(), PROT_READ);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  ElfW(Addr) page_ = 0;
  bool open_ = false;
  bool failed_ = false;
};

// The number of an object's namespace: 0 is the program's own.
using SpaceNumber = unsigned;

struct Ways {
  ElfW(Addr) real;  // 0: not looked up yet
  ElfW(Addr) wrapper;
};
Ways ways_of(SpaceNumber space, std::size_t row) {
  if (space == 0) {
    return {reinterpret_cast<ElfW(Addr)>(g_row_state[row].real.load()),
            reinterpret_cast<ElfW(Addr)>(kWrappers[row].function)};
  }
  return {reinterpret_cast<ElfW(Addr)>(other_real(space, row)),
          reinterpret_cast<ElfW(Addr)>(other_entry(space, row))};
}

void exchange(const Object& object, ElfW(Addr) slot, const Ways& ways, bool patching) {
  auto* place = reinterpret_cast<std::atomic<ElfW(Addr)>*>(slot);
  const ElfW(Addr) now = place->load(std::memory_order_relaxed);
  if (patching) {
    // Only a slot bound to the real function, or not yet bound. One bound to anything else belongs
    // to another interposer.
    const bool unbound = now >= object.begin && now < object.end;
    if (now != ways.real && !unbound) return;
  } else if (now != ways.wrapper) {
    return;
  }
  const Writable open(object, slot);
  if (!open.failed()) place->store(patching ? ways.wrapper : ways.real, std::memory_order_release);
}

// What one look at all objects is to do, and what it finds.
struct PatchWalk {
  bool patching;
  Which which;
  ElfW(Addr) own;
  ElfW(Addr) kernels;
  bool others_seen;
  std::bitset<kRows> unknown;  // imported, and the real function is not known
};

void walk(const Object& object, SpaceNumber space, PatchWalk& what) {
  for (int table = 0; table < 2; ++table) {
    for (std::size_t i = 0; object.tables[table] != nullptr && i < object.sizes[table]; ++i) {
      const ElfW(Rela) & entry = object.tables[table][i];
      const auto type = static_cast<unsigned>(ELF64_R_TYPE(entry.r_info));
      if (type != kJumpSlot && type != kGlobal && type != kPointer) continue;
      const ElfW(Sym) & symbol = object.symbols[ELF64_R_SYM(entry.r_info)];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0 || entry.r_addend != 0) continue;
      const int row = find_row(object.names + symbol.st_name);
      if (row < 0) continue;
      const Ways ways = ways_of(space, static_cast<std::size_t>(row));
      if (ways.real != 0) {
        exchange(object, object.base + entry.r_offset, ways, what.patching);
      } else if (space == 0) {
        what.unknown.set(static_cast<std::size_t>(row));
      }
    }
  }
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

std::bitset<kRows> each_object(bool patching, Which which) {
  index_rows();
  PatchWalk what{
      patching, which, reinterpret_cast<ElfW(Addr)>(&g_rows), ::getauxval(AT_SYSINFO_EHDR),
      false,    {}};
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
      unknown = each_object(true, which);
      g_patched = true;
    }
    again = false;
    for (std::size_t row = 0; row < kRows; ++row)
      if (unknown[row] && find_real(static_cast<OwnRow>(row)) != nullptr) again = true;
  }
}

void restore_objects() noexcept {
  Locked locked(g_lock);
  if (g_patched) each_object(false, Which::kAll);
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

// With the preload library, only objects that bind to their own libraries first
// (RTLD_DEEPBIND) escape it.
bool can_follow_dlopen(const char* file, int mode) noexcept {
  if (!may_follow()) return false;
  if (file == nullptr || (is_preload() && (mode & RTLD_DEEPBIND) == 0)) return false;
  if (!needs_caller(file)) return true;
  expect_library(Which::kAll);
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
  if (g_stale.load(std::memory_order_relaxed) == Which::kNone || !may_follow()) return;
  SlowPath slow;
  patch_objects(g_stale.exchange(Which::kNone));
}

namespace {

void* followed(void* handle, Which which) {
  if (handle != nullptr) {
    SlowPath slow;
    patch_objects(which);
  }
  return handle;
}

}  // namespace

void* followed_dlopen(const char* file, int mode) {
  return followed(real<void*(const char*, int)>(OwnRow::dlopen)(file, mode), Which::kAll);
}

void* followed_dlmopen(long space, const char* file, int mode) {
  return followed(real<void*(long, const char*, int)>(OwnRow::dlmopen)(space, file, mode),
                  unpreloaded());
}

}  // namespace dft::intercept
