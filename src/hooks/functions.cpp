// What GCC and Clang call at the begin and the end of every function that they compile with
// -finstrument-functions. A call costs a look into a table of addresses and a span; a function's first
// call finds its name. On the program's threads.
#include <atomic>
#include <cstdint>

#include "base/hot.hpp"
#include "base/lock.hpp"
#include "base/message.hpp"
#include "base/signals.hpp"
#include "hooks/function_names.hpp"
#include "hooks/glob.hpp"
#include "hooks/hooks.hpp"
#include "hooks/open_spans.hpp"
#include "session/session.hpp"

namespace dft::hooks {
namespace {

// By address, open addressing. An address is written last, so that whoever finds it finds the ids.
struct Function {
  std::atomic<const void*> address;
  std::atomic<std::uint64_t> ids;  // of name and category, as a word; 0: not recorded
  std::atomic<std::uint64_t> size;
};
constexpr std::size_t kSlots = std::size_t{1} << 16;
constexpr std::size_t kMostFunctions = kSlots / 4 * 3;
Function g_functions[kSlots];
Lock g_lock;
std::size_t g_count = 0;
bool g_said_full = false;
std::uint32_t g_category = 0;
std::uint32_t g_other = 0;                // the name of functions for whose own there is no room
const PatternList* g_patterns = nullptr;  // never freed: threads may use it until the process ends

DFT_HOT constinit std::atomic<bool> g_wanted{false};
// Shorter calls are not recorded. In ticks.
DFT_HOT constinit std::atomic<std::uint64_t> g_least{0};

std::size_t slot_of(const void* function) {
  return (reinterpret_cast<std::uintptr_t>(function) * 0x9e3779b97f4a7c15u) >> 48;
}

// nullptr if it was not called yet.
[[gnu::always_inline]] inline const Function* find(const void* function) {
  for (std::size_t i = slot_of(function);; i = (i + 1) % kSlots) {
    const void* at = g_functions[i].address.load(std::memory_order_acquire);
    if (at == function) [[likely]]
      return &g_functions[i];
    if (at == nullptr) return nullptr;
  }
}

std::uint64_t ids_of(const void* function, std::uint64_t& size) {
  char text[kLongestFunctionName];
  const std::string_view name = name_function(function, text, size);
  if (!g_patterns->matches(name)) return 0;
  const std::uint32_t id = buffer::g_names.id(name);
  return (id != 0 ? id : g_other) | std::uint64_t{g_category} << 32;
}

// The function's first call. Calls that this makes, of an allocator that is instrumented itself, are
// not recorded.
[[gnu::noinline, gnu::cold]] const Function* add(const void* function) {
  SlowPath slow;
  Locked locked(g_lock);
  if (const Function* known = find(function)) return known;
  if (g_count >= kMostFunctions) {
    if (!g_said_full)
      say("more than %zu functions are instrumented; the others are not recorded", kMostFunctions);
    g_said_full = true;
    return nullptr;
  }
  std::uint64_t size = 0;
  const std::uint64_t ids = ids_of(function, size);
  std::size_t i = slot_of(function);
  while (g_functions[i].address.load(std::memory_order_relaxed) != nullptr) i = (i + 1) % kSlots;
  g_functions[i].ids.store(ids, std::memory_order_relaxed);
  g_functions[i].size.store(size, std::memory_order_relaxed);
  g_functions[i].address.store(function, std::memory_order_release);
  ++g_count;
  return &g_functions[i];
}

// On another stack (a handler's, a fiber's) the order of addresses says nothing.
constexpr std::uint64_t kOneStack = std::uint64_t{8} << 20;

// Whether the function of this entry was left without its end being called, as by longjmp(): its frame
// lies below that of the caller of the hook.
bool is_gone(const OpenSpan& entry, std::uint64_t frame) {
  return entry.place < frame && frame - entry.place < kOneStack;
}

void end_call(OpenSpan& entry) {
  const std::uint64_t least = g_least.load(std::memory_order_relaxed);
  if (least != 0 && entry.span.live != 0 && record::ticks() - entry.span.draft.head.start < least) {
    drop(entry.span);
    return;
  }
  close(entry.span);
}

void end_gone(OpenSpans& spans, std::uint64_t frame) {
  while (!spans.empty() && is_gone(spans.top[-1], frame)) end_call(*--spans.top);
}

bool contains(const OpenSpan& entry, const void* site) {
  return reinterpret_cast<std::uintptr_t>(site) - entry.owner < entry.size;
}

// The innermost open function is not the caller, or lies below it: the thread's first function, a call
// through code that is not instrumented, one from inlined code, or one after a longjmp().
[[gnu::noinline]] OpenSpans* prepare(const void* site, std::uint64_t frame) {
  OpenSpans* spans = make_stack(Stack::kFunctions);
  if (spans == nullptr || spans->empty()) return spans;
  // An open function has the stack pointer of the one that calls it, or a lower one. One that is inlined
  // has the caller's own.
  end_gone(*spans, frame);
  constexpr int kMostLookedAt = 64;
  int looked_at = 0;
  for (OpenSpan* s = spans->top; s != spans->first && looked_at < kMostLookedAt; --s, ++looked_at) {
    if (!contains(s[-1], site)) continue;
    // This one calls. What was begun after it, in frames of their own, is gone.
    end_gone(*spans, s[-1].place);
    break;
  }
  return spans;
}

[[gnu::noinline, gnu::cold]] void open_slow(OpenSpan& entry, std::uint64_t ids) {
  open(entry.span, {static_cast<std::uint32_t>(ids), {}}, static_cast<std::uint32_t>(ids >> 32));
}

[[gnu::noinline, gnu::cold]] void end_slow(OpenSpans& spans, const void* function,
                                           std::uint64_t frame) {
  end_gone(spans, frame);
  if (spans.empty()) return;
  OpenSpan& entry = spans.top[-1];
  if (entry.owner != reinterpret_cast<std::uintptr_t>(function)) return;  // began before the trace
  // A function that calls alloca() ends with a lower stack pointer than it began with. One that is
  // nested too deep to be recorded does, too.
  if (entry.place != frame && spans.full()) return;
  --spans.top;
  end_call(entry);
}

// Ticks in this many microseconds, measured: the sink's clock is not known here.
std::uint64_t ticks_in(std::uint64_t microseconds) {
  constexpr std::uint64_t kMeasured = 500'000;
  const std::uint64_t begin_ns = record::monotonic_ns();
  const std::uint64_t begin = record::ticks();
  std::uint64_t passed = 0;
  while (passed < kMeasured) passed = record::monotonic_ns() - begin_ns;
  const std::uint64_t ticks = record::ticks() - begin;
  return static_cast<std::uint64_t>(static_cast<double>(microseconds) * 1e3 *
                                    static_cast<double>(ticks) / static_cast<double>(passed));
}

}  // namespace

void begin() noexcept try {
  const session::Config& config = session::config();
  if (!session::active()) return;
  SlowPath slow;
  {
    Locked locked(g_lock);
    g_category = buffer::g_names.id("FUNC");
    g_other = buffer::g_names.id("another function");
    if (g_patterns == nullptr) g_patterns = new PatternList(config.functions);
    if (config.functions_min_us != 0) g_least.store(ticks_in(config.functions_min_us));
  }
  session::g_before_end.store(end_open_spans);
  g_wanted.store(true);
} catch (...) {
  g_wanted.store(false);
}

std::uint64_t least_ticks() noexcept { return g_least.load(std::memory_order_relaxed); }

void forget_functions() noexcept {
  if (!g_wanted.load()) return;
  SlowPath slow;
  Locked locked(g_lock);
  if (g_count == 0) return;
  for (Function& function : g_functions) function.address.store(nullptr);
  g_count = 0;
  forget_modules();
}

}  // namespace dft::hooks

