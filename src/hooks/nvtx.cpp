// NVTX, the annotations of NVIDIA's tools. The headers that a program is compiled with load the library
// that NVTX_INJECTION64_PATH names, and hand it a table of function pointers to fill
// (src/inject/inject.cpp). No header of NVTX is needed here: what is declared below is its binary
// interface. On the program's threads.
#include <pthread.h>

#include <cstring>

#include "base/signals.hpp"
#include "hooks/hooks.hpp"
#include "hooks/ranges.hpp"
#include "hooks/texts.hpp"

namespace dft::hooks {
namespace {

using record::ArgType;

// nvtxEventAttributes_t, whose first version programs still pass. `size` says how much is there.
struct Attributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  union {
    std::uint64_t u64;
    std::int64_t i64;
    double f64;
    std::uint32_t u32;
    std::int32_t i32;
    float f32;
  } payload;
  std::int32_t message_type;
  const void* message;
};
static_assert(sizeof(Attributes) == 48);

struct ResourceAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::int32_t identifier_type;
  std::uint64_t identifier;
  std::int32_t message_type;
  const void* message;
};
static_assert(sizeof(ResourceAttributes) == 32);

enum MessageType : std::int32_t { kAscii = 1, kUnicode = 2, kRegistered = 3 };
constexpr std::int32_t kThreadById = 1 << 16 | 3;

// Handles are numbers: one that a program makes up is never followed.
using Handle = void*;
std::uint64_t number_of(Handle handle) { return reinterpret_cast<std::uintptr_t>(handle); }
Handle handle_of(std::uint64_t number) { return reinterpret_cast<Handle>(number); }

NamedList g_domains;     // by the number in their handles
NamedList g_categories;  // by domain and category
std::atomic<std::uint32_t> g_last_string{0};
std::atomic<std::uint32_t> g_category{0};  // "NVTX"

std::uint64_t category_key(Handle domain, std::uint32_t category) {
  return number_of(domain) << 32 | category;
}

// Calls f(Label) with the message.
template <class F>
auto with_message(std::int32_t type, const void* message, F&& f) {
  if (type == kUnicode) {
    const WideText text(static_cast<const wchar_t*>(message));
    return f(label_of(text.view()));
  }
  if (type == kRegistered) {
    // The id of the name itself, as register_string() gave it.
    const auto id = reinterpret_cast<std::uintptr_t>(message);
    if (id != 0 && id <= g_last_string.load(std::memory_order_relaxed))
      return f(Label{static_cast<std::uint32_t>(id), {}});
    return f(label_of({}));
  }
  return f(label_of(type == kAscii ? text_of(static_cast<const char*>(message)) : ""));
}

void read_payload(const Attributes& from, RangeArgs& to) {
  const auto set = [&to](ArgType type, auto value) {
    to.payload_type = type;
    std::memcpy(&to.payload, &value, sizeof to.payload);
  };
  switch (from.payload_type) {
    case 1:
      return set(ArgType::kUint, from.payload.u64);
    case 2:
      return set(ArgType::kInt, from.payload.i64);
    case 3:
      return set(ArgType::kFloat, from.payload.f64);
    case 4:
      return set(ArgType::kUint, std::uint64_t{from.payload.u32});
    case 5:
      return set(ArgType::kInt, std::int64_t{from.payload.i32});
    case 6:
      return set(ArgType::kFloat, double{from.payload.f32});
    default:
      return;
  }
}

template <class F>
auto with_attributes(Handle domain, const Attributes* given, F&& f) {
  Attributes read{};
  if (given != nullptr && given->size >= sizeof read) std::memcpy(&read, given, sizeof read);
  RangeArgs args;
  if (domain != nullptr) args.domain = g_domains.find(number_of(domain));
  args.category_id = read.category;
  if (read.category != 0) args.category = g_categories.find(category_key(domain, read.category));
  read_payload(read, args);
  return with_message(read.message_type, read.message,
                      [&](const Label& name) { return f(name, args); });
}

std::uint32_t category() { return g_category.load(std::memory_order_relaxed); }

// ---- What the program calls

void domain_mark(Handle domain, const Attributes* attributes) {
  with_attributes(domain, attributes,
                  [](const Label& name, const RangeArgs& args) { mark(name, category(), args); });
}
std::uint64_t domain_start(Handle domain, const Attributes* attributes) {
  return with_attributes(domain, attributes, [](const Label& name, const RangeArgs& args) {
    return start_range(name, category(), args);
  });
}
void domain_end(Handle, std::uint64_t id) { end_range(id); }
int domain_push(Handle domain, const Attributes* attributes) {
  return with_attributes(domain, attributes, [domain](const Label& name, const RangeArgs& args) {
    return push_range(number_of(domain), name, category(), args);
  });
}
int domain_pop(Handle domain) { return pop_range(number_of(domain)); }

void mark_ex(const Attributes* attributes) { domain_mark(nullptr, attributes); }
void mark_ascii(const char* text) { mark(label_of(text_of(text)), category(), {}); }
void mark_wide(const wchar_t* text) { mark(label_of(WideText(text).view()), category(), {}); }
std::uint64_t start_ex(const Attributes* attributes) { return domain_start(nullptr, attributes); }
std::uint64_t start_ascii(const char* text) {
  return start_range(label_of(text_of(text)), category(), {});
}
std::uint64_t start_wide(const wchar_t* text) {
  const WideText wide(text);
  return start_range(label_of(wide.view()), category(), {});
}
void end_any(std::uint64_t id) { end_range(id); }
int push_ex(const Attributes* attributes) { return domain_push(nullptr, attributes); }
int push_ascii(const char* text) { return push_range(0, label_of(text_of(text)), category(), {}); }
int push_wide(const wchar_t* text) {
  const WideText wide(text);
  return push_range(0, label_of(wide.view()), category(), {});
}
int pop() { return pop_range(0); }

