// Around every intercepted call: decide, call, record. On the program's threads; the real function
// is a parameter, so that a unit test can pass a fake.
#pragma once
#include <dirent.h>
#include <stdio.h>

#include <cstring>
#include <cwchar>
#include <type_traits>

#include "buffer/span.hpp"
#include "intercept/file_table.hpp"
#include "record/clock.hpp"

namespace dft::intercept {

enum class Key : std::uint8_t {
#define DFT_KEY(name) name,
#include "intercept/keys.def"
  kCount
};

// The table's families of functions, which can be switched off one by one.
enum class Set : std::uint8_t { POSIX, STDIO, kCount };

// Which libc a call goes to: the program's own, or that of a name space of its own
// (dlmopen.hpp), with other functions, other streams and another errno. The wrappers are made
// for both, from the same sources.
enum class Libc : std::uint8_t { kOwn, kOther };
template <Libc>
struct RowsOf {
  enum class Row : std::uint16_t {
#define DFT_ROW(set, symbol, ...) symbol,
#define DFT_ODD(set, symbol, ...) symbol,
#include "intercept/wrap.def"
    kCount
  };
};
using OwnRow = RowsOf<Libc::kOwn>::Row;
using OtherRow = RowsOf<Libc::kOther>::Row;
#ifdef DFT_OTHER_LIBC
using Row = OtherRow;
#else
using Row = OwnRow;
#endif
inline constexpr auto kRows = static_cast<std::size_t>(OwnRow::kCount);
template <class AnyRow>
constexpr std::size_t index_of(AnyRow row) {
  return static_cast<std::size_t>(row);
}
template <auto row>
inline constexpr bool kIsOwn = std::is_same_v<decltype(row), OwnRow>;

// What recording a call needs, known once interception begins.
struct Ids {
  std::uint32_t key[static_cast<std::size_t>(Key::kCount)];
  std::uint32_t category[static_cast<std::size_t>(Set::kCount)];
};
[[gnu::visibility("hidden")]] extern Ids g_ids;
DFT_HOT extern std::atomic<bool> g_watched[static_cast<std::size_t>(Set::kCount)];
DFT_HOT extern std::atomic<bool> g_details;  // record arguments: only then has a row a shape

// With the preload library, constructors of others may call before ours has run: the first call
// then begins the session. True when the set is watched now.
DFT_HOT extern std::atomic<bool> g_decided;
bool begin_early(Set set) noexcept;

// The calling thread, where its calls are recorded: not inside the tracer itself, and not before it
// begins.
[[gnu::always_inline]] inline buffer::ThreadState* watch(Set set) noexcept {
  if (!g_watched[static_cast<std::size_t>(set)].load(std::memory_order_relaxed) || t_slow != 0)
      [[unlikely]] {
    if (g_decided.load(std::memory_order_relaxed) || t_slow != 0 || !begin_early(set))
      return nullptr;
  }
  return buffer::this_thread();
}

struct alignas(32) RowState {
  // Found when it is first needed: calls come before our constructors have run.
  std::atomic<void*> real;
  // Of its short records, without a file and with one; 0 until it first occurs.
  std::atomic<std::uint32_t> shape[2];
  std::atomic<std::uint32_t> name;
};
[[gnu::visibility("hidden")]] extern RowState g_row_state[kRows];
void* find_real(OwnRow row) noexcept;
void find_all_real() noexcept;  // that everybody sees
void* find_real(OtherRow row) noexcept;
int errno_of_other() noexcept;
long missing() noexcept;
void* missing_pointer() noexcept;

template <class F>
struct Result;
template <class R, class... A>
struct Result<R(A...)> {
  using type = R;
};

template <class F>
F* found_or_missing(void* fn) noexcept {
  if (fn == nullptr) {
    fn = std::is_pointer_v<typename Result<F>::type> ? reinterpret_cast<void*>(missing_pointer)
                                                     : reinterpret_cast<void*>(missing);
  }
  return reinterpret_cast<F*>(fn);
}
template <class F>
[[gnu::always_inline]] inline F* real(OwnRow row) noexcept {
  void* fn = g_row_state[index_of(row)].real.load(std::memory_order_relaxed);
  if (fn == nullptr) [[unlikely]]
    return found_or_missing<F>(find_real(row));
  return reinterpret_cast<F*>(fn);
}
template <class F>
F* real(OtherRow row) noexcept {
  return found_or_missing<F>(find_real(row));
}

// Why the call has failed, as the libc that made it says.
template <auto row>
int reason() noexcept {
  if constexpr (kIsOwn<row>) {
    return errno;
  } else {
    return errno_of_other();
  }
}

// The arguments of one call in the form of the record.
class Note {
 public:
  void put(Key key, record::ArgType type, std::uint64_t word) noexcept {
    const record::Arg arg{g_ids.key[static_cast<std::size_t>(key)], type, {}, word};
    std::memcpy(bytes_ + used_, &arg, sizeof arg);
    used_ += sizeof arg;
  }
  void put_text(Key key, const char* text) noexcept {
    const std::size_t n = ::strnlen(text, kLongestText);
    put(key, record::ArgType::kString, n);
    if (n == 0) return;
    std::memset(bytes_ + used_ + record::padded(n) - 8, 0, 8);
    std::memcpy(bytes_ + used_, text, n);
    used_ += static_cast<std::uint32_t>(record::padded(n));
  }
  [[nodiscard]] const std::byte* bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }

