#include "intercept/rings.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/vfork.hpp"
#include "session/ring_gap.hpp"

namespace dft::intercept {

constinit RingCall g_enter{"io_uring_enter", {}};

namespace {

// Further rings of a process at the same time are not looked at.
constexpr std::size_t kMostRings = 256;
constexpr std::size_t kSlots = 2 * kMostRings;
constexpr std::uintptr_t kRemoved = 2;

struct MappedPart {
  const std::byte* at;
  std::size_t length;
};
// A ring of the program's own: what the kernel said about it, and where it was mapped.
struct OwnRing {
  RingParams params;
  MappedPart sq;
  MappedPart cq;
  MappedPart sqes;
};
struct KnownRing {
  std::atomic<std::uintptr_t> key{0};  // 0: never used
  std::atomic<bool> ready{false};
  Ring ring;
  OwnRing own{};
};
constinit KnownRing g_rings[kSlots];
std::atomic<std::size_t> g_count{0};      // rings
std::atomic<std::size_t> g_own_count{0};  // those that the program mapped itself
Lock g_lock;                              // of changes
int g_process = 0;                        // that began

std::uintptr_t key_of(const LiburingRing* ring) { return reinterpret_cast<std::uintptr_t>(ring); }
std::uintptr_t key_of(int fd) { return (static_cast<std::uintptr_t>(fd) << 2) + 5; }
bool is_own(std::uintptr_t key) { return (key & 1) != 0; }

std::size_t slot_of(std::uintptr_t key) {
  return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> 40) % kSlots;
}

KnownRing* find(std::uintptr_t key) {
  if (g_count.load(std::memory_order_relaxed) == 0) return nullptr;
  std::size_t slot = slot_of(key);
  for (std::size_t i = 0; i < kSlots; ++i, slot = (slot + 1) % kSlots) {
    const std::uintptr_t found = g_rings[slot].key.load(std::memory_order_acquire);
    if (found == key) return &g_rings[slot];
    if (found == 0) return nullptr;
  }
  return nullptr;
}

// Under the lock.
KnownRing* add(std::uintptr_t key) {
  KnownRing* known = find(key);
  if (known != nullptr) return known;
  if (g_count.load() >= kMostRings) return nullptr;
  std::size_t slot = slot_of(key);
  while (g_rings[slot].key.load() > kRemoved) slot = (slot + 1) % kSlots;
  known = &g_rings[slot];
  known->ready.store(false);
  known->own = {};
  known->key.store(key, std::memory_order_release);
  g_count.fetch_add(1);
  if (is_own(key)) g_own_count.fetch_add(1);
  return known;
}

bool can_read(const void* at, std::size_t size) {
  char copy[64];
  const iovec local{copy, size};
  const iovec remote{const_cast<void*>(at), size};
  return sys::call(SYS_process_vm_readv, sys::process_id(), &local, 1, &remote, 1, 0) ==
         static_cast<long>(size);
}

bool is_power_of_two(unsigned n) { return n != 0 && (n & (n - 1)) == 0; }

void count_unseen(std::uint64_t requests) {
  if (requests == 0) return;
  session::g_ring_gap.rings.fetch_add(1);
  session::g_ring_gap.requests.fetch_add(requests);
}

// The number of completions of a ring, as the kernel shows it.
std::uint64_t completions_of(int fd) {
  char path[48] = "/proc/self/fdinfo/";
  char* p = path + std::strlen(path);
  char digits[12];
  int n = 0;
  for (unsigned rest = static_cast<unsigned>(fd); n == 0 || rest != 0; rest /= 10)
    digits[n++] = static_cast<char>('0' + rest % 10);
  while (n > 0) *p++ = digits[--n];
  *p = '\0';
  const long file = sys::call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const long size = sys::call(SYS_read, file, text, sizeof text - 1);
  sys::call(SYS_close, file);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* at = std::strstr(text, "\nCqTail:");
  return at != nullptr ? std::strtoull(at + sizeof "\nCqTail:" - 1, nullptr, 10) : 0;
}

// Looks at a ring for the last time, in this recording or before it goes.
void finish_ring(KnownRing& known, bool goes) {
  buffer::ThreadState& t = buffer::t_thread;
  Ring& ring = known.ring;
  // A forked child leaves the requests of its parent alone.
  if (known.ready.load() && buffer::is_attached(t) && ring.generation() == t.generation &&
      ring.lock(t)) {
    count_unseen(ring.finish(t, record::ticks()));
    if (goes) ring.forget_queues();
    ring.unlock();
  }
  if (goes) known.ready.store(false);
}

void remove(KnownRing& known) {
  if (is_own(known.key.load())) g_own_count.fetch_sub(1);
  g_count.fetch_sub(1);
  known.key.store(kRemoved);
}

// The queues of a ring of liburing, if its struct is one.
bool queues_of(const LiburingRing& ring, RingQueues& out) {
  constexpr std::uintptr_t kWindow = 1 << 16;
  const auto in_ring = [](const void* base, const unsigned* field) {
    const auto from = reinterpret_cast<std::uintptr_t>(base);
    const auto at = reinterpret_cast<std::uintptr_t>(field);
    return from != 0 && at >= from && at - from < kWindow && at % alignof(unsigned) == 0;
  };
  if (!in_ring(ring.sq.ring, ring.sq.ktail) || !in_ring(ring.sq.ring, ring.sq.kring_mask) ||
      !in_ring(ring.sq.ring, ring.sq.kring_entries) || !in_ring(ring.cq.ring, ring.cq.ktail) ||
      !in_ring(ring.cq.ring, ring.cq.kring_mask) || !in_ring(ring.cq.ring, ring.cq.kring_entries) ||
      ring.sq.sqes == nullptr || ring.cq.cqes == nullptr || ring.ring_fd < 0) {
    return false;
  }
  for (const unsigned* field : {ring.sq.ktail, ring.sq.kring_mask, ring.sq.kring_entries,
                                ring.cq.ktail, ring.cq.kring_mask, ring.cq.kring_entries}) {
    if (!can_read(field, sizeof *field)) return false;
  }
  out = {ring.ring_fd,
         ring.flags,
         static_cast<const std::byte*>(ring.sq.sqes),
         nullptr,
         ring.sq.ktail,
         *ring.sq.kring_entries,
         static_cast<const std::byte*>(ring.cq.cqes),
         ring.cq.ktail,
         *ring.cq.kring_entries};
  const std::size_t sqe = (out.setup_flags & kSetupSqe128) != 0 ? 128 : 64;
  const std::size_t cqe = (out.setup_flags & kSetupCqe32) != 0 ? 32 : 16;
  return is_power_of_two(out.sq_entries) && is_power_of_two(out.cq_entries) &&
         *ring.sq.kring_mask == out.sq_entries - 1 && *ring.cq.kring_mask == out.cq_entries - 1 &&
         can_read(out.sqes + (out.sq_entries - 1) * sqe, 64) &&
         can_read(out.cqes + (out.cq_entries - 1) * cqe, 16);
}

[[gnu::noinline, gnu::cold]] Ring* meet(const LiburingRing* ring, unsigned seen) noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr || in_vfork_child()) return nullptr;
  const std::uint64_t generation = t->generation;
  const SlowPath slow;
  const Locked locked(g_lock);
  RingQueues queues;
  if (!queues_of(*ring, queues)) return nullptr;
  KnownRing* known = add(key_of(ring));
  if (known == nullptr || !known->ring.begin(queues, seen, generation)) return nullptr;
  known->ready.store(true, std::memory_order_release);
  return &known->ring;
}

}  // namespace

