#include "hooks/ranges.hpp"

#include "base/signals.hpp"

namespace dft::hooks {

namespace {

using buffer::Draft;
using record::ArgType;

// An id is the number of its slot, and above it how often the slot was used: an id that the program
// uses twice, or makes up, ends nothing else.
constexpr std::uint32_t kSlots = 4096;
struct Slot {
  std::atomic<std::uint64_t> id;  // 0: free; kTaken: being filled or ended
  std::uint64_t used;
  buffer::Span span;
};
constexpr std::uint64_t kTaken = ~std::uint64_t{0};
std::atomic<Slot*> g_slots{nullptr};
std::atomic<std::uint32_t> g_next{0};

std::atomic<std::uint32_t> g_domain_key{0};
std::atomic<std::uint32_t> g_category_key{0};
std::atomic<std::uint32_t> g_payload_key{0};

// The owner of a place on a thread's stack whose range has ended while others inside it are open: a
// span is not movable.
constexpr std::uint64_t kNobody = ~std::uint64_t{0};

void put_args(Draft& draft, const RangeArgs& args) {
  if (!args.domain.empty())
    put_text(draft, g_domain_key.load(std::memory_order_relaxed), args.domain);
  const std::uint32_t key = g_category_key.load(std::memory_order_relaxed);
  if (!args.category.empty()) {
    put_text(draft, key, args.category);
  } else if (args.category_id != 0) {
    draft.put(key, ArgType::kUint, args.category_id);
  }
  if (args.payload_type != ArgType::kNull)
    draft.put(g_payload_key.load(std::memory_order_relaxed), args.payload_type, args.payload);
}

// Mapped at the first use: hardly any program has such ranges.
Slot* slots() {
  Slot* made = g_slots.load(std::memory_order_acquire);
  if (made != nullptr) return made;
  SlowPath slow;
  constexpr std::size_t kSize = kSlots * sizeof(Slot);
  auto* fresh = static_cast<Slot*>(sys::map_private(kSize));
  if (fresh == nullptr) return nullptr;
  if (g_slots.compare_exchange_strong(made, fresh)) return fresh;
  sys::unmap(fresh, kSize);
  return made;
}

// A place that nobody owns, with no range of this domain above it.
OpenSpan* reused_place(OpenSpans& spans, std::uint64_t domain) {
  for (OpenSpan* s = spans.top; s != spans.first && s[-1].owner != domain; --s) {
    if (s[-1].owner == kNobody) return s - 1;
  }
  return nullptr;
}

}  // namespace

void prepare_ranges() noexcept {
  g_domain_key.store(buffer::g_names.id("domain"));
  g_category_key.store(buffer::g_names.id("category"));
  g_payload_key.store(buffer::g_names.id("payload"));
}

int push_range(std::uint64_t domain, const Label& name, std::uint32_t category,
               const RangeArgs& args) noexcept {
  OpenSpans* spans = stack_of_thread(Stack::kRanges);
  if (spans == nullptr) [[unlikely]]
    spans = make_stack(Stack::kRanges);
  if (spans == nullptr) return -1;
  OpenSpan* made = spans->full() ? reused_place(*spans, domain) : spans->top++;
  if (made == nullptr) {
    count_lost();
    return -1;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  made->owner = kNobody;
  std::uint64_t level = 0;
  for (const OpenSpan* s = spans->top; s != spans->first; --s) {
    if (s[-1].owner != domain) continue;
    level = s[-1].place + 1;
    break;
  }
  made->owner = domain;
  made->place = level;
  open(made->span, name, category);
  if (made->span.live != 0) put_args(made->span.draft, args);
  return static_cast<int>(level);
}

int pop_range(std::uint64_t domain) noexcept {
  OpenSpans* spans = stack_of_thread(Stack::kRanges);
  if (spans == nullptr) return -1;
  OpenSpan* ended = spans->top;
  while (ended != spans->first && ended[-1].owner != domain) --ended;
  if (ended == spans->first) return -1;
  --ended;
  const int level = static_cast<int>(ended->place);
  close(ended->span);
  ended->owner = kNobody;
  while (!spans->empty() && spans->top[-1].owner == kNobody) --spans->top;
  return level;
}

std::uint64_t start_range(const Label& name, std::uint32_t category,
                          const RangeArgs& args) noexcept {
  Slot* all = slots();
  if (all == nullptr) return 0;
  for (std::uint32_t tried = 0; tried < kSlots; ++tried) {
    const std::uint32_t number = g_next.fetch_add(1, std::memory_order_relaxed) % kSlots;
    Slot& slot = all[number];
    std::uint64_t free = 0;
    if (slot.id.load(std::memory_order_relaxed) != 0 ||
        !slot.id.compare_exchange_strong(free, kTaken)) {
      continue;
    }
    open(slot.span, name, category);
    if (slot.span.live == 0) {
      slot.id.store(0);
      return 0;
    }
    put_args(slot.span.draft, args);
    // Not on the thread's stack: what begins from now on is beside it.
    buffer::Inside inside;
    buffer::suspend(slot.span, nullptr, inside);
    const std::uint64_t id = ++slot.used * kSlots + number;
    slot.id.store(id, std::memory_order_release);
    return id;
  }
  count_lost();
  return 0;
}

void end_range(std::uint64_t id) noexcept {
  Slot* all = g_slots.load(std::memory_order_acquire);
  if (all == nullptr || id < kSlots || id == kTaken) return;
  Slot& slot = all[id % kSlots];
  if (!slot.id.compare_exchange_strong(id, kTaken)) return;
  if (slot.span.live != 0) buffer::close_span(slot.span, record::ticks());
  slot.id.store(0, std::memory_order_release);
}

void mark(const Label& name, std::uint32_t category, const RangeArgs& args) noexcept {
  Draft draft;
  draft.init();
  put_args(draft, args);
  write_instant(draft, name, category);
  draft.clear();
}

}  // namespace dft::hooks
