#include "intercept/intercept.hpp"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <new>

#include "base/hot.hpp"
#include "intercept/filter.hpp"
#include "intercept/got_patch.hpp"
#include "intercept/return_thunk.hpp"
#include "intercept/vfork.hpp"
#include "intercept/wrapper_list.hpp"
#include "session/session.hpp"

extern "C" void dftracer_preload_begin();
extern char** environ;

namespace dft::intercept {

Ids g_ids;
DFT_HOT constinit std::atomic<bool> g_watched[static_cast<std::size_t>(Set::kCount)] = {};
DFT_HOT constinit std::atomic<bool> g_details{true};

DFT_HOT constinit std::atomic<bool> g_decided{false};

namespace {

// Another allocator may be calling from the middle of its own beginning, and beginning ourselves
// takes memory.
bool is_libcs_allocator() {
  Dl_info allocator;
  Dl_info libc;
  void* at = ::dlsym(RTLD_DEFAULT, "malloc");
  return at != nullptr && ::dladdr(at, &allocator) != 0 &&
         ::dladdr(reinterpret_cast<void*>(::gnu_get_libc_version), &libc) != 0 &&
         allocator.dli_fbase == libc.dli_fbase;
}

}  // namespace

// libc fills in the environment when it is ready for others.
bool begin_early(Set set) noexcept {
  if (!is_preload() || environ == nullptr) return false;
  const sys::KeepErrno keep;
  const SlowPath slow;
  static std::atomic<int> can{0};
  if (can.load() == 0) can.store(is_libcs_allocator() ? 1 : -1);
  if (can.load() < 0) return false;
  dftracer_preload_begin();
  return g_watched[static_cast<std::size_t>(set)].load();
}

bool is_first_to_begin() noexcept { return !g_decided.exchange(true); }

namespace {

constexpr const char* kCategories[] = {"POSIX", "STDIO"};
constexpr std::size_t kLongestName = 40;  // of a function
static_assert(std::size(kCategories) == static_cast<std::size_t>(Set::kCount));
constexpr const char* text_of(Key key) {
  constexpr const char* kKeys[] = {
#define DFT_KEY(name) #name,
#include "intercept/keys.def"
  };
  return key == Key::errno_ ? "errno" : kKeys[static_cast<std::size_t>(key)];
}

std::uint32_t g_any_name = 0;  // for when the name table is full

// A row's name is interned when it first occurs: most programs use few of the functions.
[[gnu::noinline, gnu::cold]] std::uint32_t name_row(std::size_t row) noexcept {
  const std::uint32_t id = buffer::g_names.id(kWrappers[row].shown);
  if (id == 0) return g_any_name;
  g_row_state[row].name.store(id, std::memory_order_relaxed);
  return id;
}

}  // namespace

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
    add(text_of(key));
  };
  const char* name = kWrappers[row].shown;
  if (std::strlen(name) > kLongestName) return;
  add(name);
  *p++ = record::kShapeBar;
  add(kCategories[static_cast<std::size_t>(kWrappers[row].set)]);
  if (has_file) word(record::kShapeHash, Key::fhash);
  for (std::size_t i = 0; i < count; ++i) word(record::kShapeNumber, keys[i]);
  const std::uint32_t id = buffer::g_names.id({shape, static_cast<std::size_t>(p - shape)});
  g_row_state[row].shape[has_file].store(id, std::memory_order_relaxed);
}

namespace {

// One record, straight into the thread's chunk.
void emit_record(buffer::ThreadState* t, std::uint32_t name, Set set, std::uint64_t start,
                 std::uint64_t end, Note& note) noexcept {
  if (in_vfork_child()) [[unlikely]] {
    note.put(Key::child, record::ArgType::kInt, static_cast<std::uint64_t>(sys::process_id()));
  } else if (t->handed_seen != buffer::g_handed.load(std::memory_order_relaxed)) [[unlikely]] {
    buffer::take_back(*t);
  }
  const std::uint32_t size = note.size();
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
  const std::uint32_t level = t->level + 1;
  head.level = static_cast<std::uint16_t>(level < 0xffff ? level : 0xffff);
  head.name = name;
  head.category = g_ids.category[static_cast<std::size_t>(set)];
  head.id = buffer::new_id(*t);
  head.parent = t->parent;
  head.start = start;
  head.duration = end - start;
  std::memcpy(slot.at, &head, sizeof head);
  std::memcpy(slot.at + sizeof head, note.bytes(), size);
  buffer::commit(*slot.lane, total);
}

}  // namespace

