#include "recovery/recover.hpp"

#include <sys/file.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/message.hpp"
#include "base/signals.hpp"
#include "buffer/spool.hpp"
#include "format/hash.hpp"
#include "recovery/image.hpp"
#include "recovery/owner.hpp"
#include "sink/sink.hpp"
#include "sink/trace_file.hpp"

namespace dft::recovery {

bool run_note_name(std::uint64_t key, char* to, std::size_t room) noexcept {
  const int n =
      std::snprintf(to, room, ".dftracer-%016llx.run", static_cast<unsigned long long>(key));
  return n > 0 && static_cast<std::size_t>(n) < room;
}

namespace {

constexpr std::size_t kPath = kLongestPath;
constexpr std::uint64_t kSilentForSeconds = 24 * 3600;
constexpr std::size_t kBlock = 512 << 10;

std::uint64_t wall_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec);
}

// A regular file of our own user. Root may finish those of all users on request: the trace is
// found by its directory and a checked base name, never by a path inside the spool.
bool acceptable(int fd, const RecoveryOptions& options, struct stat& info) {
  const auto me = static_cast<std::uint32_t>(sys::call(SYS_geteuid));
  return sys::status(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == me || (me == 0 && options.any_user));
}

// The trace is not where the spool last saw it: write the rest under a new name.
void start_anew(buffer::SpoolHead& head) {
  char name[sizeof head.trace_name];
  const std::string_view old(head.trace_name);
  const std::string_view ending = old.ends_with(".gz") ? ".pfw.gz" : ".pfw";
  std::string_view stem = old.substr(0, old.size() - ending.size());
  char hex[17] = {};
  format::write_hex16(hex, head.run ^ process_key(head.owner) ^ head.trace_size);
  if (stem.size() + 40 > sizeof name) stem = stem.substr(0, sizeof name - 40);
  std::size_t n = stem.copy(name, stem.size());
  n += std::string_view("-rest-").copy(name + n, 6);
  n += std::string_view(hex, 16).copy(name + n, 16);
  n += ending.copy(name + n, ending.size());
  name[n] = '\0';
  std::memcpy(head.trace_name, name, n + 1);
  head.trace_size = 0;
  head.trace_lines = head.trace_metadata = head.trace_files = 0;
  head.reported_events = head.reported_files = 0;
}

// Adds what the run's totals lack because the process died before it reported.
void count_unreported(const buffer::SpoolHead& head, bool ended, RecoveryCounts& counts) {
  counts.run_events += buffer::unreported_events(head);
  counts.run_files += buffer::unreported_files(head);
  if ((head.flags & buffer::kCounted) != 0) return;
  counts.run_lost += head.lost.load();
  // Ended before the recovery: an exec'ed program continues the process, and will be counted.
  if (!ended) ++counts.run_processes;
}

std::uint64_t finish(const char* directory, buffer::Spool& spool, bool same_boot, bool* done,
                     const RecoveryOptions& options, RecoveryCounts& counts) {
  buffer::SpoolHead& head = spool.head();
  spool.clock_map().settle(same_boot);
  const std::uint64_t before = head.trace_lines;
  const bool ended = (head.flags & buffer::kEnded) != 0;
  const int error = sink::cut_back(directory, head.trace_name, {head.trace_inode, head.trace_size});
  if (error == -ESTALE) {
    start_anew(head);
  } else if (error != 0) {
    say("cannot finish %s/%s: %s", directory, head.trace_name, reason(error));
    return 0;
  }
  sink::Sink* sink = sink::Sink::create(spool, directory, kBlock);
  if (sink == nullptr) return 0;
  *done = sink->finish({.recovered = true});
  sink->discard();
  if (head.run == options.run) count_unreported(head, ended, counts);
  std::uint64_t lines = head.trace_lines - (error == -ESTALE ? 0 : before);
  if (before == 0 || error == -ESTALE) lines -= std::min(lines, head.preamble_lines);
  if (!ended && (head.flags & buffer::kEnded) != 0) lines -= std::min<std::uint64_t>(lines, 1);
  return lines;
}

bool is_blank(const std::byte (&page)[buffer::kPage]) {
  return std::all_of(std::begin(page), std::end(page),
                     [](std::byte b) { return b == std::byte{0}; });
}

// Judges a spool by its first page before reading the rest: most spools belong to living processes.
RecoveryOutcome judge(const char* path, int fd, const struct stat& info,
                      const RecoveryOptions& options) {
  alignas(buffer::SpoolHead) std::byte page[buffer::kPage] = {};
  const long got = sys::pread(fd, page, sizeof page, 0);
  const auto& head = *reinterpret_cast<const buffer::SpoolHead*>(page);
  const bool young = wall_seconds() < static_cast<std::uint64_t>(info.st_mtim.tv_sec) + 60;
  const bool whole = got >= static_cast<long>(sizeof(buffer::SpoolHead));
  const bool ours = whole && std::memcmp(head.magic, buffer::kMagic, sizeof head.magic) == 0;
  if (info.st_size == 0 || (ours && head.owner.pid == 0) || (whole && is_blank(page))) {
    // Nothing was ever written to it. A living process may be about to.
    if (young) return RecoveryOutcome::kAlive;
    sys::unlink(path);
    return RecoveryOutcome::kNothing;
  }
  if (!ours) return RecoveryOutcome::kRecovered;  // to be read, and rejected, as a whole
  if (options.only_run && head.run != options.run) return RecoveryOutcome::kOther;
  const char* base = std::strrchr(path, '/') + 1;
  char mapped_as[sizeof head.mapped_name + 1] = {};
  std::memcpy(mapped_as, head.mapped_name, sizeof head.mapped_name);
  buffer::Owner owner = head.owner;
  owner.host[sizeof owner.host - 1] = '\0';
  owner.boot[sizeof owner.boot - 1] = '\0';
  const Life life = life_of(owner, base, mapped_as[0] != '\0' ? mapped_as : base);
  if (life == Life::kRuns) return RecoveryOutcome::kAlive;
  if (life == Life::kCannotTell && !options.force &&
      (young || wall_seconds() < head.heartbeat.load() + kSilentForSeconds)) {
    return RecoveryOutcome::kUnknown;
  }
  if (head.ready.load() == 0) {  // died during creation: contains no event
    sys::unlink(path);
    return RecoveryOutcome::kNothing;
  }
  return RecoveryOutcome::kRecovered;
}