void name_category_in(Handle domain, std::uint32_t id, const char* name) {
  g_categories.set(category_key(domain, id), text_of(name));
}
void name_category_in_wide(Handle domain, std::uint32_t id, const wchar_t* name) {
  g_categories.set(category_key(domain, id), WideText(name).view());
}
void name_category(std::uint32_t id, const char* name) { name_category_in(nullptr, id, name); }
void name_category_wide(std::uint32_t id, const wchar_t* name) {
  name_category_in_wide(nullptr, id, name);
}
void name_os_thread(std::uint32_t thread, const char* name) { name_thread(thread, text_of(name)); }
void name_os_thread_wide(std::uint32_t thread, const wchar_t* name) {
  name_thread(thread, WideText(name).view());
}

Handle register_string(std::string_view text) {
  const std::uint32_t id = label_of(text).id;
  std::uint32_t last = g_last_string.load();
  while (last < id && !g_last_string.compare_exchange_weak(last, id)) {
  }
  return handle_of(id);
}
Handle register_ascii(Handle, const char* text) { return register_string(text_of(text)); }
Handle register_wide(Handle, const wchar_t* text) { return register_string(WideText(text).view()); }

Handle create_domain(const char* name) { return handle_of(g_domains.number_of(text_of(name))); }
Handle create_domain_wide(const wchar_t* name) {
  return handle_of(g_domains.number_of(WideText(name).view()));
}
void destroy_domain(Handle) {}  // its ranges may still be open

// Of the resources that a program can name, threads are shown.
Handle create_resource(Handle, const ResourceAttributes* given) {
  if (given == nullptr || given->size < sizeof *given || given->identifier_type != kThreadById)
    return nullptr;
  const auto thread = static_cast<std::uint32_t>(given->identifier);
  if (given->message_type == kUnicode)
    name_os_thread_wide(thread, static_cast<const wchar_t*>(given->message));
  if (given->message_type == kAscii)
    name_os_thread(thread, static_cast<const char*>(given->message));
  return nullptr;
}
void destroy_resource(Handle) {}
void initialize(const void*) {}

// ---- The tables that NVTX's headers offer

using Function = void (*)();
template <class F>
Function erased(F* function) {
  return reinterpret_cast<Function>(function);
}

struct Callbacks {
  std::size_t size;
  int (*table_of)(std::int32_t module, Function*** table, unsigned* size);
};

enum Module : std::int32_t { kCore = 1, kDomains = 5 };

// In the order of the tables, whose entry 0 is not used.
const Function kCoreFunctions[] = {
    nullptr,
    erased(mark_ex),
    erased(mark_ascii),
    erased(mark_wide),
    erased(start_ex),
    erased(start_ascii),
    erased(start_wide),
    erased(end_any),
    erased(push_ex),
    erased(push_ascii),
    erased(push_wide),
    erased(pop),
    erased(name_category),
    erased(name_category_wide),
    erased(name_os_thread),
    erased(name_os_thread_wide),
};
const Function kDomainFunctions[] = {
    nullptr,
    erased(domain_mark),
    erased(domain_start),
    erased(domain_end),
    erased(domain_push),
    erased(domain_pop),
    erased(create_resource),
    erased(destroy_resource),
    erased(name_category_in),
    erased(name_category_in_wide),
    erased(register_ascii),
    erased(register_wide),
    erased(create_domain),
    erased(create_domain_wide),
    erased(destroy_domain),
    erased(initialize),
};

template <std::size_t kCount>
bool fill(const Callbacks& callbacks, Module module, const Function (&functions)[kCount]) {
  Function** table = nullptr;
  unsigned size = 0;
  if (callbacks.table_of(module, &table, &size) == 0 || table == nullptr) return false;
  for (std::size_t i = 1; i < kCount && i < size; ++i) {
    if (table[i] != nullptr) *table[i] = functions[i];
  }
  return true;
}

}  // namespace
}  // namespace dft::hooks

// As InitializeInjectionNvtx2: `exports` returns the table with this number. Every library that was
// compiled with NVTX's headers calls it once. 0: nothing is taken over.
extern "C" __attribute__((visibility("default"))) int dftracer_nvtx_attach(
    const void* (*exports)(std::uint32_t)) {
  using namespace dft::hooks;
  if (exports == nullptr) return 0;
  const dft::SlowPath slow;
  constexpr std::uint32_t kCallbacks = 1;
  const auto* callbacks = static_cast<const Callbacks*>(exports(kCallbacks));
  if (callbacks == nullptr || callbacks->size < sizeof *callbacks || callbacks->table_of == nullptr)
    return 0;
  prepare_ranges();
  g_category.store(dft::buffer::g_names.id("NVTX"));
  const bool core = fill(*callbacks, kCore, kCoreFunctions);
  return fill(*callbacks, kDomains, kDomainFunctions) || core ? 1 : 0;
}
