// Writes the record of one call into the calling thread's chunk: a short one of bare words where
// nothing unusual is in the way, a general one otherwise. The hot path of every wrapper.
#pragma once
#include "buffer/span.hpp"
#include "intercept/call_args.hpp"
#include "intercept/call_result.hpp"
#include "intercept/call_row.hpp"
#include "intercept/call_site.hpp"
#include "intercept/file_table.hpp"
#include "record/clock.hpp"

namespace dft::intercept {

// Records a call under its row's name.
void emit(buffer::ThreadState* t, std::size_t row, std::uint64_t start, std::uint64_t end,
          CallArgs& args) noexcept;
// Records an event of category POSIX under a name that is not a row's. The caller keeps its id,
// 0 at first.
void emit_as(std::atomic<std::uint32_t>& id, const char* name, buffer::ThreadState* t,
             std::uint64_t start, std::uint64_t end, CallArgs& args) noexcept;

// How a key is spelled in a trace.
const char* key_text(Key key) noexcept;
// Interns the keys and categories. False if the name table is full. Called when
// interception begins.
bool intern_ids() noexcept;

// Interns the shape of a row's short records, which says what their words mean.
void name_words(std::size_t row, bool has_file, const Key* keys, std::size_t count) noexcept;

template <auto row, class R, class... F>
void name_words(bool has_file, const F&... numbers) noexcept {
  if (g_row_state[index_of(row)].shape[has_file].load(std::memory_order_relaxed) != 0) return;
  constexpr std::size_t kCount = sizeof...(F) + (kIsNumber<R> ? 1 : 0);
  static_assert(kCount + 2 <= record::kMostShapeWords);  // a file before them, the site after
  const Key keys[kCount + 1] = {numbers.key..., Key::ret};
  name_words(index_of(row), has_file, keys, kCount);
}

inline void put_file(buffer::ThreadState& t, CallArgs& args, Key key, File& file, int fd) noexcept {
  if (file.hash == 0) return;
  if (file.announced.load(std::memory_order_relaxed) != buffer::announcing(t)) [[unlikely]]
    announce(t, file, fd);
  args.put(key, record::ArgType::kHash, file.hash);
}

inline void put_field(buffer::ThreadState&, CallArgs& args, const NumberArg& f) noexcept {
  args.put(f.key, record::ArgType::kInt, static_cast<std::uint64_t>(f.value));
}
inline void put_field(buffer::ThreadState&, CallArgs& args, const OptionalArg& f) noexcept {
  if (f.given) args.put(f.key, record::ArgType::kInt, static_cast<std::uint64_t>(f.value));
}
inline void put_field(buffer::ThreadState&, CallArgs& args, const TextArg& f) noexcept {
  if (f.text != nullptr) args.put_text(f.key, f.text);
}
inline void put_field(buffer::ThreadState& t, CallArgs& args, const SecondPath& f) noexcept {
  put_file(t, args, f.key, *file_at(f.directory, f.path), -1);
}

inline void put_field(buffer::ThreadState& t, CallArgs& args, const SecondFd& f) noexcept {
  put_file(t, args, f.key, *file_of(f.fd), f.fd);
}

// The general record: arguments of all kinds, files that the trace does not know yet, calls made by
// a signal handler.
template <auto row, class R, class... F>
[[gnu::noinline, gnu::cold]] void record_slowly(buffer::ThreadState& t, File* file, int fd,
                                                std::uint64_t start, std::uint64_t end, R ret,
                                                std::uint64_t site, const F&... fields) {
  CallArgs args;
  if (file != nullptr) put_file(t, args, Key::fhash, *file, fd);
  if (g_details.load(std::memory_order_relaxed)) {
    if constexpr ((std::is_same_v<F, NumberArg> && ...))
      name_words<row, R>(file != nullptr, fields...);
    (put_field(t, args, fields), ...);
    if constexpr (kIsNumber<R>)
      args.put(Key::ret, record::ArgType::kInt, static_cast<std::uint64_t>(ret));
    if (has_failed(ret))
      args.put(Key::errno_, record::ArgType::kInt, static_cast<std::uint64_t>(reason<row>()));
    if (site != 0) args.put(Key::site_hash, record::ArgType::kHash, site);
  }
  emit(&t, index_of(row), start, end, args);
}

// Stores eight bytes at a time, as the sink reads them: a load wider than the stores before it
// would stall on store forwarding.
class Words {
 public:
  explicit Words(std::byte* at) : at_(at) {}
  // With `counts` 0, the next word overwrites this one: a branch-free optional word.
  [[gnu::always_inline]] void put(std::uint64_t word, std::size_t counts = 1) {
    std::memcpy(at_, &word, sizeof word);
    at_ += counts * sizeof word;
  }

