#include "intercept/file_table.hpp"

#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/span.hpp"
#include "format/hash.hpp"
#include "intercept/filter.hpp"
#include "intercept/vfork.hpp"

namespace dft::intercept {
namespace {

// Finds a path's File by a 64-bit key, in sets of four entries, one cache line each, or in the
// neighboring set. An entry is two words whose exclusive-or is the key: a torn one matches nothing,
// so that neither side needs a lock. An evicted entry costs a second FH record, nothing else.
struct PathEntry {
  std::atomic<std::uint64_t> check;
  std::atomic<std::uint64_t> file;
};
constexpr std::uint64_t kWays = 4;
struct alignas(64) Set {
  PathEntry entry[kWays];
};
struct PathTable {
  std::uint64_t mask;  // sets less one
  std::uint64_t used;
  Set* sets;
};
constexpr std::uint64_t kFirstSets = 256;
constexpr std::uint64_t kMostSets = std::uint64_t{1} << 19;
constexpr std::uint64_t kGrowth = 8;

// Paths are kept up to this much memory. Past it a file keeps only its hash, and past the second
// limit all further files share one entry.
constexpr std::size_t kMostPathBytes = std::size_t{32} << 20;
constexpr std::size_t kMostBytes = std::size_t{96} << 20;
constexpr std::size_t kArena = std::size_t{256} << 10;
// Sockets are told apart by peer and descriptor up to this number of names, by peer alone up to
// twice as many: a server may have any number of clients, and files must have names as well.
constexpr std::size_t kMostSockets = 8192;
constexpr std::size_t kLongestPath = 8192;
constexpr std::size_t kMostRead =
    4096;  // of a path that is given to the kernel, which reads no more

Lock g_lock;  // of all below but the atomics
std::atomic<PathTable*> g_table{nullptr};
std::atomic<const Filter*> g_filter{nullptr};
std::atomic<File*> g_cwd{nullptr};
char* g_arena = nullptr;
std::size_t g_arena_left = 0;
std::size_t g_kept = 0;
std::size_t g_sockets = 0;      // names of sockets among them
char g_text[2 * kLongestPath];  // under the lock: a signal handler's stack may be small
constinit std::atomic<DescriptorBlock*> g_descriptors[kDescriptorBlocks] = {};

alignas(File) std::byte g_nameless_memory[sizeof(File) + 8];
alignas(File) std::byte g_elsewhere_memory[sizeof(File) + 8];
alignas(File) std::byte g_crowd_memory[sizeof(File) + 8];

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load8(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

std::uint64_t key_of(std::uint64_t seed, const char* text, std::size_t n) {
  std::uint64_t h = seed ^ 0x9e3779b97f4a7c15u ^ n;
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    h = mix(load8(text + i) ^ 0xa0761d6478bd642fu ^ h, load8(text + i + 8) ^ 0xe7037ed1a0b428dbu);
  std::uint64_t tail[2] = {0, 0};
  std::memcpy(tail, text + i, n - i);
  h = mix(tail[0] ^ 0x8ebc6af09c88c6e3u ^ h, tail[1] ^ 0x589965cc75374cc3u);
  return mix(h, 0x1d8e4e27c47d124fu) | 1;
}

File* find(const PathTable* table, std::uint64_t key) {
  if (table == nullptr) return nullptr;
  const std::uint64_t first = (key >> 20) & table->mask;
  for (const std::uint64_t index : {first, first ^ 1}) {
    for (const PathEntry& entry : table->sets[index].entry) {
      const std::uint64_t file = entry.file.load(std::memory_order_acquire);
      if ((entry.check.load(std::memory_order_relaxed) ^ file) == key && file != 0)
        return reinterpret_cast<File*>(file);
    }
  }
  return nullptr;
}

void place(PathTable& table, std::uint64_t key, std::uint64_t file) {
  const std::uint64_t first = (key >> 20) & table.mask;
  PathEntry* to = nullptr;
  for (const std::uint64_t index : {first, first ^ 1}) {
    for (PathEntry& entry : table.sets[index].entry) {
      if (to == nullptr && entry.file.load(std::memory_order_relaxed) == 0) to = &entry;
    }
  }
  if (to != nullptr) {
    ++table.used;
  } else {
    to = &table.sets[first].entry[(key >> 3) % kWays];
  }
  to->check.store(key ^ file, std::memory_order_relaxed);
  to->file.store(file, std::memory_order_release);
}

PathTable* new_table(std::uint64_t sets) {
  const std::size_t size = sizeof(Set) + sets * sizeof(Set);
  auto* memory = static_cast<std::byte*>(sys::map_private(size));
  if (memory == nullptr) return nullptr;
  auto* table = reinterpret_cast<PathTable*>(memory);
  table->mask = sets - 1;
  table->used = 0;
  table->sets = reinterpret_cast<Set*>(memory + sizeof(Set));
  return table;
}

// The old table stays: a signal handler or a thread may be in the middle of a lookup.
void grow() {
  PathTable* old = g_table.load();
  const std::uint64_t sets = old->mask + 1;
  if (old->used < sets * kWays / 2 || sets >= kMostSets) return;
  PathTable* fresh = new_table(sets * kGrowth < kMostSets ? sets * kGrowth : kMostSets);
  if (fresh == nullptr) return;
  for (std::uint64_t i = 0; i < sets; ++i) {
    for (const PathEntry& entry : old->sets[i].entry) {
      const std::uint64_t file = entry.file.load();
      if (file != 0) place(*fresh, entry.check.load() ^ file, file);
    }
  }
  g_table.store(fresh, std::memory_order_release);
}

File* crowd() {
  auto* file = reinterpret_cast<File*>(g_crowd_memory);
  static constexpr std::string_view kName = "(more files than are kept apart)";
  file->hash = format::hash16(kName);
  file->traced = g_filter.load() == nullptr || g_filter.load()->admits_unknown();
  return file;
}

// A File for the absolute path; the caller holds the lock.
File* make(std::string_view path, bool keeps_path) {
  keeps_path &= g_kept + path.size() < kMostPathBytes;
  const std::size_t size = sizeof(File) + (keeps_path ? record::padded(path.size() + 1) : 0);
  if (g_kept + size > kMostBytes) return crowd();
  if (g_arena_left < size) {
    const std::size_t arena = size > kArena ? size : kArena;
    auto* memory = static_cast<char*>(sys::map_private(arena));
    if (memory == nullptr) return crowd();
    g_arena = memory;
    g_arena_left = arena;
  }
  auto* file = reinterpret_cast<File*>(g_arena);
  g_arena += size;
  g_arena_left -= size;
  g_kept += size;
  file->hash = format::hash16(path);
  if (file->hash == 0) file->hash = 1;
  file->key = key_of(0x5bd1e995, path.data(), path.size());
  const Filter* filter = g_filter.load();
  file->traced = filter == nullptr || filter->admits(path);
  if (keeps_path) {
    file->length = static_cast<std::uint32_t>(path.size());
    std::memcpy(file->path, path.data(), path.size());
  }
  return file;
}

File* intern(std::string_view path) {
  const std::uint64_t key = key_of(0, path.data(), path.size());
  PathTable* table = g_table.load();
  if (table == nullptr) return crowd();
  if (File* known = find(table, key)) return known;
  File* file = make(path, true);
  place(*table, key, reinterpret_cast<std::uint64_t>(file));
  grow();
  return file;
}

// What the kernel calls an open descriptor; the caller holds the lock. 0 when it does not know it.
std::size_t name_of(int fd, char* to, std::size_t room) {
  char link[32] = "/proc/self/fd/";
  char digits[12];
  int n = 0;
  auto rest = static_cast<unsigned>(fd);
  do digits[n++] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) != 0);
  char* end = link + 14;
  while (n > 0) *end++ = digits[--n];
  *end = '\0';
  const long got = sys::call(SYS_readlinkat, AT_FDCWD, link, to, room);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

File* intern_socket(std::string_view text, const SocketName& name) {
  PathTable* table = g_table.load();
  if (table == nullptr) return crowd();
  const auto known = [table](std::string_view wanted) {
    return find(table, key_of(0, wanted.data(), wanted.size()));
  };
  std::string_view shown = text.substr(0, name.length);
  File* file = known(shown);
  if (file == nullptr && g_sockets >= kMostSockets) file = known(shown = text.substr(0, name.bare));
  char rest[64];
  if (file == nullptr && g_sockets >= 2 * kMostSockets) {
    static constexpr std::string_view kRest = "(more peers than are kept apart)";
    const std::size_t scheme = shown.find(':') < 16 ? shown.find(':') + 1 : 0;
    std::memcpy(rest, shown.data(), scheme);
    std::memcpy(rest + scheme, kRest.data(), kRest.size());
    file = known(shown = {rest, scheme + kRest.size()});
  }
  if (file != nullptr) return file;
  file = intern(shown);
  file->peers = name.peers;
  ++g_sockets;
  return file;
}

// Names a socket; the caller holds the lock. `known` is what the kernel calls it.
File* file_of_socket(int fd, const SocketFacts& facts, std::string_view known) {
  char* text = g_text + kLongestPath;  // `known` may be in the first half
  const SocketName name = name_socket(facts, known, fd, text);
  return intern_socket({text, kLongestSocketName}, name);
}

// nullptr when it cannot be named: it was removed, or lies outside of what the process can see.
File* current_directory() {
  if (File* known = g_cwd.load()) return known;
  char* text = g_text;
  const long n = sys::call(SYS_getcwd, text, kLongestPath);
  if (n <= 1 || text[0] != '/') return nullptr;
  File* file = intern({text, static_cast<std::size_t>(n) - 1});
  if (file->length != 0 && !in_vfork_child()) g_cwd.store(file);
  return file;
}

// Builds the absolute path of a new file in g_text; the caller holds the lock.
std::string_view build(const File* base, int directory, std::string_view path) {
  char* text = g_text;
  std::size_t used = 0;
  if (base != nullptr) {
    if (base->length != 0) {
      used = base->length;
      std::memcpy(text, base->path, used);
    } else if (directory >= 0) {
      used = name_of(directory, text, kLongestPath);
    }
    if (used == 0 || text[0] != '/') used = 0;
  }
  return {text, append_normal(text, used, path)};
}

// What relative paths are relative to; its name must be known.
const File* base_of(int directory) {
  const File* base = file_of(directory);
  return base == &g_elsewhere ? discover(directory) : base;
}

[[gnu::noinline, gnu::cold]] File* add(int directory, std::string_view path) {
  SlowPath slow;
  const File* base = nullptr;
  if (path[0] != '/' && directory >= 0) base = base_of(directory);
  if (base == &g_nameless) return &g_nameless;
  Locked locked(g_lock);
  if (path[0] != '/' && directory < 0) {
    base = current_directory();
    if (base == nullptr) return &g_nameless;
  }
  const std::uint64_t key = key_of(base != nullptr ? base->key : 0, path.data(), path.size());
  PathTable* table = g_table.load();
  if (table == nullptr) return crowd();
  if (File* known = find(table, key)) return known;
  File* file = make(build(base, directory, path), true);
  place(*table, key, reinterpret_cast<std::uint64_t>(file));
  grow();
  return file;
}

File* known(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kDescriptorBlock * kDescriptorBlocks) return nullptr;
  const DescriptorBlock* block =
      g_descriptors[number / kDescriptorBlock].load(std::memory_order_acquire);
  return block != nullptr ? (*block)[number % kDescriptorBlock].load(std::memory_order_acquire)
                          : nullptr;
}

DescriptorBlock* block_for(unsigned number) {
  auto& place_of_block = g_descriptors[number / kDescriptorBlock];
  DescriptorBlock* block = place_of_block.load(std::memory_order_acquire);
  if (block != nullptr) return block;
  SlowPath slow;
  auto* fresh = number < kDescriptorBlock
                    ? &g_first_descriptors
                    : static_cast<DescriptorBlock*>(sys::map_private(sizeof(DescriptorBlock)));
  if (fresh == nullptr) return nullptr;
  if (place_of_block.compare_exchange_strong(block, fresh)) return fresh;
  if (fresh != &g_first_descriptors) sys::unmap(fresh, sizeof(DescriptorBlock));
  return block;
}

}  // namespace