Ring* ring_of(const LiburingRing* ring) noexcept {
  KnownRing* known = find(key_of(ring));
  if (known != nullptr && known->ready.load(std::memory_order_acquire)) [[likely]]
    return &known->ring;
  if (!g_watched[static_cast<std::size_t>(Category::IO_URING)].load(std::memory_order_relaxed))
    return nullptr;
  return meet(ring, ring->sq.sqe_head);
}

void ring_begins(const LiburingRing* ring) noexcept {
  if (!g_watched[static_cast<std::size_t>(Category::IO_URING)].load(std::memory_order_relaxed))
    return;
  meet(ring, 0);
}

void ring_ends(const LiburingRing* ring) noexcept {
  KnownRing* known = find(key_of(ring));
  if (known == nullptr || in_vfork_child()) return;
  finish_ring(*known, true);
  const SlowPath slow;
  const Locked locked(g_lock);
  remove(*known);
}

void ring_was_set_up(int fd, const RingParams& params) noexcept {
  if (in_vfork_child() || buffer::this_thread() == nullptr) return;
  const SlowPath slow;
  const Locked locked(g_lock);
  KnownRing* known = add(key_of(fd));
  if (known == nullptr) return;
  known->ready.store(false);
  known->own = {};
  known->own.params = params;
  const RingParams& p = params;
  if ((p.flags & kSetupNoMmap) != 0) {
    const auto* rings = reinterpret_cast<const std::byte*>(p.cq_off.user_addr);
    known->own.sq = known->own.cq = {rings, ~std::size_t{0}};
    known->own.sqes = {reinterpret_cast<const std::byte*>(p.sq_off.user_addr), ~std::size_t{0}};
  }
}