 private:
  std::byte* at_;
};
static_assert(offsetof(record::Call, kind) == 4 && offsetof(record::Call, flags) == 5 &&
              offsetof(record::Call, level) == 6 && offsetof(record::Call, shape) == 8 &&
              offsetof(record::Call, duration) == 12 && offsetof(record::Call, id) == 16 &&
              offsetof(record::Call, start) == 24);

// The short record of a call with numbers only, straight into the thread's chunk. False if
// something unusual is in the way; nothing is written then.
template <auto row, bool kHasFile, class R, class... F>
[[gnu::always_inline]] inline bool record_quickly(buffer::ThreadState& t, std::uint64_t hash,
                                                  std::uint64_t start, std::uint64_t end, R ret,
                                                  std::uint64_t site, const F&... numbers) {
  constexpr std::size_t kWords = (kHasFile ? 1 : 0) + sizeof...(F) + (kIsNumber<R> ? 1 : 0);
  constexpr std::size_t kSize = sizeof(record::Call) + kWords * sizeof(std::uint64_t);
  constexpr std::size_t kMost = kSize + sizeof t.parent + sizeof site;
  constexpr std::uint64_t kFront = static_cast<std::uint64_t>(record::Kind::kCall) << 32;
  constexpr std::uint64_t kNested = static_cast<std::uint64_t>(record::kNested) << 40;
  buffer::Lane& lane = t.lane;
  // Acquire: the drainer that sees this record must see the name as well.
  const std::uint64_t shape =
      g_row_state[index_of(row)].shape[kHasFile].load(std::memory_order_acquire);
  const std::uint64_t duration = end - start;
  if (lane.busy || shape == 0 || duration >> 32 != 0 || t.level >= 0xfffe ||
      t.handed_seen != buffer::g_handed.load(std::memory_order_relaxed)) [[unlikely]] {
    return false;
  }
  const std::uint64_t id = buffer::take_id(t);
  if (id >= t.last_id) [[unlikely]]
    return false;
  lane.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (static_cast<std::size_t>(lane.end - lane.cursor) < kMost || !buffer::enter(t, lane))
      [[unlikely]] {
    lane.busy = false;
    return false;
  }
  Words to(lane.cursor);
  const std::uint64_t parent = t.parent;
  const std::uint64_t nested = parent != 0 ? 1 : 0;
  const std::uint64_t level = t.level + 1;
  const std::size_t size = kSize + (nested + (site != 0 ? 1 : 0)) * sizeof(std::uint64_t);
  to.put(size | kFront | nested * kNested | level << 48);
  to.put(shape | duration << 32);
  to.put(id);
  to.put(start);
  to.put(parent, nested);
  if constexpr (kHasFile) to.put(hash);
  (to.put(static_cast<std::uint64_t>(numbers.value)), ...);
  if constexpr (kIsNumber<R>) to.put(static_cast<std::uint64_t>(ret));
  to.put(site);  // outside of the record where there is none
  buffer::commit(lane, size);
  return true;
}

template <auto row, class R, class... F>
[[gnu::always_inline]] inline void record_call(buffer::ThreadState& t, File* file, int fd,
                                               std::uint64_t start, std::uint64_t end, R ret,
                                               const F&... fields) {
  const std::uint64_t site = site_of(t, caller_of_wrapper());
  if constexpr (kIsOwn<row> && (std::is_same_v<F, NumberArg> && ...)) {
    if (!has_failed(ret)) [[likely]] {
      if (file == nullptr) {
        if (record_quickly<row, false>(t, 0, start, end, ret, site, fields...)) return;
      } else if (file->announced.load(std::memory_order_relaxed) == buffer::announcing(t)) {
        if (record_quickly<row, true>(t, file->hash, start, end, ret, site, fields...)) return;
      }
    }
  }
  record_slowly<row>(t, file, fd, start, end, ret, site, fields...);
}

}  // namespace dft::intercept
