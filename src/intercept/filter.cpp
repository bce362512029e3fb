#include "intercept/filter.hpp"

#include <cstring>

#include "base/syscalls.hpp"

namespace dft::intercept {
namespace {

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "libm.so", "libm.so.6", but not "notes.sorted".
bool is_shared_library(std::string_view name) {
  for (std::size_t at = name.find(".so"); at != std::string_view::npos;
       at = name.find(".so", at + 1)) {
    const std::string_view rest = name.substr(at + 3);
    if (rest.empty() || (rest.size() > 1 && rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9'))
      return true;
  }
  return false;
}

// Below ".../lib/python3.x": modules, their compiled forms, and the directories that are searched;
// not the data that packages bring along.
bool is_interpreters(std::string_view path, std::string_view name) {
  if (name == "pyvenv.cfg" || name == "__pycache__") return true;
  if (path.find("/lib/python3") == std::string_view::npos) return false;
  for (const std::string_view ending : {".py", ".pyc", ".pyi", ".pth", "._pth", ".zip"}) {
    if (name.ends_with(ending)) return true;
  }
  return name.find('.') == std::string_view::npos || name.starts_with("python3") ||
         path.find(".dist-info") != std::string_view::npos ||
         path.find(".egg-info") != std::string_view::npos;
}

bool is_systems(std::string_view path) {
  if (is_below(path, "/dev")) return !is_below(path, "/dev/shm");
  return is_below(path, "/proc") || is_below(path, "/sys");
}

// Where the last component, or one before it, is a symbolic link, the kernel knows the real name.
bool real_name(const std::string& path, std::string& out) {
  const int fd = sys::open(path.c_str(), O_PATH);
  if (fd < 0) return false;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  char target[4096];
  const long n = sys::call(SYS_readlinkat, AT_FDCWD, link.c_str(), target, sizeof target);
  sys::close(fd);
  if (n <= 0 || target[0] != '/') return false;
  out.assign(target, static_cast<std::size_t>(n));
  return true;
}

}  // namespace

std::size_t append_normal(char* buffer, std::size_t used, std::string_view path) noexcept {
  if (used == 1 && buffer[0] == '/') used = 0;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      while (used > 0) {
        --used;
        if (buffer[used] == '/') break;
      }
      continue;
    }
    buffer[used++] = '/';
    std::memmove(buffer + used, part.data(), part.size());
    used += part.size();
  }
  if (used == 0) buffer[used++] = '/';
  return used;
}

Filter::Filter(const std::vector<std::string>& directories, std::string_view cwd) {
  for (const std::string& given : directories) {
    if (given.empty()) continue;
    if (given == "all") {
      mode_ = Mode::kAll;
      directories_.clear();
      return;
    }
    mode_ = Mode::kListed;
    std::string path(cwd.size() + given.size() + 2, '\0');
    std::size_t used = 0;
    if (given[0] != '/') used = cwd.copy(path.data(), cwd.size());
    used = append_normal(path.data(), used, given);
    path.resize(used);
    directories_.push_back(path);
    std::string real;
    if (real_name(given[0] == '/' ? given : path, real) && real != path)
      directories_.push_back(real);
  }
}

bool Filter::has_detour(const char* path) noexcept {
  return std::strstr(path, "/.") != nullptr || std::strstr(path, "//") != nullptr;
}

bool Filter::admits(std::string_view path) const noexcept {
  switch (mode_) {
    case Mode::kAll:
      return true;
    case Mode::kListed:
      for (const std::string& directory : directories_) {
        if (is_below(path, directory)) return true;
      }
      return false;
    case Mode::kOwn:
      break;
  }
  if (!path.starts_with('/')) return true;  // a pipe, a socket
  const std::string_view name = base_name(path);
  return !is_systems(path) && !is_shared_library(name) && !is_interpreters(path, name);
}

}  // namespace dft::intercept