void ring_was_mapped(int fd, std::uint64_t offset, void* at, std::size_t length) noexcept {
  constexpr std::uint64_t kSqRing = 0;
  constexpr std::uint64_t kCqRing = 0x8000000;
  constexpr std::uint64_t kSqes = 0x10000000;
  KnownRing* known = find(key_of(fd));
  if (known == nullptr || in_vfork_child()) return;
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr) return;
  const std::uint64_t generation = t->generation;
  const SlowPath slow;
  const Locked locked(g_lock);
  OwnRing& own = known->own;
  const RingParams& p = own.params;
  const MappedPart part{static_cast<const std::byte*>(at), length};
  if (offset == kSqRing) own.sq = part;
  if (offset == kCqRing || (offset == kSqRing && (p.features & kFeatureSingleMmap) != 0))
    own.cq = part;
  if (offset == kSqes) own.sqes = part;
  if (own.sq.at == nullptr || own.cq.at == nullptr || own.sqes.at == nullptr) return;
  const std::size_t sqe = (p.flags & kSetupSqe128) != 0 ? 128 : 64;
  const std::size_t cqe = (p.flags & kSetupCqe32) != 0 ? 32 : 16;
  const bool has_array = (p.flags & kSetupNoArray) == 0;
  if (!is_power_of_two(p.sq_entries) || !is_power_of_two(p.cq_entries) ||
      own.sqes.length < p.sq_entries * sqe || own.sq.length < p.sq_off.tail + sizeof(unsigned) ||
      (has_array && own.sq.length < p.sq_off.array + p.sq_entries * sizeof(unsigned)) ||
      own.cq.length < p.cq_off.tail + sizeof(unsigned) ||
      own.cq.length < p.cq_off.cqes + p.cq_entries * cqe) {
    return;
  }
  const auto word = [](const MappedPart& in, std::uint32_t where) {
    return reinterpret_cast<const unsigned*>(in.at + where);
  };
  const RingQueues queues{fd,
                          p.flags,
                          own.sqes.at,
                          has_array ? word(own.sq, p.sq_off.array) : nullptr,
                          word(own.sq, p.sq_off.tail),
                          p.sq_entries,
                          own.cq.at + p.cq_off.cqes,
                          word(own.cq, p.cq_off.tail),
                          p.cq_entries};
  if (known->ring.begin(queues, *queues.sq_tail, generation)) known->ready.store(true);
}

void memory_goes(const void* at, std::size_t length) noexcept {
  if (g_own_count.load(std::memory_order_relaxed) == 0 || in_vfork_child()) return;
  const auto* begin = static_cast<const std::byte*>(at);
  for (KnownRing& known : g_rings) {
    if (!is_own(known.key.load()) || !known.ready.load()) continue;
    for (const MappedPart& part : {known.own.sq, known.own.cq, known.own.sqes}) {
      if (begin < part.at + part.length && part.at < begin + length && known.ready.load())
        finish_ring(known, true);
    }
  }
}

void ring_closes(int fd) noexcept {
  if (in_vfork_child()) return;
  KnownRing* known = find(key_of(fd));
  if (known != nullptr && known->ready.load()) {
    finish_ring(*known, true);
  } else if (known != nullptr || sys::process_id() == g_process) {
    // Its queues are not known: what is left is the kernel's count.
    bool is_liburings = false;
    for (KnownRing& other : g_rings)
      is_liburings = is_liburings || (other.ready.load() && other.ring.queues().fd == fd);
    if (!is_liburings && (known == nullptr || known->own.sq.at == nullptr))
      count_unseen(completions_of(fd));
  }
  if (known == nullptr) return;
  const SlowPath slow;
  const Locked locked(g_lock);
  remove(*known);
}