void emit(buffer::ThreadState* t, std::size_t row, std::uint64_t start, std::uint64_t end,
          Note& note) noexcept {
  std::uint32_t name = g_row_state[row].name.load(std::memory_order_relaxed);
  if (name == 0) [[unlikely]]
    name = name_row(row);
  emit_record(t, name, kWrappers[row].set, start, end, note);
}

void emit_as(std::atomic<std::uint32_t>& id, const char* name, buffer::ThreadState* t,
             std::uint64_t start, std::uint64_t end, Note& note) noexcept {
  std::uint32_t known = id.load(std::memory_order_relaxed);
  if (known == 0) {
    known = buffer::g_names.id(name);
    id.store(known, std::memory_order_relaxed);
  }
  emit_record(t, known != 0 ? known : g_any_name, Set::POSIX, start, end, note);
}

namespace {

bool name_keys() {
  bool fine = true;
  const auto id = [&](const char* text) {
    const std::uint32_t got = buffer::g_names.id(text);
    fine &= got != 0;
    return got;
  };
  g_any_name = id("(call)");
  for (std::size_t i = 0; i < std::size(g_ids.key); ++i)
    g_ids.key[i] = id(text_of(static_cast<Key>(i)));
  for (std::size_t i = 0; i < std::size(kCategories); ++i) g_ids.category[i] = id(kCategories[i]);
  return fine;
}

// What signal handlers call is found beforehand: the loader's functions are not made for them.
constexpr Row kUsedByHandlers[] = {
    Row::read,   Row::write, Row::open, Row::open64, Row::openat, Row::close,   Row::lseek,
    Row::fstat,  Row::stat,  Row::dup,  Row::dup2,   Row::fcntl,  Row::fcntl64, Row::pipe,
    Row::unlink, Row::fsync, Row::fork, Row::execve, Row::_exit,  Row::_Exit,   Row::waitpid,
    Row::wait,   Row::pread, Row::mmap, Row::munmap, Row::access, Row::writev,  Row::syscall};

const Filter* make_filter(const session::Config& config) {
  char cwd[4096];
  const long n = sys::call(SYS_getcwd, cwd, sizeof cwd);
  const std::string_view here(cwd, n > 1 ? static_cast<std::size_t>(n) - 1 : 0);
  return new Filter(config.data_dirs, here);  // threads may look at it as long as the process lives
}

// Without arguments every record goes the general way.
void forget_shapes() {
  for (RowState& row : g_row_state) {
    row.shape[0].store(0);
    row.shape[1].store(0);
  }
}

void watch_sets(bool posix, bool stdio) {
  g_watched[static_cast<std::size_t>(Set::POSIX)].store(posix);
  g_watched[static_cast<std::size_t>(Set::STDIO)].store(stdio);
}

}  // namespace

void begin() noexcept try {
  const session::Config& config = session::config();
  g_decided.store(true);
  if (config.disable_io || !session::active()) return;
  SlowPath slow;
  if (!name_keys() || !set_filter(make_filter(config))) return;
  if (is_preload()) {
    for (const Row row : kUsedByHandlers) find_real(row);
  } else {
    find_all_real();
  }
  if (!config.inc_metadata) forget_shapes();
  g_details.store(config.inc_metadata);
  choose_way_back();
  watch_sets(!config.disable_posix, !config.disable_stdio);
  patch_objects(unpreloaded());
} catch (...) {
  end();
}

void end() noexcept {
  SlowPath slow;
  watch_sets(false, false);
  if (!is_preload()) restore_objects();
}

}  // namespace dft::intercept
