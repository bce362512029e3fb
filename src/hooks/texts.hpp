// Strings that programs hand to NVTX and ITT: of unknown length and encoding, and often the same ones.
// Used on the program's threads; keeping one is a slow path.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hooks/open_spans.hpp"

namespace dft::hooks {

// Longer names and messages are cut.
inline constexpr std::size_t kLongestText = 1024;

// The text until its 0, at most kLongestText bytes of it; empty for a null pointer.
std::string_view text_of(const char* text) noexcept;

// A string of wide characters as UTF-8. What is no character becomes U+FFFD.
class WideText {
 public:
  explicit WideText(const wchar_t* text) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

 private:
  std::size_t size_ = 0;
  char bytes_[kLongestText];
};

// The name of an event; "unnamed" where there is none.
Label label_of(std::string_view text) noexcept;

// A copy that lives as long as the process; empty if there are too many.
std::string_view keep(std::string_view text) noexcept;

// Names by a number: domains, and the categories in them. Few, and looked up by a scan from the
// newest on; never removed.
struct Named {
  std::uint64_t number;
  std::string_view text;
};
class NamedList {
 public:
  // The number of the entry with this text, from 1 on, which is made if there is none; 0 if the list
  // is full.
  std::uint32_t number_of(std::string_view text) noexcept;
  void set(std::uint64_t number, std::string_view text) noexcept;
  // Empty if it has no name.
  [[nodiscard]] std::string_view find(std::uint64_t number) const noexcept;

 private:
  static constexpr std::uint32_t kMost = 256;
  std::atomic<std::uint32_t> count_{0};
  Named list_[kMost] = {};
};

}  // namespace dft::hooks
