#include "session/trace_name.hpp"

#include <isa-l/igzip_lib.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "base/message.hpp"
#include "base/syscalls.hpp"
#include "format/hash.hpp"
#include "recovery/owner.hpp"
#include "sink/mmap_buffer.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {
namespace {

constexpr std::size_t kPath = 4096 + 300;
constexpr std::size_t kLookAt = 256 << 10;

// Makes a directory and its parents; fine when it is there.
int make_directories(char* path) {
  int made = sys::make_directory(path);
  if (made != -ENOENT) return made == -EEXIST ? 0 : made;
  for (char* p = path + 1; *p != '\0'; ++p) {
    if (*p != '/') continue;
    *p = '\0';
    made = sys::make_directory(path);
    *p = '/';
    if (made != 0 && made != -EEXIST && made != -EROFS && made != -EACCES && made != -EPERM)
      return made;
  }
  made = sys::make_directory(path);
  return made == -EEXIST ? 0 : made;
}

// The first bytes of a trace, inflated when it is compressed.
bool read_opening(int fd, sink::MmapBuffer& out) {
  sink::MmapBuffer raw;
  if (!raw.ensure(kLookAt) || !out.ensure(4 * kLookAt)) return false;
  const long got = sys::pread(fd, raw.data(), kLookAt, 0);
  if (got <= 0) return got == 0;
  raw.resize(static_cast<std::size_t>(got));
  if (!raw.view().starts_with("\x1f\x8b")) return out.append(raw.view());
  sink::MmapBuffer memory;
  if (!memory.ensure(sizeof(inflate_state))) return false;
  auto* state = new (memory.data()) inflate_state;
  isal_inflate_init(state);
  state->crc_flag = ISAL_GZIP;
  state->next_in = reinterpret_cast<std::uint8_t*>(raw.data());
  state->avail_in = static_cast<std::uint32_t>(raw.size());
  state->next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state->avail_out = static_cast<std::uint32_t>(out.capacity());
  const int result = isal_inflate(state);
  out.resize(state->total_out);
  return result == ISAL_DECOMP_OK || state->total_out > 0;
}

bool read_hex_after(std::string_view text, std::string_view key, std::uint64_t& out) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || text.size() < at + key.size() + 16) return false;
  out = 0;
  for (const char c : text.substr(at + key.size(), 16)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    out = out << 4 | static_cast<std::uint64_t>(digit);
  }
  return true;
}

bool on_network(const char* directory) {
  struct statfs info{};
  if (sys::file_system(directory, &info) != 0) return false;
  switch (static_cast<std::uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x517B:      // SMB
    case 0x5346414F:  // AFS
    case 0x00C36400:  // Ceph
    case 0x19830326:  // BeeGFS
    case 0x01021997:  // 9P
    case 0xAAD7AAEA:  // PanFS
    case 0x20030528:  // OrangeFS
    case 0x65735546:  // FUSE: sshfs, object stores, and local ones, which lose nothing by it
      return true;
    default:
      return false;
  }
}

bool usable(const char* directory) {
  return sys::call(SYS_faccessat, AT_FDCWD, directory, W_OK | X_OK) == 0 && !on_network(directory);
}

}  // namespace

int resolve(const char* path, bool is_prefix, bool compressed, TracePlace& place) noexcept {
  std::string_view text(path);
  char cwd[4096] = "";
  if (!text.starts_with('/')) {
    const long n = sys::call(SYS_getcwd, cwd, sizeof cwd);
    if (n < 0) return static_cast<int>(n);
  }
  while (text.starts_with("./")) text.remove_prefix(2);
  const std::size_t slash = text.rfind('/');
  std::string_view name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  const std::string_view directory =
      slash == std::string_view::npos ? std::string_view() : text.substr(0, slash + 1);
  bool named = false;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".pfw")) {
    name.remove_suffix(4);
    named = true;
  }
  if (name.empty()) name = "trace";
  if (name.size() >= sizeof place.stem) return -ENAMETOOLONG;
  const std::string_view from(cwd);
  if (from.size() + 1 + directory.size() >= sizeof place.directory) return -ENAMETOOLONG;
  char* end = place.directory + from.copy(place.directory, from.size());
  if (!from.empty() && !directory.empty()) *end++ = '/';
  end += directory.copy(end, directory.size());
  *end = '\0';
  std::size_t length = std::strlen(place.directory);
  while (length > 1 && place.directory[length - 1] == '/') place.directory[--length] = '\0';
  // A trace whose name begins with a dot would be taken for one of our temporary files.
  std::snprintf(place.stem, sizeof place.stem, "%s%.*s", name.starts_with('.') ? "_" : "",
                static_cast<int>(name.size()), name.data());
  place.exact = !is_prefix || named;
  place.compressed = compressed;
  return make_directories(place.directory);
}

