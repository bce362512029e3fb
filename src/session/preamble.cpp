#include "session/preamble.hpp"

#include <sched.h>
#include <time.h>

#include <cstdio>
#include <cstring>

#include "base/syscalls.hpp"
#include "format/escape.hpp"
#include "format/hash.hpp"
#include "session/secrets.hpp"

namespace dft::session {
namespace {

// The loader hands every library's constructors the program's arguments; used where
// /proc is missing.
int g_argc = 0;
char** g_argv = nullptr;
__attribute__((constructor)) void keep_arguments(int argc, char** argv, char**) {
  g_argc = argc;
  g_argv = argv;
}

constexpr std::size_t kMostCommand = std::size_t{4} << 20;

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void copy_to(char (&to)[256], std::string_view text) {
  if (text.size() > 255) text = text.substr(0, 255);
  text.copy(to, text.size());
  to[text.size()] = '\0';
}

// argv with a NUL after each word.
void read_arguments(sink::MmapBuffer& words) {
  const int fd = sys::open("/proc/self/cmdline", O_RDONLY);
  while (fd >= 0 && words.size() < kMostCommand && words.ensure(65536)) {
    const long got = sys::read(fd, words.end(), 65536);
    if (got <= 0) break;
    words.resize(words.size() + static_cast<std::size_t>(got));
  }
  if (fd >= 0) sys::close(fd);
  for (int i = 0; words.size() == 0 && g_argv != nullptr && i < g_argc; ++i) {
    if (g_argv[i] != nullptr) words.append({g_argv[i], std::strlen(g_argv[i]) + 1});
  }
}

// What an interpreter runs, by its arguments: a file, or the module after -m. The text after -c
// is no name.
class Script {
 public:
  void look_at(std::string_view word) {
    if (done_) return;
    if (is_value_) {
      is_value_ = false;
      return;
    }
    if (word == "-c" || is_module_ || !word.starts_with('-')) {
      done_ = true;
      if (word != "-c") name_ = is_module_ ? word : base_name(word);
    }
    is_module_ = word == "-m";
    is_value_ = word == "-W" || word == "-X";
  }
  [[nodiscard]] std::string_view name() const { return name_; }

 private:
  std::string_view name_;
  bool done_ = false;
  bool is_module_ = false;
  bool is_value_ = false;
};

// The first word but the last that names neither an option nor an interpreter; the rule that
// existing traces follow for exec_hash. The label is for people: the script of an interpreter,
// else the program.
void name_program(std::string_view words, ProcessFacts& facts) {
  std::string_view exec;
  std::string_view first;
  Script script;
  bool spawned = false;
  for (std::size_t at = 0; at < words.size();) {
    std::size_t end = words.find('\0', at);
    if (end == std::string_view::npos) end = words.size();
    const std::string_view word = words.substr(at, end - at);
    const bool last = end + 1 >= words.size();
    if (at == 0) first = base_name(word);
    if (at != 0) script.look_at(word);
    spawned |= contains(word, "multiprocessing");
    if (!last && exec.empty() && !word.starts_with('-') && !contains(word, "python") &&
        !contains(word, "env") && !contains(word, "multiprocessing")) {
      exec = base_name(word);
    }
    at = end + 1;
  }
  copy_to(facts.exec, !exec.empty() ? exec : spawned ? "DEFAULT-spawn" : "DEFAULT");
  copy_to(facts.label, contains(first, "python") && !script.name().empty() ? script.name() : first);
}

class PreambleLines {
 public:
  PreambleLines(const Preamble& what, sink::MmapBuffer& out) : what_(what), out_(out) {
    format::write_hex16(host_, what.host_hash);
  }

  void metadata(std::uint64_t id, const char* name, std::string_view key, std::string_view value) {
    const auto pid = what_.owner->pid;
    format(
        "{\"id\":%llu,\"name\":\"%s\",\"cat\":\"dftracer\",\"pid\":%u,\"tid\":%u,\"ph\":\"M\","
        "\"args\":{\"hhash\":\"%s\",\"name\":\"",
        static_cast<unsigned long long>(id), name, pid, pid, host_);
    escaped(key);
    text("\",\"value\":\"");
    escaped(value);
    text("\"}}\n");
    ++count_;
  }
  void hashed(std::uint64_t id, const char* name, std::string_view value) {
    char hex[17] = {};
    format::write_hex16(hex, format::hash16(value));
    metadata(id, name, value, hex);
  }
  template <class... A>
  void format(const char* pattern, A... args) {
    if (!out_.ensure(1024)) {
      failed_ = true;
      return;
    }
    const int n = std::snprintf(out_.end(), 1024, pattern, args...);
    out_.resize(out_.size() + static_cast<std::size_t>(n > 0 && n < 1024 ? n : 0));
  }
  void text(std::string_view more) { failed_ |= !out_.append(more); }
  void escaped(std::string_view raw) {
    if (!out_.ensure(raw.size() * format::kEscapeGrowth)) {
      failed_ = true;
      return;
    }
    out_.set_end(format::escape(out_.end(), raw));
  }
  void end_line() {
    text("\n");
    ++count_;
  }
  [[nodiscard]] const char* host() const { return host_; }
  [[nodiscard]] std::uint64_t count() const { return failed_ ? 0 : count_; }

