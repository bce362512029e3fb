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

bool word_name(std::uint64_t key, char* to, std::size_t room) noexcept {
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

// A plain file of our own user. Root may ask to finish for everybody: the trace is found by its
// directory and a checked base name, never by a path inside the spool.
bool acceptable(int fd, const Wanted& wanted, struct stat& info) {
  const auto me = static_cast<std::uint32_t>(sys::call(SYS_geteuid));
  return sys::status(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == me || (me == 0 && wanted.any_user));
}

// Where the trace went is not where the spool last saw it: write what is left under a name of its
// own.
void start_anew(buffer::SpoolHead& head) {
  char name[sizeof head.trace_name];
  const std::string_view old(head.trace_name);
  const std::string_view ending = old.ends_with(".gz") ? ".pfw.gz" : ".pfw";
  std::string_view stem = old.substr(0, old.size() - ending.size());
  char hex[17] = {};
  record::write_hex16(hex, head.run ^ process_key(head.owner) ^ head.trace_size);
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

// What the run's totals lack, because the dead could not report it.
void count_unreported(const buffer::SpoolHead& head, bool ended, Found& found) {
  found.run_events += buffer::unreported_events(head);
  found.run_files += buffer::unreported_files(head);
  if ((head.flags & buffer::kCounted) != 0) return;
  found.run_lost += head.lost.load();
  // Ended before it was recovered: another program goes on in the process, and will count it.
  if (!ended) ++found.run_processes;
}

std::uint64_t finish(const char* directory, buffer::Spool& spool, bool same_boot, bool* done,
                     const Wanted& wanted, Found& found) {
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
  if (head.run == wanted.run) count_unreported(head, ended, found);
  std::uint64_t lines = head.trace_lines - (error == -ESTALE ? 0 : before);
  if (before == 0 || error == -ESTALE) lines -= std::min(lines, head.preamble_lines);
  if (!ended && (head.flags & buffer::kEnded) != 0) lines -= std::min<std::uint64_t>(lines, 1);
  return lines;
}

bool is_blank(const std::byte (&page)[buffer::kPage]) {
  return std::all_of(std::begin(page), std::end(page),
                     [](std::byte b) { return b == std::byte{0}; });
}

// What its first page says about a spool, before anything else is read: most are of the living.
Outcome judge(const char* path, int fd, const struct stat& info, const Wanted& wanted) {
  alignas(buffer::SpoolHead) std::byte page[buffer::kPage] = {};
  const long got = sys::pread(fd, page, sizeof page, 0);
  const auto& head = *reinterpret_cast<const buffer::SpoolHead*>(page);
  const bool young = wall_seconds() < static_cast<std::uint64_t>(info.st_mtim.tv_sec) + 60;
  const bool whole = got >= static_cast<long>(sizeof(buffer::SpoolHead));
  const bool ours = whole && std::memcmp(head.magic, buffer::kMagic, sizeof head.magic) == 0;
  if (info.st_size == 0 || (ours && head.owner.pid == 0) || (whole && is_blank(page))) {
    // Nothing was ever put into it. A living process may be about to.
    if (young) return Outcome::kAlive;
    sys::unlink(path);
    return Outcome::kNothing;
  }
  if (!ours) return Outcome::kRecovered;  // to be read, and refused, as a whole
  if (wanted.only_run && head.run != wanted.run) return Outcome::kOther;
  const char* base = std::strrchr(path, '/') + 1;
  char mapped_as[sizeof head.mapped_name + 1] = {};
  std::memcpy(mapped_as, head.mapped_name, sizeof head.mapped_name);
  buffer::Owner owner = head.owner;
  owner.host[sizeof owner.host - 1] = '\0';
  owner.boot[sizeof owner.boot - 1] = '\0';
  const Life life = life_of(owner, base, mapped_as[0] != '\0' ? mapped_as : base);
  if (life == Life::kRuns) return Outcome::kAlive;
  if (life == Life::kCannotTell && !wanted.force &&
      (young || wall_seconds() < head.heartbeat.load() + kSilentForSeconds)) {
    return Outcome::kUnknown;
  }
  if (head.ready.load() == 0) {  // died while it was being made: holds no event
    sys::unlink(path);
    return Outcome::kNothing;
  }
  return Outcome::kRecovered;
}

// What the dead has left for its kin, beside its spool.
void remove_word(const char* spool, const buffer::Owner& owner) {
  const std::string_view path(spool);
  const std::string_view directory = path.substr(0, path.rfind('/'));
  char name[kPath];
  const int n = std::snprintf(name, sizeof name, "%.*s/", static_cast<int>(directory.size()),
                              directory.data());
  if (n < 0 || !word_name(process_key(owner), name + n, sizeof name - static_cast<std::size_t>(n)))
    return;
  sys::unlink(name);
}

Outcome recover_open(const char* directory, const char* path, int fd, struct stat& info,
                     const Wanted& wanted, Found& found) {
  const Outcome judged = judge(path, fd, info, wanted);
  if (judged != Outcome::kRecovered) return judged;
  // An owner that has just finished removed the name before it let go of the mapping.
  struct stat again{};
  if (sys::status_at(path, &again) != 0 || again.st_ino != info.st_ino) return Outcome::kNothing;
  Image image;
  if (!image.read(fd, static_cast<std::uint64_t>(info.st_size))) {
    if (!wanted.quiet) say("%s cannot be recovered: it cannot be read", path);
    return Outcome::kBroken;
  }
  const char* what = nullptr;
  buffer::Spool* spool = buffer::Spool::adopt(image.data(), image.size(), path, &what);
  if (spool == nullptr) {
    if (!wanted.quiet) say("%s cannot be recovered: %s", path, what);
    return Outcome::kBroken;
  }
  buffer::Owner self{};
  describe_self(self);
  const bool same_boot = std::strncmp(self.boot, spool->head().owner.boot, sizeof self.boot) == 0;
  bool done = false;
  found.events += finish(directory, *spool, same_boot, &done, wanted, found);
  const buffer::Owner owner = spool->head().owner;
  spool->discard();
  if (!done) return Outcome::kBroken;
  sys::unlink(path);
  if (!process_exists(owner)) remove_word(path, owner);
  return Outcome::kRecovered;
}

}  // namespace

Outcome recover_spool(const char* directory, const char* name, const Wanted& wanted,
                      Found& found) noexcept {
  SlowPath slow;
  char path[kPath];
  if (!sink::join(path, sizeof path, directory, "", name, "")) return Outcome::kNothing;
  const Descriptor file(sys::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || !acceptable(file.get(), wanted, info)) return Outcome::kNothing;
  // One recoverer at a time. Whoever comes second finds the file gone.
  if (sys::call(SYS_flock, file.get(), LOCK_EX | LOCK_NB) != 0) return Outcome::kAlive;
  struct stat again{};
  if (sys::status_at(path, &again) != 0 || again.st_ino != info.st_ino) return Outcome::kNothing;
  ++found.spools;
  char elsewhere[kPath];
  Outcome outcome = Outcome::kNothing;
  std::uint64_t key = 0;
  if (read_spool_pointer(file.get(), info, elsewhere, key)) {
    const Descriptor local(sys::open(elsewhere, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
    struct stat local_info{};
    if (local.get() < 0) {
      // Of another node, or lost with it. Its note goes when it is old.
      outcome = wanted.force ? Outcome::kNothing : Outcome::kUnknown;
      if (wanted.force) sys::unlink(path);
    } else if (!acceptable(local.get(), wanted, local_info)) {
      outcome = Outcome::kBroken;
    } else if (!is_noted(local.get(), key)) {
      outcome = wanted.force ? Outcome::kNothing : Outcome::kUnknown;
      if (wanted.force) sys::unlink(path);
    } else {
      outcome = recover_open(directory, elsewhere, local.get(), local_info, wanted, found);
      if (outcome == Outcome::kRecovered || outcome == Outcome::kNothing) sys::unlink(path);
    }
  } else {
    outcome = recover_open(directory, path, file.get(), info, wanted, found);
  }
  switch (outcome) {
    case Outcome::kRecovered:
      ++found.recovered;
      break;
    case Outcome::kAlive:
      ++found.alive;
      break;
    case Outcome::kUnknown:
      ++found.unknown;
      break;
    case Outcome::kBroken:
      ++found.broken;
      break;
    default:
      break;
  }
  return outcome;
}

int recover_directory(const char* directory, const Wanted& wanted, Found& found) noexcept {
  SlowPath slow;
  const Descriptor list(sys::open(directory, O_RDONLY | O_DIRECTORY));
  if (list.get() < 0) return list.get();
  return sys::each_entry(list.get(), [&](const char* entry) {
    const std::string_view name(entry);
    if (name.starts_with('.') && name.ends_with(kSpoolEnding))
      recover_spool(directory, entry, wanted, found);
  });
}

}  // namespace dft::recovery