constinit DescriptorBlock g_first_descriptors = {};
File& g_nameless = *reinterpret_cast<File*>(g_nameless_memory);
File& g_elsewhere = *reinterpret_cast<File*>(g_elsewhere_memory);

void set_file_of(int fd, File* file) noexcept {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kDescriptorBlock * kDescriptorBlocks || in_vfork_child()) return;
  if (file == nullptr && g_descriptors[number / kDescriptorBlock].load() == nullptr) return;
  if (DescriptorBlock* block = block_for(number))
    (*block)[number % kDescriptorBlock].store(file, std::memory_order_release);
}

void forget_descriptors(unsigned first, unsigned last) noexcept {
  if (in_vfork_child()) return;
  constexpr unsigned kMost = kDescriptorBlock * kDescriptorBlocks - 1;
  for (unsigned fd = first; fd <= last && fd <= kMost; ++fd) {
    DescriptorBlock* block = g_descriptors[fd / kDescriptorBlock].load();
    if (block == nullptr) {
      fd |= kDescriptorBlock - 1;
      continue;
    }
    (*block)[fd % kDescriptorBlock].store(nullptr, std::memory_order_release);
  }
}

[[gnu::noinline, gnu::cold]] File* look_up(int fd) noexcept {
  File* file = known(fd);
  return file != nullptr ? file : discover(fd);
}