 private:
  const Preamble& what_;
  sink::MmapBuffer& out_;
  char host_[17] = {};
  std::uint64_t count_ = 0;
  bool failed_ = false;
};

// "Sun Nov 15 18:21:20 2026", from arithmetic alone: libc's own takes a lock that a fork
// may leave taken.
void write_date(char (&to)[64], std::int64_t seconds) {
  const std::int64_t days = seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400;
  const auto of_day = static_cast<int>(seconds - days * 86400);
  std::int64_t z = days + 719468;
  const std::int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(z - era * 146097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * day_of_year + 2) / 153;
  const unsigned day = day_of_year - (153 * shifted + 2) / 5 + 1;
  const unsigned month = shifted < 10 ? shifted + 3 : shifted - 9;
  const std::int64_t year =
      static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2 ? 1 : 0);
  static const char* const kDays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  static const char* const kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::snprintf(to, sizeof to, "%s %s %2u %02d:%02d:%02d %lld", kDays[((days % 7) + 7) % 7],
                kMonths[month - 1], day, of_day / 3600, of_day / 60 % 60, of_day % 60,
                static_cast<long long>(year));
}

void write_affinity(PreambleLines& lines, std::uint64_t id) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  sink::MmapBuffer list;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &cores)) continue;
    char number[16];
    const int n = std::snprintf(number, sizeof number, list.size() == 0 ? "[%d" : ",%d", i);
    list.append({number, static_cast<std::size_t>(n)});
  }
  list.append("]");
  lines.metadata(id, "PR", "core_affinity", list.view());
}

}  // namespace

void gather(ProcessFacts& facts, bool mask) noexcept {
  sink::MmapBuffer given;
  read_arguments(given);
  sink::MmapBuffer masked;
  // Without memory to mask it, the command line is left out.
  if (mask && !mask_secrets(given.view(), masked)) masked.resize(0);
  const sink::MmapBuffer& words = mask ? masked : given;
  name_program(words.view(), facts);
  std::string_view all = words.view();
  if (all.ends_with('\0')) all.remove_suffix(1);
  facts.command.append(all);
  for (std::size_t i = 0; i < facts.command.size(); ++i) {
    char& c = facts.command.data()[i];
    if (c == '\0') c = ';';
  }
  const time_t now = ::time(nullptr);
  tm local{};
  facts.zone_offset_seconds = ::localtime_r(&now, &local) != nullptr ? local.tm_gmtoff : 0;
}

std::uint64_t write_preamble(const Preamble& what, sink::MmapBuffer& out) noexcept {
  PreambleLines lines(what, out);
  const auto pid = what.owner->pid;
  const std::uint64_t id = what.first_id;
  std::uint64_t extra = what.extra_id;
  char number[24];
  std::snprintf(number, sizeof number, "%u", pid);
  char cwd[4096];
  const long cwd_size = sys::call(SYS_getcwd, cwd, sizeof cwd);
  const std::string_view where(cwd, cwd_size > 1 ? static_cast<std::size_t>(cwd_size) - 1 : 0);
  char hex[17] = {};

  if (what.opens_file) lines.text("[\n");
  lines.hashed(id, "HH", what.owner->host);
  lines.metadata(id + 1, "thread_name", number, "thread_name");
  if (what.details) {
    lines.hashed(id + 2, "FH", where);
    lines.hashed(id + 3, "SH", what.facts->command.view());
    lines.hashed(id + 4, "SH", what.facts->exec);
  }
  const std::uint64_t start_id = id + 5;
  std::uint64_t divisor = 1;
  for (std::uint32_t i = 0; i < what.time_divisor_log10; ++i) divisor *= 10;
  lines.format(
      "{\"id\":%llu,\"name\":\"start\",\"cat\":\"dftracer\",\"pid\":%u,\"tid\":%u,\"ts\":%llu,"
      "\"dur\":0,\"ph\":\"X\",\"args\":{\"hhash\":\"%s\",\"p_idx\":-1,\"level\":1",
      static_cast<unsigned long long>(start_id), pid, pid,
      static_cast<unsigned long long>(what.start_ns / divisor), lines.host());
  if (what.details) {
    char date[64];
    write_date(date, static_cast<std::int64_t>(what.start_ns / 1000000000) +
                         what.facts->zone_offset_seconds);
    lines.format(",\"ppid\":%d", static_cast<int>(sys::call(SYS_getppid)));
    format::write_hex16(hex, format::hash16(what.facts->command.view()));
    lines.format(",\"cmd_hash\":\"%s\"", hex);
    format::write_hex16(hex, format::hash16(what.facts->exec));
    lines.format(",\"exec_hash\":\"%s\",\"version\":\"v%s\",\"date\":\"%s\"", hex, DFTRACER_VERSION,
                 date);
    format::write_hex16(hex, format::hash16(where));
    lines.format(",\"cwd\":\"%s\"", hex);
  }
  format::write_hex16(hex, what.run);
  lines.format(",\"run\":\"%s\"", hex);
  format::write_hex16(hex, what.process_key);
  lines.format(",\"proc\":\"%s\"}}", hex);
  lines.end_line();
  if (what.rank >= 0) {
    char rank[24];
    std::snprintf(rank, sizeof rank, "%d", what.rank);
    lines.metadata(extra++, "PR", "rank", rank);
    std::snprintf(rank, sizeof rank, "rank %d", what.rank);
    lines.metadata(extra++, "process_name", rank, "process_name");
  } else {
    lines.metadata(extra++, "process_name", what.facts->label, "process_name");
  }
  if (what.affinity) write_affinity(lines, extra++);
  if (what.time_divisor_log10 != 3) {
    static const char* const kUnits[] = {"NS", "US", "MS", "SEC"};
    lines.metadata(extra++, "CM", "time_metric", kUnits[what.time_divisor_log10 / 3 % 4]);
  }
  return lines.count();
}

}  // namespace dft::session