#define DFT_FRAME() reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))

extern "C"
    __attribute__((visibility("default"))) void dftracer_function_enter(void* address, void* site) {
  using namespace dft::hooks;
  if (!g_wanted.load(std::memory_order_relaxed) || dft::t_slow != 0) [[unlikely]]
    return;
  const Function* function = find(address);
  if (function == nullptr) [[unlikely]]
    function = add(address);
  if (function == nullptr) return;
  const std::uint64_t ids = function->ids.load(std::memory_order_relaxed);
  if (ids == 0) return;
  const std::uint64_t frame = DFT_FRAME();
  OpenSpans* spans = stack_of_thread(Stack::kFunctions);
  if (spans == nullptr || spans->empty() || spans->top[-1].place < frame ||
      !contains(spans->top[-1], site)) [[unlikely]]
    spans = prepare(site, frame);
  if (spans == nullptr || spans->full()) [[unlikely]] {
    count_lost();
    return;
  }
  OpenSpan& entry = *spans->top++;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  entry.owner = reinterpret_cast<std::uintptr_t>(address);
  entry.place = frame;
  entry.size = function->size.load(std::memory_order_relaxed);
  entry.span.live = 0;
  if (!dft::buffer::try_open(entry.span, static_cast<std::uint32_t>(ids),
                             static_cast<std::uint32_t>(ids >> 32))) [[unlikely]]
    open_slow(entry, ids);
}

extern "C" __attribute__((visibility("default"))) void dftracer_function_exit(void* address,
                                                                              void*) {
  using namespace dft::hooks;
  OpenSpans* spans = stack_of_thread(Stack::kFunctions);
  if (spans == nullptr || spans->empty() || dft::t_slow != 0) return;
  const std::uint64_t frame = DFT_FRAME();
  OpenSpan& entry = spans->top[-1];
  if (entry.owner != reinterpret_cast<std::uintptr_t>(address) || entry.place != frame)
      [[unlikely]] {
    end_slow(*spans, address, frame);
    return;
  }
  --spans->top;
  if (g_least.load(std::memory_order_relaxed) == 0 && entry.span.live != 0 &&
      dft::buffer::try_close(entry.span)) [[likely]] {
    return;
  }
  end_call(entry);
}

// For programs that are linked with the core and not preloaded: libc has functions of these names that
// do nothing.
extern "C" __attribute__((visibility("default"), alias("dftracer_function_enter"))) void
__cyg_profile_func_enter(void*, void*);
extern "C" __attribute__((visibility("default"), alias("dftracer_function_exit"))) void
__cyg_profile_func_exit(void*, void*);