std::uint64_t random64() noexcept {
  std::uint64_t value = 0;
  if (sys::call(SYS_getrandom, &value, sizeof value, 0x0001) == sizeof value) return value;
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t mixed[4] = {
      static_cast<std::uint64_t>(now.tv_sec), static_cast<std::uint64_t>(now.tv_nsec),
      static_cast<std::uint64_t>(sys::process_id()), reinterpret_cast<std::uint64_t>(&now)};
  return format::hash16({reinterpret_cast<const char*>(mixed), sizeof mixed});
}

Existing inspect(const TracePlace& place, const char* trace_name, std::uint64_t run,
                 std::uint64_t process_key) noexcept {
  using What = Existing::What;
  char path[kPath];
  struct stat info{};
  if (!sink::join(path, sizeof path, place.directory, "", trace_name, ""))
    return {What::kForeign, 0, 0, 0};
  if (sys::status_at(path, &info) != 0) return {What::kNothing, 0, 0, 0};
  Existing out{What::kForeign, info.st_ino, static_cast<std::uint64_t>(info.st_size), 0};
  if (!S_ISREG(info.st_mode)) return out;
  if (info.st_size == 0) {
    out.what = What::kFinished;
    return out;
  }
  const int fd = sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return out;
  sink::MmapBuffer text;
  const bool read = read_opening(fd, text);
  sys::close(fd);
  std::string_view opening = text.view();
  while (!opening.empty() && (opening.front() == ' ' || opening.front() == '\n'))
    opening.remove_prefix(1);
  // Every dialect of the format has these keys; other JSON documents are not ours to replace.
  const bool empty = opening == "[" || opening == "[\n" || opening == "[\n]";
  const bool trace = (opening.starts_with("[\n") || opening.starts_with("{\"")) &&
                     opening.find("\"ph\":") != std::string_view::npos &&
                     opening.find("\"pid\":") != std::string_view::npos;
  if (!read || !(empty || trace)) return out;
  out.what = What::kFinished;
  const std::size_t start = opening.find("\"name\":\"start\",\"cat\":\"dftracer\"");
  if (start == std::string_view::npos) return out;
  const std::string_view line = opening.substr(start, opening.find('\n', start) - start);
  std::uint64_t process = 0;
  if (!read_hex_after(line, "\"run\":\"", out.run) ||
      !read_hex_after(line, "\"proc\":\"", process)) {
    return out;
  }
  if (process == process_key) {
    out.what = What::kSameProcess;
  } else if (out.run == run) {
    out.what = What::kSameRun;
  }
  return out;
}

namespace {
void clear_run(const TracePlace& place, std::uint64_t old_run);
}  // namespace

void clear_finished(const TracePlace& place, const char* trace_name,
                    const Existing& existing) noexcept {
  if (existing.what == Existing::What::kFinished) clear_run(place, existing.run);
  TracePlace twin = place;
  twin.compressed = !place.compressed;
  char twin_name[256];
  exact_name(twin, twin_name);
  if (std::strcmp(twin_name, trace_name) == 0) return;
  const Existing other = inspect(twin, twin_name, 0, 0);
  char path[kPath];
  if (other.what != Existing::What::kFinished || other.size == 0 ||
      !sink::join(path, sizeof path, place.directory, "", twin_name, "")) {
    return;
  }
  clear_run(place, other.run);
  sys::unlink(path);
}

namespace {

void clear_run(const TracePlace& place, std::uint64_t old_run) {
  if (old_run == 0) return;
  char path[kPath];
  char start[256];
  const int n = std::snprintf(start, sizeof start, "%s-%08llx-", place.stem,
                              static_cast<unsigned long long>(old_run >> 32));
  const std::string_view wanted(start, static_cast<std::size_t>(n));
  const int list = sys::open(place.directory, O_RDONLY | O_DIRECTORY);
  if (list < 0) return;
  sys::each_entry(list, [&](const char* entry) {
    const std::string_view name(entry);
    if (!name.starts_with(wanted) || !(name.ends_with(".pfw") || name.ends_with(".pfw.gz"))) return;
    if (sink::join(path, sizeof path, place.directory, "", entry, "")) sys::unlink(path);
  });
  sys::close(list);
}

}  // namespace

