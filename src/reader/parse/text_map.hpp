// A hash table from two texts and a number to a row, for the keys of a trace: names, hashes, paths.
// Keys are copied once; finding a row again does not allocate. One thread. May be moved but not
// copied once it holds a row, because the index holds pointers to rows.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dft::reader {

// The first and the last four bytes as a number, which are all of a text of up to eight: without a
// call of memcpy, and without a look beyond the text.
constexpr std::uint64_t short_word(const char* p, std::size_t size) {
  if (size >= 4) {
    const auto load = [](const char* from) {
      std::uint32_t word = 0;
      if (std::is_constant_evaluated()) {
        for (int i = 3; i >= 0; --i) word = (word << 8) | static_cast<unsigned char>(from[i]);
      } else {
        std::memcpy(&word, from, 4);
      }
      return word;
    };
    return load(p) | (std::uint64_t{load(p + size - 4)} << 32);
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word = (word << 8) | static_cast<unsigned char>(p[i]);
  return word;
}

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
  hash = (hash ^ short_word(p, left)) * kMix;
  return hash ^ (hash >> 32);
}

// Keys are short, and a call of memcmp costs more than the comparison.
[[gnu::always_inline]] inline bool same_text(std::string_view a, std::string_view b) {
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
  if (size < 8) return short_word(a.data(), size) == short_word(b.data(), size);
  return std::memcmp(a.data(), b.data(), size) == 0;
}

template <typename Row>
class TextMap {
 public:
  struct KeyedRow {
    std::uint64_t hash;
    std::uint64_t number;
    std::string first;
    std::string second;
    Row row;
  };

  // The row of the key, made if it is not there; `fresh` says which.
  std::uint32_t find(std::string_view first, std::string_view second, std::uint64_t number,
                     bool& fresh) {
    // A small cache in front: a trace repeats the same few keys.
    std::uint32_t& recent = recent_[recent_of(first)];
    if (recent != 0) {
      const KeyedRow& entry = *pointers_[recent - 1];
      if (entry.number == number && same_text(entry.first, first) &&
          same_text(entry.second, second)) {
        fresh = false;
        return recent - 1;
      }
    }
    const std::uint64_t hash = hash_text(second, hash_text(first, number));
    if (entries_.size() * 2 >= slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
      const KeyedRow& entry = *pointers_[slots_[at] - 1];
      if (entry.hash == hash && entry.number == number && same_text(entry.first, first) &&
          same_text(entry.second, second)) {
        fresh = false;
        recent = slots_[at];
        return recent - 1;
      }
    }
    fresh = true;
    entries_.push_back({hash, number, std::string(first), std::string(second), Row{}});
    pointers_.push_back(&entries_.back());
    recent = slots_[at] = static_cast<std::uint32_t>(entries_.size());
    return recent - 1;
  }
  Row& row(std::uint32_t index) { return pointers_[index]->row; }
  std::deque<KeyedRow>& entries() { return entries_; }
  [[nodiscard]] const std::deque<KeyedRow>& entries() const { return entries_; }
  void clear() {
    entries_.clear();
    pointers_.clear();
    slots_.clear();
    for (std::uint32_t& recent : recent_) recent = 0;
  }

 private:
  static constexpr std::size_t kRecent = 64;
  static std::size_t recent_of(std::string_view text) {
    const std::size_t size = text.size() < 8 ? text.size() : 8;
    const std::uint64_t word = short_word(text.data(), size) + text.size();
    return (word * 0x9e3779b97f4a7c15U) >> 58;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t at = entries_[i].hash & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }
  std::deque<KeyedRow> entries_;  // rows stay where they are
  std::vector<KeyedRow*> pointers_;
  std::vector<std::uint32_t> slots_;
  std::uint32_t recent_[kRecent] = {};  // like slots_, by the beginning of the first text
};

}  // namespace dft::reader