 private:
  static constexpr std::size_t kLongestText = 160;
  std::uint32_t used_ = 0;
  alignas(8) std::byte bytes_[12 * sizeof(record::Arg) + kLongestText];
};

// One argument of a row: a number, a string, or a second file, by its path or its descriptor.
struct Number {
  Key key;
  std::int64_t value;
};
struct String {
  Key key;
  const char* text;
};
struct Optional {
  Key key;
  bool given;
  std::int64_t value;
};
struct Second {
  Key key;
  int directory;
  const char* path;
};
struct SecondOpen {
  Key key;
  int fd;
};
// Where a copy began: the kernel has moved on the offset that it was given, and has read it then.
inline Optional began_at(Key key, const off_t* offset, ssize_t copied) {
  if (offset == nullptr || copied < 0) return {key, false, 0};
  return {key, true, *offset - copied};
}
template <class T>
constexpr Number field(Key key, T value) {
  return {key, static_cast<std::int64_t>(value)};
}
constexpr String field(Key key, const char* text) { return {key, text}; }

// What a call is about.
struct Descriptor {
  int fd;
};
struct Stream {
  FILE* stream;
};
struct Path {
  int directory;
  const char* path;
};
struct Nothing {};
struct Unnamed {};
// Two files: the first names the event, and it is recorded if either is traced.
struct Descriptors {
  int fd;
  int other;
};
struct Paths {
  int directory;
  const char* path;
  int other_directory;
  const char* other;
};
inline Descriptors on_fds(int fd, int other) { return {fd, other}; }
inline Paths on_paths(int directory, const char* path, int other_directory, const char* other) {
  return {directory, path, other_directory, other};
}
inline Descriptor on_fd(int fd) { return {fd}; }
inline Stream on_stream(FILE* stream) { return {stream}; }
inline Path on_path(const char* path) { return {-100, path}; }
inline Path on_path(int directory, const char* path) { return {directory, path}; }
inline Nothing on_nothing() { return {}; }
inline Unnamed on_unnamed() { return {}; }

// Bytes that a call moved.
struct Moved {
  std::uint64_t read;
  std::uint64_t written;
};
template <class T>
constexpr Moved reads(T n) {
  return {static_cast<std::int64_t>(n) > 0 ? static_cast<std::uint64_t>(n) : 0, 0};
}
template <class T>
constexpr Moved writes(T n) {
  return {0, static_cast<std::int64_t>(n) > 0 ? static_cast<std::uint64_t>(n) : 0};
}
template <class T>
constexpr Moved both_ways(T n) {
  return {reads(n).read, reads(n).read};
}
// Moves bytes, which the kernel does not count as read and written.
template <class T>
constexpr Moved uncounted(T) {
  return {0, 0};
}
constexpr Moved moves_nothing() { return {0, 0}; }

void emit(buffer::ThreadState* t, std::size_t row, std::uint64_t start, std::uint64_t end,
          Note& note) noexcept;
// Under a name that is no row's, of category POSIX. 0: not known yet; the caller keeps it.
void emit_as(std::atomic<std::uint32_t>& id, const char* name, buffer::ThreadState* t,
             std::uint64_t start, std::uint64_t end, Note& note) noexcept;