void exact_name(const TracePlace& place, char (&to)[256]) noexcept {
  std::snprintf(to, sizeof to, "%s.pfw%s", place.stem, place.compressed ? ".gz" : "");
}

void keyed_name(const TracePlace& place, std::uint64_t run, std::uint32_t pid,
                char (&to)[256]) noexcept {
  std::snprintf(to, sizeof to, "%s-%08llx-%u-%06llx.pfw%s", place.stem,
                static_cast<unsigned long long>(run >> 32), pid,
                static_cast<unsigned long long>(random64() >> 40), place.compressed ? ".gz" : "");
}

void spool_name(const char* trace_name, char (&to)[256]) noexcept {
  std::string_view name(trace_name);
  if (name.ends_with(".gz")) name.remove_suffix(3);
  std::snprintf(to, sizeof to, ".%.*s.spool", static_cast<int>(name.size()), name.data());
}

int take_name(const char* from, const char* to) noexcept {
  const int linked = sys::link(from, to);
  if (linked == 0) {
    sys::unlink(from);
    return 0;
  }
  if (linked == -EEXIST) return linked;
  return sys::rename(from, to, 1);  // RENAME_NOREPLACE: file systems without hard links
}

bool spool_directory(const TracePlace& place, const char* configured, char (&to)[4096]) noexcept {
  std::strcpy(to, place.directory);
  if (configured[0] != '\0') {
    if (std::strlen(configured) < sizeof to) std::strcpy(to, configured);
    make_directories(to);
    return std::strcmp(to, place.directory) != 0;
  }
  if (!on_network(place.directory)) return false;
  for (const char* candidate : {"/dev/shm", "/tmp", "/var/tmp"}) {
    if (!usable(candidate)) continue;
    std::strcpy(to, candidate);
    return true;
  }
  return false;
}

bool claim(const TracePlace& place, buffer::SpoolHead& head, const char* chosen,
           const char* passing, bool may_be_exact, char (&path)[kClaimPath], Existing& existing,
           recovery::RecoveryCounts& recovered) noexcept {
  const std::uint64_t key = recovery::process_key(head.owner);
  char base[256];
  existing = {Existing::What::kNothing, 0, 0, 0};
  int waited = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const bool exact = may_be_exact && attempt < 3;
    if (exact && chosen[0] != '\0') {
      std::memcpy(head.trace_name, chosen, sizeof head.trace_name);
    } else if (exact) {
      exact_name(place, head.trace_name);
    } else {
      keyed_name(place, head.run, head.owner.pid, head.trace_name);
    }
    spool_name(head.trace_name, base);
    if (!sink::join(path, sizeof path, place.directory, "", base, "")) return false;
    const int taken = take_name(passing, path);
    if (taken == 0) {
      // Holding the name, see what is there: it cannot change any more.
      if (exact) existing = inspect(place, head.trace_name, head.run, key);
      const bool foreign = existing.what == Existing::What::kForeign;
      if (foreign) {
        say("%s/%s is not a trace: left alone, this trace gets a name of its own", place.directory,
            head.trace_name);
      }
      if (foreign || existing.what == Existing::What::kSameRun) {
        if (take_name(path, passing) != 0) return false;
        may_be_exact = false;
        existing.what = Existing::What::kNothing;
        continue;
      }
      return true;
    }
    if (taken != -EEXIST) return false;
    // The spool of a dead process: recover it, and the name is free. A living process keeps it.
    recovery::RecoveryOptions wanted;
    wanted.run = head.run;
    const auto outcome = recovery::recover_spool(place.directory, base, wanted, recovered);
    if (outcome == recovery::RecoveryOutcome::kRecovered ||
        outcome == recovery::RecoveryOutcome::kNothing)
      continue;
    // This process had the name before an exec, so a recoverer is at work on it: wait.
    if (chosen[0] != '\0' && waited++ < 500) {
      sys::sleep_ns(2'000'000);
      --attempt;
      continue;
    }
    may_be_exact = false;
  }
  return false;
}

}  // namespace dft::session
