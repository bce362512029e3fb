#include "intercept/request_record.hpp"

namespace dft::intercept {
namespace {

constexpr Category category_of(std::uint8_t op) {
  return op >= kOpAioNop ? Category::AIO : Category::IO_URING;
}
constexpr const char* text_of(Category category) {
  return category == Category::AIO ? "AIO" : "IO_URING";
}

// Which words a record has beyond those of every request of its kind.
enum Variant : std::uint8_t {
  kFile = 1,
  kOffset = 2,
  kError = 4,
  kUnfinished = 8,
  kSilent = 16,
  kVariants = 32
};
std::atomic<std::uint32_t> g_shapes[kOps][kVariants];
std::atomic<std::uint32_t> g_name_ids[kOps];

constexpr Key key_of(CountKey count) {
  return count == CountKey::kIovcnt ? Key::iovcnt : count == CountKey::kNr ? Key::nr : Key::count;
}

struct NamedWord {
  Key key;
  std::uint64_t value;
  bool is_hash = false;
};
// The arguments of one record, in their order.
struct NamedWords {
  NamedWord words[record::kMostShapeWords + 2];
  std::size_t count = 0;
  void put(Key key, std::uint64_t value, bool is_hash = false) noexcept {
    words[count++] = {key, value, is_hash};
  }
};

[[gnu::noinline, gnu::cold]] std::uint32_t intern_shape(const char* name, Category category,
                                                        const NamedWords& all) noexcept {
  char shape[64 + record::kMostShapeWords * (record::kLongestShapeKey + 2)];
  char* p = shape;
  const auto add = [&p](const char* text) {
    const std::size_t size = std::strlen(text);
    std::memcpy(p, text, size);
    p += size;
  };
  add(name);
  *p++ = record::kShapeBar;
  add(text_of(category));
  for (std::size_t i = 0; i < all.count; ++i) {
    *p++ = record::kShapeBar;
    *p++ = all.words[i].is_hash ? record::kShapeHash : record::kShapeNumber;
    add(key_text(all.words[i].key));
  }
  return buffer::g_names.id({shape, static_cast<std::size_t>(p - shape)});
}

struct When {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t parent;
  std::uint64_t level;
  std::uint8_t flags;
};

// The short record. False if something unusual is in the way.
bool write_words(buffer::ThreadState& t, std::uint32_t shape, const When& when,
                 const NamedWords& all) noexcept {
  const std::uint64_t duration = when.end - when.start;
  if (shape == 0 || duration >> 32 != 0) return false;
  const bool nested = when.parent != 0;
  const std::size_t size =
      sizeof(record::Call) + (all.count + (nested ? 1 : 0)) * sizeof(std::uint64_t);
  const buffer::Slot slot = buffer::reserve(t, size);
  if (slot.at == nullptr) [[unlikely]]
    return !slot.stale;  // lost, and counted
  const record::Call head{static_cast<std::uint32_t>(size),
                          record::Kind::kCall,
                          static_cast<std::uint8_t>(when.flags | (nested ? record::kNested : 0)),
                          record::clamp_level(when.level),
                          shape,
                          static_cast<std::uint32_t>(duration),
                          buffer::new_id(t),
                          when.start};
  std::memcpy(slot.at, &head, sizeof head);
  std::byte* to = slot.at + sizeof head;
  if (nested) {
    std::memcpy(to, &when.parent, sizeof when.parent);
    to += sizeof when.parent;
  }
  for (std::size_t i = 0; i < all.count; ++i, to += sizeof(std::uint64_t))
    std::memcpy(to, &all.words[i].value, sizeof(std::uint64_t));
  buffer::commit(*slot.lane, size);
  return true;
}

[[gnu::noinline, gnu::cold]] void write_args(std::uint32_t name, Category category,
                                             const When& when, const NamedWords& all) noexcept {
  CallArgs args;
  for (std::size_t i = 0; i < all.count; ++i)
    args.put(all.words[i].key,
             all.words[i].is_hash ? record::ArgType::kHash : record::ArgType::kInt,
             all.words[i].value);
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr) return;
  record::Head head =
      buffer::make_head(*t, record::Kind::kSpan, when.flags, when.start, when.end - when.start);
  head.name = name;
  head.category = g_ids.category[static_cast<std::size_t>(category)];
  head.parent = when.parent;
  head.level = record::clamp_level(when.level);
  buffer::write_record(t->live, head, args.bytes(), args.size());
}

std::uint32_t name_of(std::atomic<std::uint32_t>& kept, const char* name) noexcept {
  std::uint32_t id = kept.load(std::memory_order_acquire);
  if (id != 0) return id;
  id = buffer::g_names.id(name);
  kept.store(id, std::memory_order_release);
  return id;
}

void put_hash(buffer::ThreadState& t, NamedWords& all, Key key, File* file, int fd) noexcept {
  if (file->announced.load(std::memory_order_relaxed) != buffer::announcing(t)) [[unlikely]]
    announce(t, *file, fd);
  all.put(key, file->hash, true);
}

}  // namespace