Ring* ring_of(int fd) noexcept {
  KnownRing* known = find(key_of(fd));
  return known != nullptr && known->ready.load(std::memory_order_acquire) ? &known->ring : nullptr;
}

void ring_registered(Ring& ring, unsigned opcode, const void* argument, unsigned number) noexcept {
  enum Opcode : unsigned {
    kFiles = 2,
    kNoFiles = 3,
    kFilesUpdate = 6,
    kFiles2 = 13,
    kFilesUpdate2 = 14,
  };
  struct Update {
    std::uint32_t offset, reserved;
    std::uint64_t data, tags;
    std::uint32_t nr, reserved2;
  };
  struct Files {
    std::uint32_t nr, flags;
    std::uint64_t reserved, data, tags;
  };
  constexpr std::uint32_t kSparse = 1;
  buffer::ThreadState* t = watch(Category::IO_URING);
  if (t == nullptr || !ring.lock(*t)) return;
  const auto fds = [](std::uint64_t data) { return reinterpret_cast<const int*>(data); };
  if (opcode == kFiles) {
    ring.resize_files(number);
    ring.set_files(0, static_cast<const int*>(argument), number);
  } else if (opcode == kNoFiles) {
    ring.resize_files(0);
  } else if (opcode == kFilesUpdate || opcode == kFilesUpdate2) {
    Update update;
    std::memcpy(&update, argument, opcode == kFilesUpdate ? 16 : sizeof update);
    ring.set_files(update.offset, fds(update.data), opcode == kFilesUpdate ? number : update.nr);
  } else if (opcode == kFiles2) {
    Files files;
    std::memcpy(&files, argument, sizeof files);
    ring.resize_files(files.nr);
    if ((files.flags & kSparse) == 0 && files.data != 0)
      ring.set_files(0, fds(files.data), files.nr);
  }
  ring.unlock();
}

namespace {

// Rings that no intercepted call has made: the kernel shows them among the open descriptors.
void count_unknown_rings() {
  const long directory =
      sys::call(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  constexpr int kMost = 512;
  char entries[4096];
  int looked = 0;
  for (long n;
       looked < kMost && (n = sys::call(SYS_getdents64, directory, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < n && looked < kMost;) {
      struct Entry {
        std::uint64_t number, offset;
        std::uint16_t size;
        unsigned char type;
      } entry;
      std::memcpy(&entry, entries + at, sizeof entry);
      const char* name = entries + at + 19;
      at += entry.size;
      if (name[0] < '0' || name[0] > '9') continue;
      ++looked;
      char target[32];
      const long size = sys::call(SYS_readlinkat, directory, name, target, sizeof target);
      if (size <= 0 ||
          std::string_view(target, static_cast<std::size_t>(size)) != "anon_inode:[io_uring]") {
        continue;
      }
      const int fd = static_cast<int>(std::strtol(name, nullptr, 10));
      bool is_known = false;
      for (KnownRing& known : g_rings) {
        is_known = is_known || (known.key.load() > kRemoved && known.ready.load() &&
                                known.ring.queues().fd == fd);
      }
      if (!is_known) count_unseen(completions_of(fd));
    }
  }
  sys::call(SYS_close, directory);
}

}  // namespace

void rings_before_close(bool for_good) noexcept {
  buffer::ThreadState& t = buffer::t_thread;
  if (in_vfork_child() || !buffer::is_attached(t)) return;
  if (for_good && g_process == sys::process_id()) count_unknown_rings();
  if (g_count.load() == 0) return;
  for (KnownRing& known : g_rings) {
    Ring& ring = known.ring;
    if (known.key.load() <= kRemoved || !known.ready.load() || ring.generation() != t.generation)
      continue;
    // A program may have unmapped it by an instruction of its own.
    if (can_read(ring.queues().cq_tail, sizeof(unsigned)) &&
        can_read(ring.queues().cqes, sizeof(Cqe))) {
      finish_ring(known, false);
    }
  }
}

void begin_rings() noexcept { g_process = sys::process_id(); }

}  // namespace dft::intercept
