// Patterns of names, as shells have them: `*` is any text, `?` any character. Used when a function is
// first called.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dft::hooks {

bool matches(std::string_view pattern, std::string_view name) noexcept;

// "a*,b?,!c*": what matches a pattern and none that begins with an exclamation mark. Without other
// patterns everything else matches.
class PatternList {
 public:
  PatternList() = default;
  explicit PatternList(std::string_view text);
  [[nodiscard]] bool matches(std::string_view name) const noexcept;

 private:
  std::vector<std::string> wanted_;
  std::vector<std::string> unwanted_;
};

}  // namespace dft::hooks
