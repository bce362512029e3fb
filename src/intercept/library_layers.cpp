#include "intercept/library_layers.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstdint>
#include <iterator>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/elf_object.hpp"
#include "intercept/import_slots.hpp"
#include "intercept/liburing.hpp"
#include "intercept/mpi_calls.hpp"

namespace dft::intercept {
namespace {

// Every layer. None of them costs anything before its library is loaded.
LibraryLayer* const kLayers[] = {&g_liburing, &mpi::g_layer};

Lock g_lock;
std::atomic<bool> g_expected{false};
std::atomic<bool> g_any_present{false};

// The calls of layers that are present, by the hash of their symbol.
constexpr std::size_t kSlots = 4096;
std::atomic<LibraryCall*> g_calls[kSlots];

std::size_t slot_of(const char* symbol) {
  std::uint32_t h = 5381;
  for (; *symbol != '\0'; ++symbol) h = h * 33 + static_cast<unsigned char>(*symbol);
  return (h ^ h >> 13) % kSlots;
}

LibraryCall* find_call(const char* symbol) {
  for (std::size_t slot = slot_of(symbol);; slot = (slot + 1) % kSlots) {
    LibraryCall* call = g_calls[slot].load(std::memory_order_acquire);
    if (call == nullptr || is_same(call->symbol, symbol)) return call;
  }
}

void index_calls(LibraryLayer& layer) {
  for (std::size_t i = 0; i < layer.count; ++i) {
    std::size_t slot = slot_of(layer.calls[i].symbol);
    while (g_calls[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) % kSlots;
    g_calls[slot].store(&layer.calls[i], std::memory_order_release);
  }
}

// The objects that were looked at, by where they are. Emptied when one was unloaded, because
// another may be in its place. Objects beyond its size are looked at every time.
constexpr std::size_t kMostKnown = 4096;
ElfW(Addr) g_known[kMostKnown];
std::size_t g_known_count = 0;
unsigned long long g_loads = 0;
unsigned long long g_unloads = 0;

bool is_known(ElfW(Addr) object) {
  std::size_t slot = (object >> 12) % kMostKnown;
  for (; g_known[slot] != 0; slot = (slot + 1) % kMostKnown)
    if (g_known[slot] == object) return true;
  if (g_known_count < kMostKnown / 2) {
    g_known[slot] = object;
    ++g_known_count;
  }
  return false;
}

void forget_known() {
  for (ElfW(Addr) & known : g_known) known = 0;
  g_known_count = 0;
}

enum class Step { kNewObjects, kFindFunctions, kExchange };

struct LayerWalk {
  Step step = Step::kNewObjects;
  Direction direction = Direction::kPatch;
  bool appeared = false;                      // a layer that was not there before
  const char* keep[std::size(kLayers)] = {};  // paths of libraries that must stay loaded
};

bool is_our_own(const Object& object) {
  const auto own = reinterpret_cast<ElfW(Addr)>(&g_known);
  return own >= object.begin && own < object.end;
}

void find_layers(const Object& object, const char* path, LayerWalk& walk) {
  for (std::size_t i = 0; i < std::size(kLayers); ++i) {
    LibraryLayer* layer = kLayers[i];
    if (layer->present.load(std::memory_order_relaxed) ||
        object.function(layer->anchor) == nullptr) {
      continue;
    }
    layer->present.store(true);
    if (layer->prepare != nullptr) layer->prepare();
    index_calls(*layer);
    walk.keep[i] = path;
    walk.appeared = true;
  }
}

// The first object in the order of loading that exports a function, as the loader itself binds.
void find_functions(const Object& object) {
  for (LibraryLayer* layer : kLayers) {
    if (!layer->present.load(std::memory_order_relaxed)) continue;
    for (std::size_t i = 0; i < layer->count; ++i) {
      std::atomic<void*>& real = layer->calls[i].real;
      if (real.load(std::memory_order_relaxed) == nullptr)
        real.store(object.function(layer->calls[i].symbol), std::memory_order_relaxed);
    }
  }
}

void exchange_imports(const Object& object, Direction direction) {
  each_import(object, [&](const char* name, ElfW(Addr) slot) {
    const LibraryCall* call = find_call(name);
    if (call == nullptr) return;
    const auto real = reinterpret_cast<ElfW(Addr)>(call->real.load(std::memory_order_relaxed));
    if (real == 0) return;
    exchange(object, slot, {real, reinterpret_cast<ElfW(Addr)>(call->wrapper)}, direction);
  });
}

void meet(const Object& object, const char* path, LayerWalk& walk) {
  if (is_known(object.begin)) return;
  find_layers(object, path, walk);
  // If a layer has just appeared, all objects follow.
  if (!walk.appeared && g_any_present.load(std::memory_order_relaxed))
    exchange_imports(object, Direction::kPatch);
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& walk = *static_cast<LayerWalk*>(data);
  static const ElfW(Addr) kernels = ::getauxval(AT_SYSINFO_EHDR);
  Object object;
  if ((info->dlpi_addr == kernels && kernels != 0) || !describe(*info, object) ||
      is_our_own(object)) {
    return 0;
  }
  if (walk.step == Step::kNewObjects) meet(object, info->dlpi_name, walk);
  if (walk.step == Step::kFindFunctions) find_functions(object);
  if (walk.step == Step::kExchange) exchange_imports(object, walk.direction);
  return 0;
}

void visit_all(LayerWalk& walk, Step step) {
  walk.step = step;
  ::dl_iterate_phdr(visit, &walk);
}

// Looks at the loader's counters only.
int compare_counters(dl_phdr_info* info, std::size_t, void* changed) {
  *static_cast<bool*>(changed) = info->dlpi_adds != g_loads || info->dlpi_subs != g_unloads;
  if (info->dlpi_subs != g_unloads) forget_known();
  g_loads = info->dlpi_adds;
  g_unloads = info->dlpi_subs;
  return 1;
}

}  // namespace

void patch_library_layers() noexcept {
  LayerWalk walk;
  {
    const Locked locked(g_lock);
    bool changed = false;
    ::dl_iterate_phdr(compare_counters, &changed);
    if (!changed) return;
    visit_all(walk, Step::kNewObjects);
    if (!walk.appeared) return;
    visit_all(walk, Step::kFindFunctions);
    g_any_present.store(true);
    visit_all(walk, Step::kExchange);
  }
  // The wrappers call into these libraries from now on. No lock is held: this calls the loader.
  for (const char* path : walk.keep)
    if (path != nullptr && *path != '\0') ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

void restore_library_layers() noexcept {
  const Locked locked(g_lock);
  forget_known();
  g_loads = 0;
  if (!g_any_present.load()) return;
  LayerWalk walk;
  walk.direction = Direction::kRestore;
  visit_all(walk, Step::kExchange);
}

void expect_library_layers() noexcept { g_expected.store(true, std::memory_order_relaxed); }

void patch_expected_layers() noexcept {
  if (!g_expected.load(std::memory_order_relaxed)) return;
  g_expected.store(false, std::memory_order_relaxed);
  const SlowPath slow;
  patch_library_layers();
}

bool is_library_call(const char* symbol) noexcept {
  return g_any_present.load(std::memory_order_relaxed) && find_call(symbol) != nullptr;
}

void* wrapper_for(const char* symbol, void* found) noexcept {
  const LibraryCall* call = find_call(symbol);
  if (call == nullptr || found == nullptr || call->real.load(std::memory_order_relaxed) != found)
    return found;
  return reinterpret_cast<void*>(call->wrapper);
}

}  // namespace dft::intercept
