// ITT, the annotations of Intel's tools. The stub that is linked into a program loads the library that
// INTEL_LIBITTNOTIFY64 names, and hands it a list of function pointers, by name
// (src/inject/inject.cpp). No header of ITT is needed here: what is declared below is its binary
// interface. On the program's threads.
#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "hooks/ranges.hpp"
#include "hooks/texts.hpp"

namespace dft::hooks {
namespace {

struct ApiEntry {
  const char* name;
  void** function;
  void* at_first;
  void* when_off;
  std::int32_t group;
};

struct Global {
  unsigned char magic[8];
  unsigned long version[3];
  long counters[3];
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** path;
  ApiEntry* api;
  // More follows.
};
constexpr unsigned char kMagic[4] = {0xED, 0xAB, 0xAB, 0xEC};

// The program reads `flags`, and skips the calls of a domain where they are 0.
struct Domain {
  volatile int flags;
  const char* name;
  void* wide_name;
  int reserved;  // ours: its number
  void* reserved2;
  Domain* next;
};

struct StringHandle {
  const char* text;
  void* wide_text;
  int reserved;  // ours: the id of the name
  void* reserved2;
  StringHandle* next;
};

struct Id {
  unsigned long long d1, d2, d3;
};

constexpr std::uint32_t kMostDomains = 256;
Domain g_domains[kMostDomains];
Domain
    g_no_domain;  // for one too many: the program skips its calls. Older stubs follow a null pointer
NamedList g_domain_names;
std::atomic<StringHandle*> g_handles[buffer::Names::kMost + 1];  // by the id of the name
constexpr std::uint32_t kMostEvents = 1024;
std::atomic<std::uint32_t> g_event_count{0};
std::uint32_t g_events[kMostEvents];  // the ids of their names
Lock g_lock;
std::atomic<std::uint32_t> g_category{0};  // "ITT"

// Ranges of events are beside those of all domains.
constexpr std::uint64_t kEventOwner = std::uint64_t{1} << 63;

std::uint32_t category() { return g_category.load(std::memory_order_relaxed); }
std::uint64_t owner_of(const Domain* domain) { return reinterpret_cast<std::uintptr_t>(domain); }

RangeArgs args_of(const Domain* domain) {
  RangeArgs args;
  if (domain != nullptr) args.domain = text_of(domain->name);
  return args;
}

// One that the program made before we were asked has no id yet.
Label label_of_handle(const StringHandle* handle) {
  if (handle == nullptr) return label_of({});
  if (handle->reserved > 0) return {static_cast<std::uint32_t>(handle->reserved), {}};
  return label_of(text_of(handle->text));
}

Domain* create_domain(const char* name) {
  const std::uint32_t number = g_domain_names.number_of(text_of(name));
  if (number == 0) return &g_no_domain;
  Domain& domain = g_domains[number - 1];
  SlowPath slow;
  Locked locked(g_lock);
  if (domain.name == nullptr) {
    // Ended by a 0, unlike the text that the list keeps.
    char copy[kLongestText] = {};
    const std::string_view text = g_domain_names.find(number).substr(0, sizeof copy - 1);
    std::memcpy(copy, text.data(), text.size());
    domain.name = keep({copy, text.size() + 1}).data();
    domain.flags = 1;
  }
  return &domain;
}

StringHandle* make_handle(std::uint32_t id, std::string_view text) {
  SlowPath slow;
  // Handle and text in one piece: PyTorch makes one for every message.
  struct Kept {
    StringHandle handle;
    char text[64];
  } made{{nullptr, nullptr, static_cast<int>(id), nullptr, nullptr}, {}};
  const std::size_t length = std::min(text.size(), sizeof made.text - 1);
  std::memcpy(made.text, text.data(), length);
  Locked locked(g_lock);
  static char* arena = nullptr;
  static std::size_t left = 0;
  static std::size_t kept = 0;
  constexpr std::size_t kArena = std::size_t{64} << 10;
  constexpr std::size_t kMostKept = std::size_t{8} << 20;
  if (left < sizeof made) {
    if (kept >= kMostKept) return nullptr;
    auto* memory = static_cast<char*>(sys::map_private(kArena));
    if (memory == nullptr) return nullptr;
    arena = memory;
    left = kArena;
    kept += kArena;
  }
  auto* at = reinterpret_cast<Kept*>(arena);
  arena += sizeof made;
  left -= sizeof made;
  std::memcpy(static_cast<void*>(at), &made, sizeof made);
  at->handle.text = at->text;
  g_handles[id].store(&at->handle, std::memory_order_release);
  return &at->handle;
}

StringHandle* create_string(const char* text) {
  const Label label = label_of(text_of(text));
  if (label.id == 0) return nullptr;
  StringHandle* known = g_handles[label.id].load(std::memory_order_acquire);
  return known != nullptr ? known : make_handle(label.id, label.text);
}

void begin_task(const Domain* domain, Id, Id, const StringHandle* name) {
  push_range(owner_of(domain), label_of_handle(name), category(), args_of(domain));
}
void end_task(const Domain* domain) { pop_range(owner_of(domain)); }

// ---- Tasks that overlap, regions and frames: begun and ended by an id of the program's

constexpr std::size_t kMostOverlapped = 1024;
struct Overlapped {
  const Domain* domain;
  Id id;
  std::uint64_t range;  // 0: free
};
Overlapped g_overlapped[kMostOverlapped];
Lock g_overlapped_lock;

bool is_same(const Id& a, const Id& b) { return a.d1 == b.d1 && a.d2 == b.d2 && a.d3 == b.d3; }

void begin_overlapped(const Domain* domain, const Id& id, const Label& name) {
  const std::uint64_t range = start_range(name, category(), args_of(domain));
  if (range == 0) return;
  SlowPath slow;
  Locked locked(g_overlapped_lock);
  for (Overlapped& slot : g_overlapped) {
    if (slot.range != 0) continue;
    slot = {domain, id, range};
    return;
  }
}

void end_overlapped(const Domain* domain, const Id& id) {
  std::uint64_t range = 0;
  {
    SlowPath slow;
    Locked locked(g_overlapped_lock);
    for (Overlapped& slot : g_overlapped) {
      if (slot.range == 0 || slot.domain != domain || !is_same(slot.id, id)) continue;
      range = slot.range;
      slot.range = 0;
      break;
    }
  }
  end_range(range);
}

void begin_overlapped_task(const Domain* domain, Id id, Id, const StringHandle* name) {
  begin_overlapped(domain, id, label_of_handle(name));
}
void end_overlapped_task(const Domain* domain, Id id) { end_overlapped(domain, id); }
// A frame of a domain; without an id there is one at a time.
void begin_frame(const Domain* domain, const Id* id) {
  begin_overlapped(domain, id != nullptr ? *id : Id{}, label_of("frame"));
}
void end_frame(const Domain* domain, const Id* id) {
  end_overlapped(domain, id != nullptr ? *id : Id{});
}

void set_marker(const Domain* domain, Id, const StringHandle* name, int) {
  mark(label_of_handle(name), category(), args_of(domain));
}

// ---- Events: ranges of a thread by a number

int create_event(const char* name, int length) {
  std::string_view text = text_of(name);
  if (length >= 0 && static_cast<std::size_t>(length) < text.size())
    text = text.substr(0, static_cast<std::size_t>(length));
  const std::uint32_t id = label_of(text).id;
  SlowPath slow;
  Locked locked(g_lock);
  const std::uint32_t count = g_event_count.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (g_events[i] == id) return static_cast<int>(i + 1);
  }
  if (count == kMostEvents || id == 0) return 0;
  g_events[count] = id;
  g_event_count.store(count + 1, std::memory_order_release);
  return static_cast<int>(count + 1);
}
bool is_event(int event) {
  return event > 0 &&
         static_cast<std::uint32_t>(event) <= g_event_count.load(std::memory_order_acquire);
}
int start_event(int event) {
  if (!is_event(event)) return 1;
  const auto number = static_cast<std::uint32_t>(event);
  push_range(kEventOwner | number, {g_events[number - 1], {}}, category(), {});
  return 0;
}
int end_event(int event) {
  if (!is_event(event)) return 1;
  pop_range(kEventOwner | static_cast<std::uint32_t>(event));
  return 0;
}

void set_thread_name(const char* name) {
  name_thread(static_cast<std::uint32_t>(sys::thread_id()), text_of(name));
}

struct Provided {
  const char* name;
  void* function;
};
template <class F>
void* erased(F* function) {
  return reinterpret_cast<void*>(function);
}
// The rest is as it is without a tool, and costs as little: pausing, synchronization, memory, counters.
// OpenMP's runtime asks whether these are there before it does more.
const Provided kProvided[] = {
    {"__itt_domain_create", erased(create_domain)},
    {"__itt_string_handle_create", erased(create_string)},
    {"__itt_task_begin", erased(begin_task)},
    {"__itt_task_end", erased(end_task)},
    {"__itt_task_begin_overlapped", erased(begin_overlapped_task)},
    {"__itt_task_end_overlapped", erased(end_overlapped_task)},
    {"__itt_region_begin", erased(begin_overlapped_task)},
    {"__itt_region_end", erased(end_overlapped_task)},
    {"__itt_frame_begin_v3", erased(begin_frame)},
    {"__itt_frame_end_v3", erased(end_frame)},
    {"__itt_marker", erased(set_marker)},
    {"__itt_event_create", erased(create_event)},
    {"__itt_event_start", erased(start_event)},
    {"__itt_event_end", erased(end_event)},
    {"__itt_thread_set_name", erased(set_thread_name)},
};

}  // namespace
}  // namespace dft::hooks

// As __itt_api_init: every library that has ITT's stub calls it once. `groups` is what the user asked
// the stub for; all is taken over.
extern "C" __attribute__((visibility("default"))) void dftracer_itt_attach(void* given,
                                                                           std::uint32_t) {
  using namespace dft::hooks;
  const auto* global = static_cast<const Global*>(given);
  if (global == nullptr || std::memcmp(global->magic, kMagic, sizeof kMagic) != 0 ||
      global->api == nullptr) {
    return;
  }
  const dft::SlowPath slow;
  prepare_ranges();
  g_category.store(dft::buffer::g_names.id("ITT"));
  for (const ApiEntry* entry = global->api; entry->name != nullptr; ++entry) {
    if (entry->function == nullptr) continue;
    void* chosen = entry->when_off;
    for (const Provided& ours : kProvided) {
      if (std::strcmp(entry->name, ours.name) == 0) chosen = ours.function;
    }
    *entry->function = chosen;
  }
}
