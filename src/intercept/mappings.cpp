#include "intercept/mappings.hpp"

#include <time.h>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/vfork.hpp"

namespace dft::intercept {
namespace {

// Further files mapped at the same time are treated as memory.
struct Mapping {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;  // 0: free
  std::atomic<File*> file;
  std::uint64_t offset;
  std::uint64_t made_ns;
  bool reported;
};
Mapping g_mappings[kMostMappings];
std::atomic<std::size_t> g_used{0};  // none is in use from here on
Lock g_lock;                         // of changes
MappedRange g_gone[kMostGone];       // the last ones, in a ring
std::size_t g_gone_count = 0;

void add(const MappedRange& range) {
  for (std::size_t i = 0; i < kMostMappings; ++i) {
    Mapping& m = g_mappings[i];
    if (m.end.load() != 0) continue;
    m.begin.store(range.begin);
    m.file.store(range.file);
    m.offset = range.offset;
    m.made_ns = range.made_ns;
    m.reported = range.reported;
    m.end.store(range.end, std::memory_order_release);
    if (i >= g_used.load()) g_used.store(i + 1);
    return;
  }
}

MappedRange range_of(const Mapping& m) {
  return {m.begin.load(), m.end.load(), m.file.load(), m.offset, m.made_ns, kThere, m.reported};
}

// The part of a range between two addresses inside it.
MappedRange part_of(const MappedRange& whole, std::uintptr_t begin, std::uintptr_t end) {
  MappedRange part = whole;
  part.begin = begin;
  part.end = end;
  part.offset += begin - whole.begin;
  return part;
}

}  // namespace

std::uint64_t wall_clock_ns() noexcept {
  timespec now{};
  sys::call(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void remember_mapping(const void* at, std::size_t length, File* file,
                      std::uint64_t offset) noexcept {
  if (in_vfork_child()) return;
  forget_mapping(at, length);
  SlowPath slow;
  Locked locked(g_lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  add({begin, begin + length, file, offset, wall_clock_ns(), kThere, false});
}

File* mapped_file(const void* at) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::size_t used = g_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const Mapping& m = g_mappings[i];
    const std::uintptr_t end = m.end.load(std::memory_order_acquire);
    if (address < end && address >= m.begin.load(std::memory_order_relaxed)) return m.file.load();
  }
  return nullptr;
}

bool mapping_at(const void* at, MappedRange& out) noexcept {
  if (g_used.load(std::memory_order_acquire) == 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  SlowPath slow;
  Locked locked(g_lock);
  for (std::size_t i = 0; i < g_used.load(); ++i) {
    out = range_of(g_mappings[i]);
    if (address >= out.begin && address < out.end) return true;
  }
  return false;
}

void forget_mapping(const void* at, std::size_t length) noexcept {
  if (in_vfork_child() || g_used.load() == 0) return;
  SlowPath slow;
  Locked locked(g_lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = begin + length;
  const std::size_t used = g_used.load();
  for (std::size_t i = 0; i < used; ++i) {
    Mapping& m = g_mappings[i];
    const MappedRange range = range_of(m);
    if (range.end == 0 || end <= range.begin || begin >= range.end) continue;
    m.end.store(0);
    MappedRange gone = part_of(range, begin > range.begin ? begin : range.begin,
                               end < range.end ? end : range.end);
    gone.gone_ns = wall_clock_ns();
    g_gone[g_gone_count++ % kMostGone] = gone;
    if (range.begin < begin) add(part_of(range, range.begin, begin));
    if (end < range.end) add(part_of(range, end, range.end));
  }
  std::size_t last = g_used.load();
  while (last > 0 && g_mappings[last - 1].end.load() == 0) --last;
  g_used.store(last);
}

bool has_mappings() noexcept { return g_used.load(std::memory_order_relaxed) != 0; }

std::size_t copy_mappings(MappedRange* to) noexcept {
  Locked locked(g_lock);
  std::size_t count = 0;
  for (std::size_t i = 0; i < g_used.load(); ++i) {
    to[count] = range_of(g_mappings[i]);
    if (to[count].end != 0) ++count;
  }
  const std::size_t gone = g_gone_count < kMostGone ? g_gone_count : kMostGone;
  for (std::size_t i = 0; i < gone; ++i) to[count++] = g_gone[i];
  return count;
}

void mark_reported(std::uintptr_t begin) noexcept {
  Locked locked(g_lock);
  for (std::size_t i = 0; i < g_used.load(); ++i)
    if (g_mappings[i].begin.load() == begin && g_mappings[i].end.load() != 0)
      g_mappings[i].reported = true;
}

}  // namespace dft::intercept