// Results that say more than their type in C. All have the same form for the caller.
struct Void {};
using Line = unsigned char*;  // nothing more to read is not a failure
enum Character : int {};      // likewise
enum Count : ssize_t {};      // likewise
enum Written : int {};        // nothing written is one
template <class R>
constexpr bool has_failed(R ret) {
  if constexpr (std::is_same_v<R, FILE*> || std::is_same_v<R, DIR*> || std::is_same_v<R, void*> ||
                std::is_same_v<R, char*>) {
    return ret == nullptr || ret == reinterpret_cast<R>(-1);
  } else if constexpr (std::is_same_v<R, Written>) {
    return ret < 0;
  } else if constexpr (std::is_integral_v<R> && std::is_signed_v<R>) {
    return ret == -1;
  } else {
    return false;
  }
}
template <class R>
constexpr bool kIsNumber = std::is_integral_v<R> || std::is_enum_v<R>;
inline std::size_t length_of(Line line) {
  return line != nullptr ? std::strlen(reinterpret_cast<const char*>(line)) : 0;
}
inline std::size_t put_length(Written ret, const char* text) {
  return ret >= 0 ? std::strlen(text) : 0;
}
constexpr std::size_t one(int ret) { return ret >= 0 ? 1 : 0; }
// Wide characters are written as bytes of the locale.
inline std::size_t wide_length(const wchar_t* text) {
  std::mbstate_t state{};
  const std::size_t n = text != nullptr ? std::wcsrtombs(nullptr, &text, 0, &state) : 0;
  return n != static_cast<std::size_t>(-1) ? n : 0;
}
inline std::size_t wide_length(Line line) {
  return wide_length(reinterpret_cast<const wchar_t*>(line));
}
inline std::size_t put_length(Written ret, const wchar_t* text) {
  return ret >= 0 ? wide_length(text) : 0;
}
inline std::size_t wide_one(int ret) {
  const wchar_t text[] = {static_cast<wchar_t>(ret), L'\0'};
  return ret > 0 ? wide_length(text) : one(ret);
}
// -1 is an int like any other, unless the stream says otherwise.
inline std::size_t word_read(int ret, const FILE* stream) {
  constexpr int kEnded = 0x10 | 0x20;  // its flags for the end and for an error
  return ret == -1 && (stream->_flags & kEnded) != 0 ? 0 : sizeof(int);
}
// A buffer that inlined code will empty, without a further call.
inline std::size_t refilled(Character ret, FILE* stream) {
  return ret >= 0 ? 1 + static_cast<std::size_t>(stream->_IO_read_end - stream->_IO_read_ptr) : 0;
}
// Text that is read only if the call has succeeded with it.
template <class R>
constexpr const char* given(R ret, const char* text) {
  return has_failed(ret) ? nullptr : text;
}

// Makes a row's short records possible: says once what their words mean.
void name_words(std::size_t row, bool has_file, const Key* keys, std::size_t count) noexcept;

template <auto row, class R, class... F>
void name_words(bool has_file, const F&... numbers) noexcept {
  if (g_row_state[index_of(row)].shape[has_file].load(std::memory_order_relaxed) != 0) return;
  constexpr std::size_t kCount = sizeof...(F) + (kIsNumber<R> ? 1 : 0);
  static_assert(kCount + 1 <= record::kMostShapeWords);
  const Key keys[kCount + 1] = {numbers.key..., Key::ret};
  name_words(index_of(row), has_file, keys, kCount);
}

inline void put_file(buffer::ThreadState& t, Note& note, Key key, File& file, int fd) noexcept {
  if (file.hash == 0) return;
  if (file.announced.load(std::memory_order_relaxed) != buffer::announcing(t)) [[unlikely]]
    announce(t, file, fd);
  note.put(key, record::ArgType::kHash, file.hash);
}

inline void put_field(buffer::ThreadState&, Note& note, const Number& f) noexcept {
  note.put(f.key, record::ArgType::kInt, static_cast<std::uint64_t>(f.value));
}
inline void put_field(buffer::ThreadState&, Note& note, const Optional& f) noexcept {
  if (f.given) note.put(f.key, record::ArgType::kInt, static_cast<std::uint64_t>(f.value));
}
inline void put_field(buffer::ThreadState&, Note& note, const String& f) noexcept {
  if (f.text != nullptr) note.put_text(f.key, f.text);
}
inline void put_field(buffer::ThreadState& t, Note& note, const Second& f) noexcept {
  put_file(t, note, f.key, *file_at(f.directory, f.path), -1);
}

inline void put_field(buffer::ThreadState& t, Note& note, const SecondOpen& f) noexcept {
  put_file(t, note, f.key, *file_of(f.fd), f.fd);
}

