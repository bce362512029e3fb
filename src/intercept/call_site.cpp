#include "intercept/call_site.hpp"

#include <elf.h>
#include <link.h>

#include <charconv>
#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/span.hpp"
#include "format/hash.hpp"
#include "intercept/elf_object.hpp"

namespace dft::intercept {

DFT_HOT constinit std::atomic<bool> g_sites{false};
DFT_HOT constinit std::atomic<const Python*> g_python{nullptr};
constinit std::atomic<Site*> g_native_sites[kNativeSlots] = {};

namespace {

// Places in Python code, found by a hash of what identifies them, in a few slots that follow.
constexpr std::size_t kPythonSlots = 16384;
constexpr std::size_t kNearby = 8;
constexpr std::size_t kMostSites = 12000;
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
constexpr std::size_t kArena = std::size_t{64} << 10;
constexpr std::size_t kLongestText = 1536;
constexpr std::size_t kLongestPath = 512;

constinit std::atomic<Site*> g_python_sites[kPythonSlots] = {};
constinit std::atomic<bool> g_full{false};  // no further places are told apart
Lock g_lock;                                // of all below
std::size_t g_count = 0;
std::size_t g_kept = 0;
char* g_arena = nullptr;
std::size_t g_arena_left = 0;
char g_text[kLongestText];
char g_path[kLongestPath];
Python g_found;                 // published by g_python
bool g_unusable = false;        // an interpreter whose structures are not known
std::uint64_t g_looked_at = 0;  // number of objects loaded when an interpreter was last looked for

Site* allocate(std::size_t text) {
  const std::size_t size = (sizeof(Site) + text + 15) / 16 * 16;
  if (g_count >= kMostSites || g_kept + size > kMostBytes) {
    g_full.store(true);
    return nullptr;
  }
  if (g_arena_left < size) {
    auto* memory = static_cast<char*>(sys::map_private(kArena));
    if (memory == nullptr) return nullptr;
    g_arena = memory;
    g_arena_left = kArena;
  }
  auto* site = reinterpret_cast<Site*>(g_arena);
  g_arena += size;
  g_arena_left -= size;
  g_kept += size;
  ++g_count;
  return site;
}

// An empty slot, or the first: two threads that make a site at once make it twice, which costs
// nothing but memory.
template <std::size_t kSlots>
std::atomic<Site*>& free_slot(std::atomic<Site*> (&table)[kSlots], std::size_t slot) {
  for (std::size_t i = 0; i < kNearby; ++i) {
    std::atomic<Site*>& candidate = table[(slot + i) % kSlots];
    if (candidate.load(std::memory_order_relaxed) == nullptr) return candidate;
  }
  return table[slot];
}

// With the text in g_text.
Site* make_site(std::size_t length, const void* caller) {
  Site* site = allocate(length);
  if (site == nullptr) return nullptr;
  site->announced.store(0, std::memory_order_relaxed);
  site->hash = length != 0 ? format::hash16({g_text, length}) : 0;
  site->caller = caller;
  site->place = {};
  site->code = 0;
  site->callee = 0;
  site->length = static_cast<std::uint32_t>(length);
  std::memcpy(site->text, g_text, length);
  return site;
}

// ---- Modules

struct Module {
  std::uintptr_t address;  // what is looked for
  std::uintptr_t base = 0;
  const char* path = nullptr;
  std::uint64_t build = 0;  // the first bytes of its build id; 0: it has none
  bool ours = false;        // of the tracer itself
  // An interpreter among the objects.
  bool looks_for_python = false;
  std::uint64_t loads = 0;
  Python python{};
};

void read_build_id(const char* note, std::size_t size, Module& module) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note, sizeof head);
    const std::size_t name = (head.n_namesz + 3u) & ~std::size_t{3};
    const std::size_t text = (head.n_descsz + 3u) & ~std::size_t{3};
    if (size < sizeof head + name + text) return;
    const char* value = note + sizeof head + name;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && head.n_descsz >= 8 &&
        std::memcmp(note + sizeof head, "GNU", 4) == 0) {
      std::memcpy(&module.build, value, sizeof module.build);
      module.build = __builtin_bswap64(module.build);
      return;
    }
    note += sizeof head + name + text;
    size -= sizeof head + name + text;
  }
}

bool holds(const dl_phdr_info& info, std::uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && address - (info.dlpi_addr + part.p_vaddr) < part.p_memsz)
      return true;
  }
  return false;
}