void record_request(buffer::ThreadState& t, const Request& request,
                    const Completion& completion) noexcept {
  const bool traced =
      request.file != nullptr
          ? request.file->traced || (request.second != nullptr && request.second->traced)
          : g_nameless.traced;
  if (!traced) {
    count_filtered(t, moves_nothing());
    return;
  }
  count_call(t, moves_nothing());
  const RequestName& name = kRequestNames[request.op];
  const Category category = category_of(request.op);
  NamedWords all;
  std::size_t variant = 0;
  if (request.file != nullptr && request.file->hash != 0) {
    put_hash(t, all, Key::fhash, request.file, request.fd);
    variant |= kFile;
  }
  const bool details = g_details.load(std::memory_order_relaxed);
  const bool copies = request.second != nullptr && request.second->hash != 0;
  if (details) {
    if (copies) put_hash(t, all, Key::fd_out_hash, request.second, -1);
    if (request.offset != kNoOffset) {
      all.put(Key::offset, request.offset);
      variant |= kOffset;
    }
    if (name.count != CountKey::kNone) all.put(key_of(name.count), request.count);
    if (completion.state == Completion::kUnfinished) {
      all.put(Key::unfinished, 1);
      variant |= kUnfinished;
    } else if (completion.state == Completion::kSilent) {
      all.put(Key::silent, 1);
      variant |= kSilent;
    } else if (completion.result < 0) {
      all.put(Key::ret, ~std::uint64_t{0});
      all.put(Key::errno_, static_cast<std::uint64_t>(-completion.result));
      variant |= kError;
    } else {
      all.put(Key::ret, static_cast<std::uint64_t>(completion.result));
    }
    if (completion.ring >= 0) all.put(Key::ring, static_cast<std::uint64_t>(completion.ring));
  }
  // A record may end before the last word of its shape, the site.
  const std::size_t without_site = all.count;
  all.put(Key::site_hash, request.site, true);
  const When when{request.start, completion.end, request.parent, request.level, record::kOwnLane};
  if (details && !copies) {
    std::atomic<std::uint32_t>& kept = g_shapes[request.op][variant];
    std::uint32_t shape = kept.load(std::memory_order_acquire);
    if (shape == 0) [[unlikely]] {
      shape = intern_shape(name.name, category, all);
      kept.store(shape, std::memory_order_release);
    }
    if (request.site == 0) all.count = without_site;
    if (write_words(t, shape, when, all)) [[likely]]
      return;
  }
  if (request.site == 0 || !details) all.count = without_site;
  write_args(name_of(g_name_ids[request.op], name.name), category, when, all);
}

void record_ring_call(buffer::ThreadState& t, RingCall& call, std::uint64_t start,
                      std::uint64_t end, const RingCallArgs& args) noexcept {
  if (!g_nameless.traced) {
    count_filtered(t, moves_nothing());
    return;
  }
  count_call(t, moves_nothing());
  if (t.handed_seen != buffer::g_handed.load(std::memory_order_relaxed)) [[unlikely]]
    buffer::take_back(t);
  NamedWords all;
  const bool details = g_details.load(std::memory_order_relaxed);
  const bool failed = args.ret < 0;
  if (details) {
    all.put(Key::nr, args.nr);
    all.put(Key::min_nr, args.min_nr);
    all.put(Key::ret, failed ? ~std::uint64_t{0} : static_cast<std::uint64_t>(args.ret));
    if (failed) all.put(Key::errno_, static_cast<std::uint64_t>(-args.ret));
    all.put(Key::ring, static_cast<std::uint64_t>(args.ring));
    all.put(Key::in_flight, args.in_flight);
  }
  const std::size_t without_site = all.count;
  all.put(Key::site_hash, args.site, true);
  const When when{start, end, t.parent, t.level + std::uint64_t{1}, 0};
  if (details) {
    std::atomic<std::uint32_t>& kept = call.shape[failed ? 1 : 0];
    std::uint32_t shape = kept.load(std::memory_order_acquire);
    if (shape == 0) [[unlikely]] {
      shape = intern_shape(call.name, Category::IO_URING, all);
      kept.store(shape, std::memory_order_release);
    }
    if (args.site == 0) all.count = without_site;
    if (write_words(t, shape, when, all)) [[likely]]
      return;
  }
  if (args.site == 0 || !details) all.count = without_site;
  write_args(buffer::g_names.id(call.name), Category::IO_URING, when, all);
}

}  // namespace dft::intercept