// The general way: arguments of all kinds, files that the trace does not know yet, signal handlers.
template <auto row, class R, class... F>
[[gnu::noinline, gnu::cold]] void record_slowly(buffer::ThreadState& t, File* file, int fd,
                                                std::uint64_t start, std::uint64_t end, R ret,
                                                const F&... fields) {
  Note note;
  if (file != nullptr) put_file(t, note, Key::fhash, *file, fd);
  if (g_details.load(std::memory_order_relaxed)) {
    if constexpr ((std::is_same_v<F, Number> && ...))
      name_words<row, R>(file != nullptr, fields...);
    (put_field(t, note, fields), ...);
    if constexpr (kIsNumber<R>)
      note.put(Key::ret, record::ArgType::kInt, static_cast<std::uint64_t>(ret));
    if (has_failed(ret))
      note.put(Key::errno_, record::ArgType::kInt, static_cast<std::uint64_t>(reason<row>()));
  }
  emit(&t, index_of(row), start, end, note);
}

// Eight bytes at a time, as they will be read: a wider read of narrower stores would wait for them.
class Words {
 public:
  explicit Words(std::byte* at) : at_(at) {}
  // The next one takes its place if it does not count.
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

// A call with numbers only, straight into the thread's chunk, where nothing unusual is in the way.
// With a file whose hash is known, or with none.
template <auto row, bool kHasFile, class R, class... F>
[[gnu::always_inline]] inline bool record_quickly(buffer::ThreadState& t, std::uint64_t hash,
                                                  std::uint64_t start, std::uint64_t end, R ret,
                                                  const F&... numbers) {
  constexpr std::size_t kWords = (kHasFile ? 1 : 0) + sizeof...(F) + (kIsNumber<R> ? 1 : 0);
  constexpr std::size_t kSize = sizeof(record::Call) + kWords * sizeof(std::uint64_t);
  constexpr std::size_t kMost = kSize + sizeof t.parent;
  constexpr std::uint64_t kFront = static_cast<std::uint64_t>(record::Kind::kCall) << 32;
  constexpr std::uint64_t kNested = static_cast<std::uint64_t>(record::kNested) << 40;
  buffer::Lane& lane = t.lane;
  const std::uint64_t shape =
      g_row_state[index_of(row)].shape[kHasFile].load(std::memory_order_relaxed);
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
  to.put((kSize + nested * sizeof parent) | kFront | nested * kNested | level << 48);
  to.put(shape | duration << 32);
  to.put(id);
  to.put(start);
  to.put(parent, nested);
  if constexpr (kHasFile) to.put(hash);
  (to.put(static_cast<std::uint64_t>(numbers.value)), ...);
  if constexpr (kIsNumber<R>) to.put(static_cast<std::uint64_t>(ret));
  buffer::commit(lane, kSize + nested * sizeof parent);
  return true;
}

template <auto row, class R, class... F>
[[gnu::always_inline]] inline void record_call(buffer::ThreadState& t, File* file, int fd,
                                               std::uint64_t start, std::uint64_t end, R ret,
                                               const F&... fields) {
  if constexpr (kIsOwn<row> && (std::is_same_v<F, Number> && ...)) {
    if (!has_failed(ret)) [[likely]] {
      if (file == nullptr) {
        if (record_quickly<row, false>(t, 0, start, end, ret, fields...)) return;
      } else if (file->announced.load(std::memory_order_relaxed) == buffer::announcing(t)) {
        if (record_quickly<row, true>(t, file->hash, start, end, ret, fields...)) return;
      }
    }
  }
  record_slowly<row>(t, file, fd, start, end, ret, fields...);
}

[[gnu::always_inline]] inline void count_bytes(buffer::ThreadState& t,
                                               const Moved& moved) noexcept {
  using buffer::Tally;
  if (moved.read != 0) Tally::add(t.tally->read, moved.read);
  if (moved.written != 0) Tally::add(t.tally->written, moved.written);
}

// The calls below are not noexcept: read() is a cancellation point, and a cancelled thread unwinds
// through these frames. errno stays as the real call left it.

[[gnu::always_inline]] inline void count_call(buffer::ThreadState& t, const Moved& moved) noexcept {
  buffer::Tally::add(t.tally->recorded, 1);
  count_bytes(t, moved);
}

// A call that is not recorded still counts.
[[gnu::always_inline]] inline void count_filtered(buffer::ThreadState& t,
                                                  const Moved& moved) noexcept {
  buffer::Tally::add(t.tally->filtered, 1);
  count_bytes(t, moved);
}

// About open files: whether they are traced is known before the call.
template <auto row, Set set, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe_open(buffer::ThreadState& t, File* file, bool traced,
                                              int fd, Call call, Bytes bytes, F... fields) {
  if (!traced) {
    const auto ret = call();
    count_filtered(buffer::t_thread, bytes(ret));
    return ret;
  }
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  count_call(t, bytes(ret));
  record_call<row>(t, file, fd, start, end, ret, fields(ret)...);
  return ret;
}

template <auto row, Set set, class Call, class... F>
[[gnu::always_inline]] inline auto probe(Descriptor about, Call call, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  File* file = file_of(about.fd);
  return probe_open<row, set>(*t, file, file->traced, about.fd, call, fields...);
}

template <auto row, Set set, class Call, class... F>
[[gnu::always_inline]] inline auto probe(Descriptors about, Call call, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  File* file = file_of(about.fd);
  const bool traced = file->traced || file_of(about.other)->traced;
  return probe_open<row, set>(*t, file, traced, about.fd, call, fields...);
}

inline int descriptor_of(FILE* stream) noexcept {
  return stream != nullptr ? ::fileno_unlocked(stream) : -1;
}
inline int descriptor_of(DIR* stream) noexcept { return stream != nullptr ? ::dirfd(stream) : -1; }
// What goes into memory does not reach the kernel.
template <class Bytes>
struct InMemory {
  Bytes bytes;
  bool really;
  template <class R>
  Moved operator()(R ret) const {
    return really ? bytes(ret) : Moved{0, 0};
  }
};

template <auto row, Set set, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe(Stream about, Call call, Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  const int fd = descriptor_of(about.stream);
  File* file = file_of(fd);
  return probe_open<row, set>(*t, file, file->traced, fd, call, InMemory<Bytes>{bytes, fd >= 0},
                              fields...);
}

// The kernel tells whether a path can be read, without harm if it cannot.
inline bool kernel_reads(const char* path) noexcept {
  return path != nullptr && sys::call(SYS_faccessat, AT_FDCWD, path, 0) != -EFAULT;
}
// Reasons that the kernel gives only after it has read the path. Others, a wrong flag among them,
// may come before.
constexpr bool follows_reading(int error) {
  return error == ENOENT || error == EEXIST || error == ENOTDIR || error == EACCES ||
         error == EISDIR || error == ENOTEMPTY || error == ENODATA || error == EROFS;
}

// About paths, which are read only once the kernel has accepted them.
template <auto row, Set set, bool kTwo = false, class Can, class Quick, class Find, class Call,
          class Bytes, class... F>
[[gnu::always_inline]] inline auto probe_path(Can can_be_read, Quick may_be, Find find, Call call,
                                              Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const bool readable =
      !has_failed(ret) || (!kTwo && follows_reading(reason<row>())) || can_be_read();
  if (readable && !may_be()) {
    count_filtered(*t, bytes(ret));
    return ret;
  }
  const std::uint64_t end = record::ticks();
  if (!readable) [[unlikely]] {
    count_call(*t, bytes(ret));
    if (g_nameless.traced) record_call<row>(*t, nullptr, -1, start, end, ret);
    return ret;
  }
  bool traced = false;
  File* file = find(traced);
  if (!traced) {
    count_filtered(*t, bytes(ret));
    return ret;
  }
  count_call(*t, bytes(ret));
  record_call<row>(*t, file, -1, start, end, ret, fields(ret)...);
  return ret;
}

template <auto row, Set set, class Call, class... F>
[[gnu::always_inline]] inline auto probe(Path about, Call call, F... fields) {
  const auto find = [about](bool& traced) {
    File* file = file_at(about.directory, about.path);
    traced = file->traced;
    return file;
  };
  return probe_path<row, set>([about] { return kernel_reads(about.path); },
                              [about] { return may_be_traced(about.path); }, find, call, fields...);
}

template <auto row, Set set, class Call, class... F>
[[gnu::always_inline]] inline auto probe(Paths about, Call call, F... fields) {
  const auto may_be = [about] { return may_be_traced(about.path) || may_be_traced(about.other); };
  const auto find = [about](bool& traced) {
    File* file = file_at(about.directory, about.path);
    traced = file->traced || file_at(about.other_directory, about.other)->traced;
    return file;
  };
  const auto can = [about] { return kernel_reads(about.path) && kernel_reads(about.other); };
  // The kernel may have given up before it came to the second.
  return probe_path<row, set, true>(can, may_be, find, call, fields...);
}

// About something that lies below no directory.
template <auto row, Set set, class Call, class... F>
[[gnu::always_inline]] inline auto probe(Unnamed, Call call, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  return probe_open<row, set>(*t, nullptr, g_nameless.traced, -1, call, fields...);
}

// About processes: always recorded.
template <auto row, Set set, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe(Nothing, Call call, Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(set);
  if (t == nullptr) [[unlikely]]
    return call();
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  count_call(*t, bytes(ret));
  record_call<row>(*t, nullptr, -1, start, end, ret, fields(ret)...);
  return ret;
}

}  // namespace dft::intercept
