#include "session/config.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/syscalls.hpp"
#include "session/config_values.hpp"

namespace dft::session {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::string_view kPrefix = "DFTRACER_";

// Holds lines back until the log level is known, which is after everything has been read.
using Pending = std::vector<std::string>;

void keep(void* pending, const char* line) { static_cast<Pending*>(pending)->emplace_back(line); }

std::string reason(int error) {
  switch (error) {
    case ENOENT:
      return "no such file";
    case EACCES:
      return "permission denied";
    case ENOTDIR:
      return "a part of its path is not a directory";
    case ENAMETOOLONG:
      return "its name is too long";
    case ELOOP:
      return "too many symbolic links";
    default:
      return "error " + std::to_string(error);
  }
}

// Raw system calls, because the names open, read and close may be our own wrappers. Returns "" or
// what went wrong. Reads one byte past the limit at most, which the caller can see.
std::string read_file(const std::string& path, std::string& text) {
  // O_NONBLOCK: a FIFO must not hold up the program.
  const int fd = sys::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (fd < 0) return reason(-fd);
  std::string problem;
  struct stat info{};
  if (const int error = sys::status(fd, &info); error != 0) {
    problem = reason(-error);
  } else if (!S_ISREG(info.st_mode)) {
    problem = "not a regular file";
  }
  try {
    char block[4096];
    while (problem.empty() && text.size() <= kLargestFile) {
      const long got = sys::read(fd, block, sizeof block);
      if (got == -EINTR) continue;
      if (got < 0) problem = reason(static_cast<int>(-got));
      if (got <= 0) break;
      text.append(block, static_cast<std::size_t>(got));
    }
  } catch (...) {
    sys::close(fd);
    throw;
  }
  sys::close(fd);
  return problem;
}

void read_yaml_file(Config& config, const std::string& path, Pending& pending) {
  Lines lines(keep, &pending);
  std::string text;
  const std::string problem = read_file(path, text);
  if (!problem.empty()) {
    lines.add("cannot read the configuration " + visible_path(path) + ": " + problem);
  } else if (text.size() > kLargestFile) {
    lines.add("the configuration " + visible_path(path) + " is not read: it is larger than 1 MiB");
  } else {
    apply_yaml(config, text, path.c_str(), keep, &pending);
  }
}

class Reader {
 public:
  Reader(Config& config, Pending& pending)
      : config_(config), lines_(keep, &pending), values_(settings().size(), nullptr) {}

  // The one walk over the environment. Of a variable that is there twice, getenv sees the first.
  void collect(char** entries) {
    for (char** entry = entries; entries != nullptr && *entry != nullptr; ++entry) {
      if (std::strncmp(*entry, kPrefix.data(), kPrefix.size()) != 0) continue;
      const char* const equals = std::strchr(*entry, '=');
      if (equals == nullptr) continue;
      const std::string_view name(*entry, static_cast<std::size_t>(equals - *entry));
      const std::size_t index = find_variable(name);
      if (index == kNotFound) {
        if (!is_known_variable(name)) report_unknown(name);
      } else if (values_[index] == nullptr) {
        values_[index] = equals + 1;
      }
    }
  }

  const char* value(std::string_view variable) const { return values_[find_variable(variable)]; }

  void apply(const Setting& setting, const char* value, Lines& lines) {
    if (value == nullptr || assign(config_, setting, value)) return;
    const std::string used = show(config_, setting);
    lines.add(std::string(setting.variable) + "=\"" + visible(value) + "\" is not " +
              expected(setting) + "; using " + (used.empty() ? "the default" : visible(used)));
  }

