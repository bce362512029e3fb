#include "session/run_note.hpp"

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "base/syscalls.hpp"
#include "recovery/owner.hpp"
#include "recovery/recover.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {
namespace {

constexpr char kMagic[8] = {'D', 'F', 'T', 'W', 'O', 'R', 'D', '2'};
constexpr std::size_t kPath = 4096 + 300;
constexpr int kGenerations = 5;
static_assert(sizeof(RunNote) <= 4096 && std::is_standard_layout_v<RunNote>);

bool path_of(const char* directory, std::uint64_t key, char (&to)[kPath]) {
  char base[64];
  return recovery::run_note_name(key, base, sizeof base) &&
         sink::join(to, sizeof to, directory, "", base, "");
}

// Opens a note that we, or a process of the same user, have left; -errno when there is none.
int open_word(const char* directory, std::uint64_t key, int how) {
  char path[kPath];
  if (!path_of(directory, key, path)) return -ENAMETOOLONG;
  const int fd = sys::open(path, how | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd;
  struct stat info{};
  if (sys::status(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == sizeof(RunNote) &&
      info.st_uid == static_cast<uid_t>(sys::call(SYS_geteuid))) {
    return fd;
  }
  sys::close(fd);
  return -EINVAL;
}

class Mapped {
 public:
  Mapped(const char* directory, std::uint64_t key) {
    const int fd = open_word(directory, key, O_RDWR);
    if (fd < 0) return;
    word_ = static_cast<RunNote*>(sys::map(sizeof(RunNote), MAP_SHARED, fd, 0));
    sys::close(fd);
    if (word_ != nullptr && std::memcmp(word_->magic, kMagic, sizeof kMagic) != 0) release();
  }
  ~Mapped() { release(); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  explicit operator bool() const { return word_ != nullptr; }
  RunNote* operator->() const { return word_; }

 private:
  void release() {
    if (word_ != nullptr) sys::unmap(word_, sizeof(RunNote));
    word_ = nullptr;
  }
  RunNote* word_ = nullptr;
};

bool read_word(const char* directory, std::uint64_t key, RunIdentity& kin) {
  const int fd = open_word(directory, key, O_RDONLY);
  if (fd < 0) return false;
  alignas(RunNote) char bytes[offsetof(RunNote, amounts)];
  const long got = sys::pread(fd, bytes, sizeof bytes, 0);
  sys::close(fd);
  if (got != sizeof bytes || std::memcmp(bytes, kMagic, sizeof kMagic) != 0) return false;
  std::memcpy(&kin.run, bytes + offsetof(RunNote, run), sizeof kin.run);
  std::memcpy(&kin.first, bytes + offsetof(RunNote, first), sizeof kin.first);
  std::memcpy(kin.trace_name, bytes + offsetof(RunNote, trace_name), sizeof kin.trace_name);
  kin.trace_name[sizeof kin.trace_name - 1] = '\0';
  return true;
}

}  // namespace

const char* describe(Untraced why) noexcept {
  switch (why) {
    case Untraced::kStatic:
      return "statically linked";
    case Untraced::kOtherArchitecture:
      return "of another architecture";
    case Untraced::kSetUser:
      return "set-uid";
    case Untraced::kNotPreloaded:
      return "without LD_PRELOAD";
    case Untraced::kOtherLibc:
      return "with another C library";
    case Untraced::kGo:
      return "a Go program, whose runtime makes system calls without libc";
    case Untraced::kNo:
      break;
  }
  return "";
}

bool find_run(const char* directory, const buffer::Owner& self, RunIdentity& kin) noexcept {
  kin = {};
  if (self.start_time == 0) return false;  // no /proc: nobody can be recognised
  if (read_word(directory, recovery::process_key(self), kin)) return true;
  buffer::Owner ancestor = self;
  for (int i = 0; i < kGenerations; ++i) {
    if (!recovery::describe_parent(ancestor)) return false;
    if (!read_word(directory, recovery::process_key(ancestor), kin)) continue;
    kin.trace_name[0] = '\0';
    return true;
  }
  return false;
}

bool write_run_note(const char* directory, std::uint64_t key, const RunIdentity& kin) noexcept {
  char path[kPath];
  if (!path_of(directory, key, path)) return false;
  const int fd = sys::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return fd == -EEXIST;
  alignas(RunNote) static char blank[sizeof(RunNote)];  // under the session's lock
  std::memset(blank, 0, sizeof blank);
  auto* word = reinterpret_cast<RunNote*>(blank);
  word->run = kin.run;
  word->first = kin.first;
  std::memcpy(word->trace_name, kin.trace_name, sizeof word->trace_name);
  std::memcpy(word->magic, kMagic, sizeof kMagic);
  const bool fine = sys::write_at(fd, blank, sizeof blank, 0) == 0;
  sys::close(fd);
  if (!fine) sys::unlink(path);
  return fine;
}

void remove_run_note(const char* directory, std::uint64_t key) noexcept {
  char path[kPath];
  if (path_of(directory, key, path)) sys::unlink(path);
}

void add_totals(const char* directory, std::uint64_t first, const RunTotals& amounts) noexcept {
  const Mapped word(directory, first);
  if (!word) return;
  const std::uint64_t values[7] = {amounts.processes,    amounts.events,   amounts.files,
                                   amounts.calls,        amounts.filtered, amounts.lost,
                                   amounts.ring_requests};
  for (int i = 0; i < 7; ++i) word->amounts[i].fetch_add(values[i]);
}

void add_untraced(const char* directory, std::uint64_t first, const char* name,
                  Untraced why) noexcept {
  const Mapped word(directory, first);
  if (!word) return;
  for (int i = 0; i < 1000 && word->lock.exchange(1) != 0; ++i) sys::sleep_ns(100'000);
  for (UntracedProgram& program : word->untraced) {
    const bool free = program.count.load() == 0;
    if (free) {
      program.why = static_cast<std::uint32_t>(why);
      std::snprintf(program.name, sizeof program.name, "%s", name);
    }
    if (program.why != static_cast<std::uint32_t>(why) ||
        std::strncmp(program.name, name, sizeof program.name - 1) != 0) {
      continue;
    }
    program.count.fetch_add(1);
    break;
  }
  word->lock.store(0);
}

void read_totals(const char* directory, std::uint64_t first, RunTotals& amounts, char* untraced,
                 std::size_t room) noexcept {
  const Mapped word(directory, first);
  untraced[0] = '\0';
  if (!word) return;
  std::uint64_t* const values[7] = {&amounts.processes,    &amounts.events,   &amounts.files,
                                    &amounts.calls,        &amounts.filtered, &amounts.lost,
                                    &amounts.ring_requests};
  for (int i = 0; i < 7; ++i) *values[i] += word->amounts[i].load();
  std::size_t used = 0;
  for (const UntracedProgram& program : word->untraced) {
    const std::uint32_t count = program.count.load();
    if (count == 0 || used + 128 > room) break;
    used += static_cast<std::size_t>(
        std::snprintf(untraced + used, room - used, "%s%u x %.55s (%s)", used == 0 ? "" : ", ",
                      count, program.name, describe(static_cast<Untraced>(program.why))));
  }
}

}  // namespace dft::session