void look_for_python(const dl_phdr_info& info, Module& module) {
  Object object;
  if (module.python.layout != nullptr || !describe(info, object)) return;
  void* this_thread = object.function("PyGILState_GetThisThreadState");
  void* version = object.function("Py_GetVersion");
  if (this_thread == nullptr || version == nullptr) return;
  Python& python = module.python;
  python.layout = layout_of(reinterpret_cast<const char* (*)()>(version)());
  python.this_thread = reinterpret_cast<void* (*)()>(this_thread);
  void* is_finalizing = object.function("Py_IsFinalizing");
  if (is_finalizing == nullptr) is_finalizing = object.function("_Py_IsFinalizing");  // before 3.13
  python.is_finalizing = reinterpret_cast<int (*)()>(is_finalizing);
  python.code_type = object.variable("PyCode_Type");
  python.text_type = object.variable("PyUnicode_Type");
  python.begin = object.begin;
  python.end = object.end;
  if (python.layout == nullptr || is_finalizing == nullptr || python.code_type == nullptr ||
      python.text_type == nullptr) {
    g_unusable = true;
  }
}

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto& module = *static_cast<Module*>(data);
  module.loads = info->dlpi_adds;
  if (module.looks_for_python && info->dlpi_adds != g_looked_at) look_for_python(*info, module);
  if (module.path != nullptr || !holds(*info, module.address)) return 0;
  module.base = info->dlpi_addr;
  module.path = info->dlpi_name;
  module.ours = holds(*info, reinterpret_cast<std::uintptr_t>(&look_at));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    if (part.p_type == PT_NOTE && module.build == 0)
      read_build_id(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr), part.p_memsz,
                    module);
  }
  return 0;
}

std::string_view path_of(const Module& module) {
  if (module.path[0] != '\0') return module.path;
  const long n = sys::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", g_path, sizeof g_path);
  return {g_path, n > 0 ? static_cast<std::size_t>(n) : 0};
}

// "path+0x1234 [build id]", appended to g_text. Its new length; the old one if nothing is known.
std::size_t describe_native(const Module& module, std::size_t length) {
  if (module.path == nullptr || module.ours) return length;
  std::string_view path = path_of(module);
  constexpr std::size_t kNumbers = 64;
  if (path.empty() || path.size() > kLongestText - length - kNumbers) return length;
  char* p = g_text + length;
  const auto put = [&p](std::string_view text) {
    std::memcpy(p, text.data(), text.size());
    p += text.size();
  };
  if (length != 0) put(" @ ");
  put(path);
  put("+0x");
  p = std::to_chars(p, p + 20, module.address - module.base, 16).ptr;
  if (module.build != 0) {
    put(" [");
    p = format::write_hex16(p, module.build);
    put("]");
  }
  return static_cast<std::size_t>(p - g_text);
}

Module module_of(const void* caller) {
  Module module{};
  // The call itself: its return address may be the next function's.
  module.address = reinterpret_cast<std::uintptr_t>(caller) - 1;
  module.looks_for_python = g_python.load() == nullptr && !g_unusable;
  ::dl_iterate_phdr(look_at, &module);
  if (!module.looks_for_python) return module;
  g_looked_at = module.loads;
  if (module.python.layout != nullptr && !g_unusable) g_found = module.python;
  return module;
}

// ---- Python

// The interpreter is used from the first call on that comes from one of its frames. True if that is
// still to come.
bool awaits_python() {
  if (g_found.layout == nullptr || g_python.load() != nullptr || g_unusable) return false;
  const Fit fit = check_layout(g_found);
  if (fit == Fit::kFits) g_python.store(&g_found, std::memory_order_release);
  g_unusable = fit == Fit::kFitsNot;
  return fit == Fit::kNoFrame;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0xa0761d6478bd642fu) * (b | 1);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::size_t python_slot(const PythonPlace& place, const void* caller) {
  const std::uint64_t code = reinterpret_cast<std::uintptr_t>(place.code);
  const std::uint64_t callee = reinterpret_cast<std::uintptr_t>(place.callee);
  const std::uint64_t native = reinterpret_cast<std::uintptr_t>(caller);
  return mix(code + place.at * 0x9e3779b97f4a7c15u, callee ^ native << 7 ^ 0xe7037ed1a0b428dbu) %
         kPythonSlots;
}

// Whether the code objects at these addresses are those that the site was made from.
bool is_current(const Site& site, const PythonLayout& layout) {
  return site.code == identity_of(layout, site.place.code) &&
         (site.place.callee == nullptr || site.callee == identity_of(layout, site.place.callee));
}

bool is_at(const Site& site, const PythonPlace& place, const void* caller) {
  return site.place.code == place.code && site.place.at == place.at &&
         site.place.callee == place.callee && site.caller == caller;
}