[[gnu::noinline, gnu::cold]] File* discover(int fd) noexcept {
  if (fd < 0) return &g_nameless;
  SlowPath slow;
  Locked locked(g_lock);
  char* text = g_text;
  const std::size_t n = name_of(fd, text, kLongestPath);
  if (n == 0) return &g_nameless;
  const std::string_view name(text, n);
  File* file = name.starts_with("socket:") ? file_of_socket(fd, facts_of(fd), name) : intern(name);
  set_file_of(fd, file);
  return file;
}

[[gnu::noinline, gnu::cold]] File* name_connection(int fd, const SocketFacts& facts) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  char* text = g_text;
  const bool named = facts.peer.is_inet();
  const std::size_t n = named ? 0 : name_of(fd, text, kLongestPath);
  if (!named && n == 0) return &g_nameless;
  File* file = file_of_socket(fd, facts, {text, n});
  set_file_of(fd, file);
  return file;
}

[[gnu::noinline, gnu::cold]] File* add_peer(int fd, const File& socket, std::uint64_t key,
                                            const SocketAddress& peer) noexcept {
  SocketFacts facts;
  facts.type = type_of_socket(fd);
  facts.side = socket.peers == Peers::kHere ? Side::kAccepted : Side::kConnecting;
  facts.peer = peer;
  facts.local = SocketAddress::local_of(fd);
  SlowPath slow;
  Locked locked(g_lock);
  PathTable* table = g_table.load();
  if (table == nullptr) return crowd();
  File* file = file_of_socket(fd, facts, "socket:");
  if (g_sockets < kMostSockets) place(*table, key, reinterpret_cast<std::uint64_t>(file));
  grow();
  return file;
}

