#include "hooks/glob.hpp"

#include <algorithm>

namespace dft::hooks {

// Goes back to the last `*` only: a match of all before it stays one.
bool matches(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

PatternList::PatternList(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (word.empty() || word == "!") continue;
    if (word.front() == '!') {
      unwanted_.emplace_back(word.substr(1));
    } else {
      wanted_.emplace_back(word);
    }
  }
}

bool PatternList::matches(std::string_view name) const noexcept {
  const auto fits = [name](const std::string& pattern) { return hooks::matches(pattern, name); };
  if (std::any_of(unwanted_.begin(), unwanted_.end(), fits)) return false;
  return wanted_.empty() || std::any_of(wanted_.begin(), wanted_.end(), fits);
}

}  // namespace dft::hooks