// Removes the run note that the dead process left next to its spool for its children.
void remove_run_note(const char* spool, const buffer::Owner& owner) {
  const std::string_view path(spool);
  const std::string_view directory = path.substr(0, path.rfind('/'));
  char name[kPath];
  const int n = std::snprintf(name, sizeof name, "%.*s/", static_cast<int>(directory.size()),
                              directory.data());
  if (n < 0 ||
      !run_note_name(process_key(owner), name + n, sizeof name - static_cast<std::size_t>(n)))
    return;
  sys::unlink(name);
}

RecoveryOutcome recover_open(const char* directory, const char* path, int fd, struct stat& info,
                             const RecoveryOptions& options, RecoveryCounts& counts) {
  const RecoveryOutcome judged = judge(path, fd, info, options);
  if (judged != RecoveryOutcome::kRecovered) return judged;
  // An owner that has just finished removes the name before it unmaps the file.
  struct stat again{};
  if (sys::status_at(path, &again) != 0 || again.st_ino != info.st_ino)
    return RecoveryOutcome::kNothing;
  Image image;
  if (!image.read(fd, static_cast<std::uint64_t>(info.st_size))) {
    if (!options.quiet) say("%s cannot be recovered: it cannot be read", path);
    return RecoveryOutcome::kBroken;
  }
  const char* what = nullptr;
  buffer::Spool* spool = buffer::Spool::adopt(image.data(), image.size(), path, &what);
  if (spool == nullptr) {
    if (!options.quiet) say("%s cannot be recovered: %s", path, what);
    return RecoveryOutcome::kBroken;
  }
  buffer::Owner self{};
  describe_self(self);
  const bool same_boot = std::strncmp(self.boot, spool->head().owner.boot, sizeof self.boot) == 0;
  bool done = false;
  counts.events += finish(directory, *spool, same_boot, &done, options, counts);
  const buffer::Owner owner = spool->head().owner;
  spool->discard();
  if (!done) return RecoveryOutcome::kBroken;
  sys::unlink(path);
  if (!process_exists(owner)) remove_run_note(path, owner);
  return RecoveryOutcome::kRecovered;
}

}  // namespace

RecoveryOutcome recover_spool(const char* directory, const char* name,
                              const RecoveryOptions& options, RecoveryCounts& counts) noexcept {
  SlowPath slow;
  char path[kPath];
  if (!sink::join(path, sizeof path, directory, "", name, "")) return RecoveryOutcome::kNothing;
  const OwnedFd file(sys::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || !acceptable(file.get(), options, info)) return RecoveryOutcome::kNothing;
  // One recoverer at a time. A second one finds the file gone.
  if (sys::call(SYS_flock, file.get(), LOCK_EX | LOCK_NB) != 0) return RecoveryOutcome::kAlive;
  struct stat again{};
  if (sys::status_at(path, &again) != 0 || again.st_ino != info.st_ino)
    return RecoveryOutcome::kNothing;
  ++counts.spools;
  char elsewhere[kPath];
  RecoveryOutcome outcome = RecoveryOutcome::kNothing;
  std::uint64_t key = 0;
  if (read_spool_pointer(file.get(), info, elsewhere, key)) {
    const OwnedFd local(sys::open(elsewhere, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
    struct stat local_info{};
    if (local.get() < 0) {
      // On another node, or lost with it. The spool pointer is removed when recovery is forced.
      outcome = options.force ? RecoveryOutcome::kNothing : RecoveryOutcome::kUnknown;
      if (options.force) sys::unlink(path);
    } else if (!acceptable(local.get(), options, local_info)) {
      outcome = RecoveryOutcome::kBroken;
    } else if (!is_pointed_to(local.get(), key)) {
      outcome = options.force ? RecoveryOutcome::kNothing : RecoveryOutcome::kUnknown;
      if (options.force) sys::unlink(path);
    } else {
      outcome = recover_open(directory, elsewhere, local.get(), local_info, options, counts);
      if (outcome == RecoveryOutcome::kRecovered || outcome == RecoveryOutcome::kNothing)
        sys::unlink(path);
    }
  } else {
    outcome = recover_open(directory, path, file.get(), info, options, counts);
  }
  switch (outcome) {
    case RecoveryOutcome::kRecovered:
      ++counts.recovered;
      break;
    case RecoveryOutcome::kAlive:
      ++counts.alive;
      break;
    case RecoveryOutcome::kUnknown:
      ++counts.unknown;
      break;
    case RecoveryOutcome::kBroken:
      ++counts.broken;
      break;
    default:
      break;
  }
  return outcome;
}

int recover_directory(const char* directory, const RecoveryOptions& options,
                      RecoveryCounts& counts) noexcept {
  SlowPath slow;
  const OwnedFd list(sys::open(directory, O_RDONLY | O_DIRECTORY));
  if (list.get() < 0) return list.get();
  return sys::each_entry(list.get(), [&](const char* entry) {
    const std::string_view name(entry);
    if (name.starts_with('.') && name.ends_with(kSpoolEnding))
      recover_spool(directory, entry, options, counts);
  });
}

}  // namespace dft::recovery