// The thread's last place: loops make the same call again and again.
struct LastSite {
  Site* site;
  FrameTrail trail;
};
thread_local constinit LastSite t_last __attribute__((tls_model("initial-exec"))) = {};

[[gnu::noinline, gnu::cold]] Site* new_python_site(const Python& python, const PythonPlace& place,
                                                   const void* caller, std::size_t slot) {
  SlowPath slow;
  Locked locked(g_lock);
  std::size_t length = describe(python, place, g_text, sizeof g_text);
  if (caller != nullptr) length = describe_native(module_of(caller), length);
  Site* site = make_site(length, caller);
  if (site == nullptr) return nullptr;
  site->place = place;
  site->code = identity_of(*python.layout, place.code);
  if (place.callee != nullptr) site->callee = identity_of(*python.layout, place.callee);
  free_slot(g_python_sites, slot).store(site, std::memory_order_release);
  return site;
}

[[gnu::noinline, gnu::cold]] Site* new_native_site(const void* caller, std::size_t slot) noexcept {
  {
    SlowPath slow;
    Locked locked(g_lock);
    const bool is_native = g_python.load() != nullptr;  // looked there before
    const Module module = module_of(caller);
    const bool awaited =
        awaits_python() && module.address >= g_found.begin && module.address < g_found.end;
    if (awaited) return nullptr;
    if (is_native || g_python.load() == nullptr) {
      const std::size_t length = describe_native(module, 0);
      Site* site = make_site(length, caller);
      if (site != nullptr) free_slot(g_native_sites, slot).store(site, std::memory_order_release);
      return site;
    }
  }
  return python_site(*g_python.load(), caller);
}

// From another place than the thread's last call. Apart, so that the path of loops needs few registers.
[[gnu::noinline]] Site* other_python_site(const Python& python, const char* frame,
                                          const void* caller, const void* native) noexcept {
  PythonPlace place;
  FrameTrail trail;
  if (!find_place(python, frame, place, trail)) return native_site(caller);
  const std::size_t slot = python_slot(place, native);
  Site* found = nullptr;
  for (std::size_t i = 0; i < kNearby && found == nullptr; ++i) {
    Site* site = g_python_sites[(slot + i) % kPythonSlots].load(std::memory_order_acquire);
    if (site == nullptr) break;
    if (is_at(*site, place, native) && is_current(*site, *python.layout)) found = site;
  }
  if (found == nullptr && !g_full.load(std::memory_order_relaxed))
    found = new_python_site(python, place, native, slot);
  // A signal handler that comes here in between finds nothing to compare with.
  LastSite& last = t_last;
  last.trail.length = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (found == nullptr) return nullptr;
  last.site = found;
  std::memcpy(last.trail.at, trail.at, sizeof trail.at);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  last.trail.length = trail.length;
  return found;
}

}  // namespace

void use_sites(bool wanted) noexcept { g_sites.store(wanted); }

void forget_native_sites() noexcept {
  for (std::atomic<Site*>& slot : g_native_sites) {
    if (slot.load(std::memory_order_relaxed) != nullptr) slot.store(nullptr);
  }
}

Site* python_site(const Python& python, const void* caller) noexcept {
  const PythonLayout& layout = *python.layout;
  const char* frame = innermost_frame(python);
  // The interpreter's own calls say nothing that its code does not.
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  const void* native = address - python.begin < python.end - python.begin ? nullptr : caller;
  const LastSite& last = t_last;
  if (last.trail.length != 0 && last.site->caller == native && follows(layout, frame, last.trail) &&
      is_current(*last.site, layout)) [[likely]] {
    return last.site;
  }
  return other_python_site(python, frame, caller, native);
}

Site* native_site(const void* caller) noexcept {
  const std::size_t slot = native_slot(caller);
  for (std::size_t i = 0; i < kNearby; ++i) {
    Site* site = g_native_sites[(slot + i) % kNativeSlots].load(std::memory_order_acquire);
    if (site == nullptr) break;
    if (site->caller == caller) return site;
  }
  return g_full.load(std::memory_order_relaxed) ? nullptr : new_native_site(caller, slot);
}

[[gnu::noinline, gnu::cold]] bool announce(Site& site) noexcept {
  // Not as before the call: daemon() has forked meanwhile.
  const buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr) return false;
  const std::uint64_t stamp = buffer::announcing(*t);
  if (site.announced.load(std::memory_order_relaxed) == stamp) return true;
  SlowPath slow;
  record::Head head{};
  head.kind = record::Kind::kString;
  head.id = site.hash;
  if (!buffer::write_text(t->live, head, {site.text, site.length})) return false;
  site.announced.store(stamp);
  return true;
}

}  // namespace dft::intercept
