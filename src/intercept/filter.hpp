// Which files are traced: those below the configured directories, or all but those of the system
// and the interpreter. Built when interception begins; consulted once per path.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dft::intercept {

class Filter {
 public:
  // `directories` as configured: "all" anywhere in it means every file; none, every file less those
  // of the system and of the interpreter. Relative ones are taken from `cwd`; where one is reached
  // through a symbolic link, its real name counts as well.
  Filter(const std::vector<std::string>& directories, std::string_view cwd);

  // `path` is absolute and normal, or what the kernel calls something without a path ("pipe:[7]").
  [[nodiscard]] bool admits(std::string_view path) const noexcept;
  // Something that has no name at all.
  [[nodiscard]] bool admits_unknown() const noexcept { return mode_ != Mode::kListed; }
  // A quick check of a path as the program passed it: false means certainly not traced.
  [[nodiscard]] bool may_admit(const char* path) const noexcept {
    if (mode_ != Mode::kListed || path[0] != '/') return true;
    for (const std::string& directory : directories_) {
      if (begins(path, directory)) return true;
    }
    return has_detour(path);
  }

 private:
  enum class Mode { kAll, kOwn, kListed };
  static bool begins(const char* path, const std::string& directory) noexcept {
    std::size_t i = 0;
    while (i < directory.size() && path[i] == directory[i]) ++i;
    return i == directory.size();
  }
  static bool has_detour(const char* path) noexcept;

  Mode mode_ = Mode::kOwn;
  std::vector<std::string> directories_;
};

// Appends `path` to the absolute and normal path in [buffer, buffer + used): no ".", "..", "//".
// Needs room for used + 1 + path.size(). Returns the new length.
std::size_t append_normal(char* buffer, std::size_t used, std::string_view path) noexcept;

}  // namespace dft::intercept
