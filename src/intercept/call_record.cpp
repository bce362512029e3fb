#include "intercept/call_record.hpp"

#include "intercept/vfork.hpp"
#include "intercept/wrapper_list.hpp"

namespace dft::intercept {

InternedIds g_ids;
DFT_HOT constinit std::atomic<bool> g_details{true};

namespace {

constexpr const char* kCategories[] = {
#define DFT_CATEGORY(name) #name,
#include "format/categories.def"
};
constexpr std::size_t kLongestName = 40;  // of a function
static_assert(std::size(kCategories) == static_cast<std::size_t>(Category::kCount));
std::uint32_t g_any_name = 0;  // for when the name table is full

// A row's name is interned when it first occurs: most programs use few of the functions.
[[gnu::noinline, gnu::cold]] std::uint32_t name_row(std::size_t row) noexcept {
  const std::uint32_t id = buffer::g_names.id(kWrappers[row].shown);
  if (id == 0) return g_any_name;
  g_row_state[row].name.store(id, std::memory_order_release);
  return id;
}

}  // namespace

const char* key_text(Key key) noexcept {
  static constexpr const char* kKeys[] = {
#define DFT_KEY(name) #name,
#include "intercept/keys.def"
  };
  return key == Key::errno_ ? "errno" : kKeys[static_cast<std::size_t>(key)];
}

void name_words(std::size_t row, bool has_file, const Key* keys, std::size_t count) noexcept {
  char shape[kLongestName + sizeof "|POSIX" +
             record::kMostShapeWords * (record::kLongestShapeKey + 2)];
  char* p = shape;
  const auto add = [&p](const char* text) {
    const std::size_t size = std::strlen(text);
    std::memcpy(p, text, size);
    p += size;
  };
  const auto word = [&](char how, Key key) {
    *p++ = record::kShapeBar;
    *p++ = how;
    add(key_text(key));
  };
  const char* name = kWrappers[row].shown;
  if (std::strlen(name) > kLongestName) return;
  add(name);
  *p++ = record::kShapeBar;
  add(kCategories[static_cast<std::size_t>(kWrappers[row].category)]);
  if (has_file) word(record::kShapeHash, Key::fhash);
  for (std::size_t i = 0; i < count; ++i) word(record::kShapeNumber, keys[i]);
  word(record::kShapeHash, Key::site_hash);  // a record may end before it
  const std::uint32_t id = buffer::g_names.id({shape, static_cast<std::size_t>(p - shape)});
  g_row_state[row].shape[has_file].store(id, std::memory_order_release);
}

namespace {

// One record, straight into the thread's chunk.
void emit_record(buffer::ThreadState* t, std::uint32_t name, Category category, std::uint64_t start,
                 std::uint64_t end, CallArgs& args) noexcept {
  if (in_vfork_child()) [[unlikely]] {
    args.put(Key::child, record::ArgType::kInt, static_cast<std::uint64_t>(sys::process_id()));
  } else if (t->handed_seen != buffer::g_handed.load(std::memory_order_relaxed)) [[unlikely]] {
    buffer::take_back(*t);
  }
  const std::uint32_t size = args.size();
  const std::size_t total = sizeof(record::Head) + size;
  buffer::Slot slot;
  while ((slot = buffer::reserve(*t, total)).at == nullptr) [[unlikely]] {
    if (!slot.stale) return;
    t = buffer::this_thread();
    if (t == nullptr) return;
  }
  record::Head head;
  head.size = static_cast<std::uint32_t>(total);
  head.kind = record::Kind::kSpan;
  head.flags = 0;
  head.level = record::clamp_level(t->level + 1);
  head.name = name;
  head.category = g_ids.category[static_cast<std::size_t>(category)];
  head.id = buffer::new_id(*t);
  head.parent = t->parent;
  head.start = start;
  head.duration = end - start;
  std::memcpy(slot.at, &head, sizeof head);
  std::memcpy(slot.at + sizeof head, args.bytes(), size);
  buffer::commit(*slot.lane, total);
}

}  // namespace

void emit(buffer::ThreadState* t, std::size_t row, std::uint64_t start, std::uint64_t end,
          CallArgs& args) noexcept {
  std::uint32_t name = g_row_state[row].name.load(std::memory_order_acquire);
  if (name == 0) [[unlikely]]
    name = name_row(row);
  emit_record(t, name, kWrappers[row].category, start, end, args);
}

void emit_as(std::atomic<std::uint32_t>& id, const char* name, buffer::ThreadState* t,
             std::uint64_t start, std::uint64_t end, CallArgs& args) noexcept {
  std::uint32_t known = id.load(std::memory_order_acquire);
  if (known == 0) {
    known = buffer::g_names.id(name);
    id.store(known, std::memory_order_release);
  }
  emit_record(t, known != 0 ? known : g_any_name, Category::POSIX, start, end, args);
}

bool intern_ids() noexcept {
  bool fine = true;
  const auto id = [&](const char* text) {
    const std::uint32_t got = buffer::g_names.id(text);
    fine &= got != 0;
    return got;
  };
  g_any_name = id("(call)");
  for (std::size_t i = 0; i < std::size(g_ids.key); ++i)
    g_ids.key[i] = id(key_text(static_cast<Key>(i)));
  for (std::size_t i = 0; i < std::size(kCategories); ++i) g_ids.category[i] = id(kCategories[i]);
  return fine;
}

}  // namespace dft::intercept
