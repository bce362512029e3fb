#include "buffer/names.hpp"

#include <cstring>

namespace dft::buffer {

constinit Names g_names;

namespace {
constexpr std::size_t kArenaStep = 64 << 10;
}  // namespace

std::uint64_t Names::hash_of(std::string_view text) noexcept {
  // Eight bytes per step, folded by a multiplication: names are short, and every call looks one up.
  constexpr std::uint64_t kFactor = 0x9fb21c651e98df25;
  const char* p = text.data();
  std::size_t left = text.size();
  std::uint64_t h = left * kFactor;
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t n = left < 8 ? left : 8;
    std::memcpy(&word, p, n);
    h = (h ^ word) * kFactor;
    h ^= h >> 32;
    p += n;
    left -= n;
  }
  return h;
}

const Names::NameEntry* Names::find(const Table* table, std::string_view text,
                                    std::uint64_t hash) noexcept {
  if (table == nullptr) return nullptr;
  for (std::uint32_t i = static_cast<std::uint32_t>(hash);; ++i) {
    const NameEntry* entry = table->slot[i & table->mask].load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (entry->hash == hash && entry->length == text.size() &&
        std::memcmp(entry->text, text.data(), text.size()) == 0) {
      return entry;
    }
  }
}

void Names::place(Table& table, NameEntry* entry) noexcept {
  auto i = static_cast<std::uint32_t>(entry->hash);
  while (table.slot[i & table.mask].load(std::memory_order_relaxed) != nullptr) ++i;
  table.slot[i & table.mask].store(entry, std::memory_order_release);
}

bool Names::enlarge() noexcept {
  Table* old = table_.load(std::memory_order_relaxed);
  const std::uint32_t slots = old == nullptr ? 512 : (old->mask + 1) * 2;
  auto* bigger = static_cast<Table*>(
      sys::map_private(sizeof(Table) + sizeof(std::atomic<NameEntry*>) * slots));
  if (bigger == nullptr) return false;
  bigger->mask = slots - 1;
  for (std::uint32_t i = 0; old != nullptr && i <= old->mask; ++i) {
    NameEntry* entry = old->slot[i].load(std::memory_order_relaxed);
    if (entry != nullptr) place(*bigger, entry);
  }
  // The old table stays: another thread may be in the middle of it.
  table_.store(bigger, std::memory_order_release);
  return true;
}

std::uint32_t Names::add(std::string_view text, std::uint64_t hash) noexcept {
  if (text.size() > kLongest) return 0;
  SlowPath slow;
  Locked locked(lock_);
  if (const NameEntry* entry = find(table_.load(std::memory_order_relaxed), text, hash))
    return entry->id;
  const std::size_t size = record::padded(sizeof(NameEntry) + text.size());
  if (count_ >= kMost || bytes_ + size > kMostBytes) return 0;
  const Table* table = table_.load(std::memory_order_relaxed);
  if ((table == nullptr || count_ >= table->mask / 2) && !enlarge()) return 0;
  if (arena_left_ < size) {
    auto* fresh = static_cast<char*>(sys::map_private(kArenaStep));
    if (fresh == nullptr) return 0;
    arena_ = fresh;
    arena_left_ = kArenaStep;
  }
  auto* entry = reinterpret_cast<NameEntry*>(arena_);
  entry->hash = hash;
  entry->id = count_ + 1;
  entry->length = static_cast<std::uint32_t>(text.size());
  std::memcpy(entry->text, text.data(), text.size());
  if (spool_ != nullptr && !write_to_spool(*entry)) return 0;
  arena_ += size;
  arena_left_ -= size;
  bytes_ += size;
  ++count_;
  place(*table_.load(std::memory_order_relaxed), entry);
  return entry->id;
}

bool Names::write_to_spool(const NameEntry& entry) noexcept {
  const std::size_t size = record::padded(sizeof(NameRecord) + entry.length);
  if (chunk_ == nullptr || room(*chunk_) - chunk_->committed.load() < size) {
    const bool first = chunk_ == nullptr;
    const std::uint32_t seen = spool_->segments();
    ChunkHead* next = spool_->take(size, first, 0);
    if (next == nullptr && spool_->grow(size, first, seen)) next = spool_->take(size, first, 0);
    if (next == nullptr) return false;
    next->state.store(ChunkState::kNames, std::memory_order_release);
    chunk_ = next;
  }
  const std::uint64_t at = chunk_->committed.load(std::memory_order_relaxed);
  std::byte* to = payload(*chunk_) + at;
  const NameRecord head{entry.id, entry.length};
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + sizeof head, entry.text, entry.length);
  chunk_->committed.store(at + size, std::memory_order_release);
  return true;
}

bool Names::publish_to(Spool* spool) noexcept {
  Locked locked(lock_);
  spool_ = spool;
  chunk_ = nullptr;
  const Table* table = table_.load(std::memory_order_relaxed);
  if (spool == nullptr || table == nullptr) return true;
  for (std::uint32_t i = 0; i <= table->mask; ++i) {
    const NameEntry* entry = table->slot[i].load(std::memory_order_relaxed);
    if (entry != nullptr && !write_to_spool(*entry)) return false;
  }
  return true;
}

}  // namespace dft::buffer
