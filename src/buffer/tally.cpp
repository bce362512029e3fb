#include "buffer/tally.hpp"

#include "base/lock.hpp"

namespace dft::buffer {
namespace {

constexpr std::size_t kBlockBytes = 64 << 10;
struct TallyBlock {
  TallyBlock* next;
  std::size_t count;
  Tally* tallies;
};
Lock g_lock;
std::atomic<TallyBlock*> g_blocks{nullptr};
Tally g_first[32];
TallyBlock g_first_block{nullptr, 32, g_first};
Tally g_shared;

template <class F>
void each(F&& f) {
  if (g_blocks.load() == nullptr) g_blocks.store(&g_first_block);
  for (TallyBlock* block = g_blocks.load(); block != nullptr; block = block->next) {
    for (std::size_t i = 0; i < block->count; ++i) f(block->tallies[i]);
  }
  f(g_shared);
}

Tally* find_free() {
  Tally* free_tally = nullptr;
  each([&](Tally& tally) {
    if (free_tally == nullptr && &tally != &g_shared && tally.taken.load() == 0)
      free_tally = &tally;
  });
  if (free_tally != nullptr) return free_tally;
  auto* memory = static_cast<std::byte*>(sys::map_private(kBlockBytes));
  if (memory == nullptr) return &g_shared;
  auto* block = reinterpret_cast<TallyBlock*>(memory);
  block->tallies = reinterpret_cast<Tally*>(memory + sizeof(Tally));
  block->count = kBlockBytes / sizeof(Tally) - 1;
  block->next = g_blocks.load();
  g_blocks.store(block);
  return block->tallies;
}

}  // namespace

Tally* take_tally() noexcept {
  Locked locked(g_lock);
  Tally* tally = find_free();
  tally->taken.store(1);
  return tally;
}

void give_tally(Tally* tally) noexcept {
  if (tally != nullptr) tally->taken.store(0);
}

TallySums sum_tallies() noexcept {
  TallySums sums{};
  each([&](const Tally& tally) {
    sums.calls += tally.recorded.load() + tally.filtered.load();
    sums.filtered += tally.filtered.load();
    sums.read += tally.read.load();
    sums.written += tally.written.load();
  });
  return sums;
}

void reset_tallies(const Tally* kept) noexcept {
  each([&](Tally& tally) {
    tally.recorded.store(0);
    tally.filtered.store(0);
    tally.read.store(0);
    tally.written.store(0);
    tally.taken.store(&tally == kept ? 1 : 0);
  });
}

}  // namespace dft::buffer