  // DFTRACER_ENABLE has been applied before: its line is not one of the pending.
  void apply_all_but_enable() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (settings()[i].variable != "DFTRACER_ENABLE") apply(settings()[i], values_[i], lines_);
    }
  }

  void report_without_effect() {
    const Config defaults;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Setting& setting = settings()[i];
      if (setting.status == Status::kEffective || same(config_, defaults, setting)) continue;
      const std::string_view name = values_[i] != nullptr ? setting.variable : setting.key;
      lines_.add(std::string(name) + "=" + visible(show(config_, setting)) +
                 " has no effect: " + std::string(setting.text));
    }
  }

 private:
  void report_unknown(std::string_view name) {
    const std::string_view similar = similar_variable(name);
    std::string line = visible(name) + " is not a setting";
    if (!similar.empty()) line.append("; did you mean ").append(similar).append("?");
    lines_.add(line);
  }

  Config& config_;
  Lines lines_;
  std::vector<const char*> values_;  // by setting; null where not set
};

Config read(const Environment& environment, Report report, void* context) {
  Config config;
  Pending pending;
  Reader reader(config, pending);
  reader.collect(environment.entries);

  const Setting& enable = settings()[find_variable("DFTRACER_ENABLE")];
  const char* const asked = reader.value(enable.variable);
  Config trial;
  const bool switched_off = asked != nullptr && assign(trial, enable, asked) && !trial.enable;
  const char* const file = reader.value("DFTRACER_CONFIGURATION");
  const std::size_t before_file = pending.size();
  // A program that is not traced is spared the file.
  if (file != nullptr && *file != '\0' && !switched_off) read_yaml_file(config, file, pending);

  const std::size_t after_file = pending.size();
  Lines at_once(report, context);
  reader.apply(enable, asked, at_once);
  reader.apply_all_but_enable();
  if (report == nullptr) return config;
  if (!config.enable) {
    // Always reported: an unusable file may be the reason that nothing is traced.
    for (std::size_t i = before_file; asked == nullptr && i < after_file; ++i) {
      report(context, pending[i].c_str());
    }
    return config;
  }
  reader.report_without_effect();
  for (const std::string& line : pending) report(context, line.c_str());
  return config;
}

}  // namespace

Config read_config(const Environment& environment, Report report, void* context) noexcept {
  if (environment.secure) return Config{};
  const int saved = errno;
  Config config;
  try {
    config = read(environment, report, context);
  } catch (...) {
    config = Config{};  // out of memory: the program needs what is left
  }
  errno = saved;
  return config;
}

namespace {

std::string absolute(const std::string& path, const std::string& cwd) {
  return path.empty() || path[0] == '/' ? path : cwd + "/" + path;
}

void rewrite(const char* name, const char* fallback, const std::string& cwd) {
  const char* value = ::getenv(name);
  if (value == nullptr || value[0] == '\0') value = fallback;
  if (value == nullptr) return;
  std::string out;
  const std::string all(value);
  const bool is_list = std::strcmp(name, "DFTRACER_DATA_DIR") == 0;
  for (std::size_t at = 0; at <= all.size();) {
    std::size_t end = is_list ? all.find(':', at) : all.size();
    if (end == std::string::npos) end = all.size();
    const std::string part = all.substr(at, end - at);
    if (at != 0) out += ':';
    out += is_list && part == "all" ? part : absolute(part, cwd);
    at = end + 1;
  }
  if (out != all || value == fallback) ::setenv(name, out.c_str(), 1);
}

}  // namespace

void keep_meaning_for_children() noexcept try {
  char here[4096];
  const long n = sys::call(SYS_getcwd, here, sizeof here);
  if (n <= 1 || here[0] != '/') return;
  const std::string cwd(here, static_cast<std::size_t>(n) - 1);
  const bool configured = ::getenv("DFTRACER_CONFIGURATION") != nullptr;
  rewrite("DFTRACER_CONFIGURATION", nullptr, cwd);
  rewrite("DFTRACER_LOG_FILE", configured ? nullptr : "trace", cwd);
  rewrite("DFTRACER_DATA_DIR", nullptr, cwd);
  rewrite("DFTRACER_LOG_PATH", nullptr, cwd);
  rewrite("DFTRACER_SPOOL_DIR", nullptr, cwd);
} catch (...) {  // no memory: they stay as they are
}

}  // namespace dft::session
