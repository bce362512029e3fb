#include "intercept/mappings.hpp"

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/vfork.hpp"

namespace dft::intercept {
namespace {

// Further files mapped at the same time are treated as memory.
constexpr std::size_t kMost = 4096;
struct Mapping {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;  // 0: free
  std::atomic<File*> file;
};
Mapping g_mappings[kMost];
std::atomic<std::size_t> g_used{0};  // none is in use from here on
Lock g_lock;                         // of changes

void add(std::uintptr_t begin, std::uintptr_t end, File* file) {
  for (std::size_t i = 0; i < kMost; ++i) {
    Mapping& m = g_mappings[i];
    if (m.end.load() != 0) continue;
    m.begin.store(begin);
    m.file.store(file);
    m.end.store(end, std::memory_order_release);
    if (i >= g_used.load()) g_used.store(i + 1);
    return;
  }
}

}  // namespace

void remember_mapping(const void* at, std::size_t length, File* file) noexcept {
  if (in_vfork_child()) return;
  forget_mapping(at, length);
  SlowPath slow;
  Locked locked(g_lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  add(begin, begin + length, file);
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

void forget_mapping(const void* at, std::size_t length) noexcept {
  if (in_vfork_child() || g_used.load() == 0) return;
  SlowPath slow;
  Locked locked(g_lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = begin + length;
  const std::size_t used = g_used.load();
  for (std::size_t i = 0; i < used; ++i) {
    Mapping& m = g_mappings[i];
    const std::uintptr_t from = m.begin.load();
    const std::uintptr_t to = m.end.load();
    if (to == 0 || end <= from || begin >= to) continue;
    m.end.store(0);
    if (from < begin) add(from, begin, m.file.load());
    if (end < to) add(end, to, m.file.load());
  }
  std::size_t last = g_used.load();
  while (last > 0 && g_mappings[last - 1].end.load() == 0) --last;
  g_used.store(last);
}

}  // namespace dft::intercept