File* file_of_peer(int fd, const File& socket, const SocketAddress& peer) noexcept {
  SocketAddress shown = peer;
  if (socket.peers == Peers::kHere) shown.drop_port();  // a client's port says nothing
  const std::uint64_t seed = socket.key + g_host_changes.load(std::memory_order_acquire);
  const std::uint64_t key = key_of(seed, reinterpret_cast<const char*>(shown.bytes), shown.length);
  if (File* known = find(g_table.load(std::memory_order_acquire), key)) return known;
  return add_peer(fd, socket, key, shown);
}

File* file_at(int directory, const char* path) noexcept {
  if (path == nullptr) return directory >= 0 ? file_of(directory) : &g_nameless;
  if (path[0] == '\0') {
    if (directory >= 0) return file_of(directory);
    path = ".";
  }
  const std::size_t n = ::strnlen(path, kMostRead);
  const File* base = nullptr;
  if (path[0] != '/') {
    if (directory < 0 && directory != AT_FDCWD) return &g_nameless;
    base = directory >= 0 ? base_of(directory) : g_cwd.load(std::memory_order_acquire);
    if (base == nullptr) return add(directory, {path, n});
  }
  const std::uint64_t key = key_of(base != nullptr ? base->key : 0, path, n);
  if (File* known = find(g_table.load(std::memory_order_acquire), key)) [[likely]]
    return known;
  return add(directory, {path, n});
}

bool may_be_traced(const char* path) noexcept {
  const Filter* filter = g_filter.load(std::memory_order_acquire);
  return filter == nullptr || path == nullptr || filter->may_admit(path);
}

void copy_file_of(int from, int to) noexcept { set_file_of(to, known(from)); }

File* take_file_of(int fd) noexcept {
  File* file = file_of(fd);
  set_file_of(fd, nullptr);
  return file;
}

void know_cwd() noexcept {
  if (g_cwd.load(std::memory_order_relaxed) != nullptr) return;
  SlowPath slow;
  Locked locked(g_lock);
  current_directory();
}

void forget_cwd() noexcept {
  if (!in_vfork_child()) g_cwd.store(nullptr);
}

[[gnu::noinline, gnu::cold]] void announce(buffer::ThreadState& t, File& file, int fd) noexcept {
  const std::uint64_t stamp = buffer::announcing(t);
  SlowPath slow;
  Locked locked(g_lock);
  std::string_view path(file.path, file.length);
  if (&file == reinterpret_cast<File*>(g_crowd_memory)) path = "(more files than are kept apart)";
  if (path.empty() && fd >= 0) path = {g_text, name_of(fd, g_text, kLongestPath)};
  if (path.empty()) return;
  record::Head head{};
  head.kind = record::Kind::kFile;
  head.id = file.hash;
  if (!buffer::write_text(t.live, head, path)) return;
  file.announced.store(stamp);
}

bool set_filter(const Filter* filter) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  PathTable* table = new_table(kFirstSets);
  if (table == nullptr) return false;
  g_filter.store(filter);
  g_nameless.traced = filter->admits_unknown();
  g_cwd.store(nullptr);
  g_table.store(table, std::memory_order_release);
  forget_descriptors(0, ~0u);
  return true;
}

}  // namespace dft::intercept
