// A hash table from a few pieces of text to a row, for the keys of a trace: names, hashes, paths.
// Keys are copied once; a row is found again without an allocation. One thread. Moved, not copied,
// once it holds something: rows are found by their place.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace dft::reader {

inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = (seed + text.size()) * kMix;
  const char* p = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    hash = (hash ^ word) * kMix;
    hash ^= hash >> 29;
  }
  std::uint64_t word = 0;
  if (left != 0) std::memcpy(&word, p, left);
  hash = (hash ^ word) * kMix;
  return hash ^ (hash >> 32);
}

// Keys are short, and a call of memcmp costs more than the comparison.
inline bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const auto load = [](const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
  };
  const std::size_t size = a.size();
  if (size >= 8 && size <= 16) {
    return load(a.data()) == load(b.data()) &&
           load(a.data() + size - 8) == load(b.data() + size - 8);
  }
  if (size < 8) {
    for (std::size_t i = 0; i < size; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
  return std::memcmp(a.data(), b.data(), size) == 0;
}

template <typename Row>
class TextTable {
 public:
  struct Entry {
    std::uint64_t hash;
    std::uint64_t number;
    std::string first;
    std::string second;
    Row row;
  };

  // The row of the key, made if it is not there; `fresh` says which.
  std::uint32_t find(std::string_view first, std::string_view second, std::uint64_t number,
                     bool& fresh) {
    const std::uint64_t hash = hash_text(second, hash_text(first, number));
    if (entries_.size() * 2 >= slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
      const Entry& entry = *pointers_[slots_[at] - 1];
      if (entry.hash == hash && entry.number == number && same_text(entry.first, first) &&
          same_text(entry.second, second)) {
        fresh = false;
        return slots_[at] - 1;
      }
    }
    fresh = true;
    entries_.push_back({hash, number, std::string(first), std::string(second), Row{}});
    pointers_.push_back(&entries_.back());
    slots_[at] = static_cast<std::uint32_t>(entries_.size());
    return slots_[at] - 1;
  }
  Row& row(std::uint32_t index) { return pointers_[index]->row; }
  std::deque<Entry>& entries() { return entries_; }
  [[nodiscard]] const std::deque<Entry>& entries() const { return entries_; }
  void clear() {
    entries_.clear();
    pointers_.clear();
    slots_.clear();
  }

 private:
  void grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t at = entries_[i].hash & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }
  std::deque<Entry> entries_;  // rows stay where they are
  std::vector<Entry*> pointers_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace dft::reader
