// Interned strings: event names, categories and argument keys become small ids, once per process.
// Looked up on the program's threads without a lock; added on a slow path. Never freed.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/spool.hpp"

namespace dft::buffer {

class Names {
 public:
  // The id of the string: the same for equal bytes throughout the process, across fork and new
  // spools. 0 if the table is full or the string too long: the caller then stores it in the record.
  std::uint32_t id(std::string_view text) noexcept {
    const std::uint64_t hash = hash_of(text);
    const NameEntry* entry = find(table_.load(std::memory_order_acquire), text, hash);
    return entry != nullptr ? entry->id : add(text, hash);
  }

  // New names go into this spool from now on; known ones are written there first. False if they
  // do not fit. nullptr: there is no spool any more.
  bool publish_to(Spool* spool) noexcept;

  static constexpr std::size_t kLongest = 1024;
  static constexpr std::uint32_t kMost = 1 << 16;
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

 private:
  struct NameEntry {
    std::uint64_t hash;
    std::uint32_t id;
    std::uint32_t length;
    char text[];
  };
  struct Table {
    std::uint32_t mask;
    std::atomic<NameEntry*> slot[];
  };

  static std::uint64_t hash_of(std::string_view text) noexcept;
  static const NameEntry* find(const Table* table, std::string_view text,
                               std::uint64_t hash) noexcept;
  std::uint32_t add(std::string_view text, std::uint64_t hash) noexcept;
  bool write_to_spool(const NameEntry& entry) noexcept;
  bool enlarge() noexcept;
  static void place(Table& table, NameEntry* entry) noexcept;

  std::atomic<Table*> table_{nullptr};
  Lock lock_;
  std::uint32_t count_ = 0;
  std::size_t bytes_ = 0;
  char* arena_ = nullptr;
  std::size_t arena_left_ = 0;
  Spool* spool_ = nullptr;
  ChunkHead* chunk_ = nullptr;
};

extern Names g_names;

}  // namespace dft::buffer
