#include "reader/stats/call_bytes.hpp"

#include <algorithm>
#include <iterator>

namespace dft::reader {
namespace {

constexpr const char* kRoleNames[] = {
    "none", "read", "write", "copy",   "collect", "open", "close",   "duplicate",
    "seek", "map",  "sync",  "submit", "wait",    "lock", "process", "metadata"};
static_assert(std::size(kRoleNames) == kRoles);

// Sorted by name.
constexpr Call kCalls[] = {
    {"_Exit", Role::kProcess},
    {"_Fork", Role::kProcess},
    {"__overflow", Role::kWrite, Measure::kUnknown},  // and what inlined code left in the buffer
    {"__uflow", Role::kRead, Measure::kRetLen},
    {"_exit", Role::kProcess},
    {"aio_fsync", Role::kSync},
    {"aio_fsync64", Role::kSync},
    {"aio_read", Role::kSubmit},
    {"aio_read64", Role::kSubmit},
    {"aio_return", Role::kCollect, Measure::kLengths},
    {"aio_return64", Role::kCollect, Measure::kLengths},
    {"aio_suspend", Role::kWait},
    {"aio_suspend64", Role::kWait},
    {"aio_write", Role::kSubmit},
    {"aio_write64", Role::kSubmit},
    {"close", Role::kClose},
    {"closedir", Role::kClose},
    {"copy_file_range", Role::kCopy, Measure::kRet, "fd_out_hash", true},
    {"creat", Role::kOpen},
    {"creat64", Role::kOpen},
    {"daemon", Role::kProcess},
    {"dprintf", Role::kWrite},
    {"dup", Role::kDuplicate},
    {"dup2", Role::kDuplicate},
    {"dup3", Role::kDuplicate},
    {"execl", Role::kProcess},
    {"execle", Role::kProcess},
    {"execlp", Role::kProcess},
    {"execv", Role::kProcess},
    {"execve", Role::kProcess},
    {"execveat", Role::kProcess},
    {"execvp", Role::kProcess},
    {"execvpe", Role::kProcess},
    {"exit", Role::kProcess},
    {"fclose", Role::kClose},
    {"fdatasync", Role::kSync},
    {"fexecve", Role::kProcess},
    {"fgetc", Role::kRead, Measure::kOne},
    {"fgetc_unlocked", Role::kRead, Measure::kOne},
    {"fgets", Role::kRead, Measure::kRetLen},
    {"fgets_unlocked", Role::kRead, Measure::kRetLen},
    {"fgetwc", Role::kRead, Measure::kRetLen},
    {"fgetwc_unlocked", Role::kRead, Measure::kRetLen},
    {"fgetws", Role::kRead, Measure::kRetLen},
    {"fgetws_unlocked", Role::kRead, Measure::kRetLen},
    {"flock", Role::kLock},
    {"flockfile", Role::kLock},
    {"fopen", Role::kOpen},
    {"fopen64", Role::kOpen},
    {"fork", Role::kProcess},
    {"fprintf", Role::kWrite},
    {"fputc", Role::kWrite, Measure::kOne},
    {"fputc_unlocked", Role::kWrite, Measure::kOne},
    {"fputs", Role::kWrite, Measure::kRetLen},
    {"fputs_unlocked", Role::kWrite, Measure::kRetLen},
    {"fputwc", Role::kWrite, Measure::kRetLen},
    {"fputwc_unlocked", Role::kWrite, Measure::kRetLen},
    {"fputws", Role::kWrite, Measure::kRetLen},
    {"fputws_unlocked", Role::kWrite, Measure::kRetLen},
    {"fread", Role::kRead, Measure::kItems},
    {"fread_unlocked", Role::kRead, Measure::kItems},
    {"freopen", Role::kOpen},
    {"freopen64", Role::kOpen},
    {"fscanf", Role::kRead, Measure::kUnknown},
    {"fseek", Role::kSeek},
    {"fseeko", Role::kSeek},
    {"fseeko64", Role::kSeek},
    {"fsetpos", Role::kSeek},
    {"fsetpos64", Role::kSeek},
    {"fsync", Role::kSync},
    {"ftrylockfile", Role::kLock},
    {"funlockfile", Role::kLock},
    {"fwprintf", Role::kWrite, Measure::kUnknown},  // returns wide characters
    {"fwrite", Role::kWrite, Measure::kItems},
    {"fwrite_unlocked", Role::kWrite, Measure::kItems},
    {"getc", Role::kRead, Measure::kOne},
    {"getc_unlocked", Role::kRead, Measure::kOne},
    {"getchar", Role::kRead, Measure::kOne},
    {"getchar_unlocked", Role::kRead, Measure::kOne},
    {"getdelim", Role::kRead},
    {"getline", Role::kRead},
    {"getw", Role::kRead, Measure::kWord},
    {"getwc", Role::kRead, Measure::kRetLen},
    {"getwc_unlocked", Role::kRead, Measure::kRetLen},
    {"getwchar", Role::kRead, Measure::kRetLen},
    {"io_event", Role::kCollect, Measure::kLengths},
    {"io_getevents", Role::kCollect, Measure::kLengths},
    {"io_pgetevents", Role::kCollect, Measure::kLengths},
    {"io_submit", Role::kSubmit},
    {"lio_listio", Role::kSubmit},
    {"lio_listio64", Role::kSubmit},
    {"lockf", Role::kLock},
    {"lockf64", Role::kLock},
    {"lseek", Role::kSeek},
    {"lseek64", Role::kSeek},
    {"mkostemp", Role::kOpen},
    {"mkostemp64", Role::kOpen},
    {"mkostemps", Role::kOpen},
    {"mkostemps64", Role::kOpen},
    {"mkstemp", Role::kOpen},
    {"mkstemp64", Role::kOpen},
    {"mkstemps", Role::kOpen},
    {"mkstemps64", Role::kOpen},
    {"mmap", Role::kMap},
    {"mmap64", Role::kMap},
    {"msync", Role::kSync},
    {"open", Role::kOpen},
    {"open64", Role::kOpen},
    {"openat", Role::kOpen},
    {"openat2", Role::kOpen},
    {"openat64", Role::kOpen},
    {"opendir", Role::kOpen},
    {"pclose", Role::kProcess},
    {"perror", Role::kWrite, Measure::kUnknown},
    {"popen", Role::kProcess},
    {"posix_spawn", Role::kProcess},
    {"posix_spawnp", Role::kProcess},
    {"pread", Role::kRead},
    {"pread64", Role::kRead},
    {"preadv", Role::kRead},
    {"preadv2", Role::kRead},
    {"preadv64", Role::kRead},
    {"preadv64v2", Role::kRead},
    {"printf", Role::kWrite},
    {"putc", Role::kWrite, Measure::kOne},
    {"putc_unlocked", Role::kWrite, Measure::kOne},
    {"putchar", Role::kWrite, Measure::kOne},
    {"putchar_unlocked", Role::kWrite, Measure::kOne},
    {"puts", Role::kWrite, Measure::kRetLen},
    {"putw", Role::kWrite, Measure::kWord},
    {"putwc", Role::kWrite, Measure::kRetLen},
    {"putwc_unlocked", Role::kWrite, Measure::kRetLen},
    {"putwchar", Role::kWrite, Measure::kRetLen},
    {"pwrite", Role::kWrite},
    {"pwrite64", Role::kWrite},
    {"pwritev", Role::kWrite},
    {"pwritev2", Role::kWrite},
    {"pwritev64", Role::kWrite},
    {"pwritev64v2", Role::kWrite},
    {"read", Role::kRead},
    {"readv", Role::kRead},
    {"rewind", Role::kSeek},
    {"scanf", Role::kRead, Measure::kUnknown},
    {"sendfile", Role::kCopy, Measure::kRet, "in_fd_hash", false},
    {"sendfile64", Role::kCopy, Measure::kRet, "in_fd_hash", false},
    {"shm_open", Role::kOpen},
    {"splice", Role::kCopy, Measure::kRet, "fd_out_hash", true},
    {"sync", Role::kSync},
    {"sync_file_range", Role::kSync},
    {"syncfs", Role::kSync},
    {"system", Role::kProcess},
    {"tee", Role::kCopy, Measure::kRet, "fd_out_hash", true},
    {"vdprintf", Role::kWrite},
    {"vfork", Role::kProcess},
    {"vfprintf", Role::kWrite},
    {"vfscanf", Role::kRead, Measure::kUnknown},
    {"vfwprintf", Role::kWrite, Measure::kUnknown},
    {"vmsplice", Role::kWrite, Measure::kUnknown},  // or the other way, as its pipe's end is
    {"vprintf", Role::kWrite},
    {"vscanf", Role::kRead, Measure::kUnknown},
    {"vwprintf", Role::kWrite, Measure::kUnknown},
    {"wait", Role::kProcess},
    {"wait3", Role::kProcess},
    {"wait4", Role::kProcess},
    {"waitid", Role::kProcess},
    {"waitpid", Role::kProcess},
    {"wprintf", Role::kWrite, Measure::kUnknown},
    {"write", Role::kWrite},
    {"writev", Role::kWrite},
};
static_assert(std::is_sorted(std::begin(kCalls), std::end(kCalls),
                             [](const Call& a, const Call& b) { return a.name < b.name; }));

// The arguments that hold lengths; -1 where one is missing.
struct Told {
  std::int64_t ret = -1;
  std::int64_t size = -1;
  std::int64_t ret_len = -1;
  std::int64_t read_len = -1;
  std::int64_t write_len = -1;
  bool has_ret = false;
  bool failed = false;
};

Told told_by(std::span<const Field> args) {
  Told told;
  for (const Field& field : args) {
    if (is(field.key, "ret")) {
      told.has_ret = integer_of(field, told.ret);
    } else if (is(field.key, "ret_len")) {
      integer_of(field, told.ret_len);
    } else if (is(field.key, "size")) {
      integer_of(field, told.size);
    } else if (is(field.key, "read_len")) {
      integer_of(field, told.read_len);
    } else if (is(field.key, "write_len")) {
      integer_of(field, told.write_len);
    } else if (is(field.key, "errno")) {
      std::int64_t reason = 0;
      told.failed = integer_of(field, reason) && reason > 0;
    }
  }
  return told;
}

// Negative: the arguments do not tell.
std::int64_t length_of(Measure measure, const Told& told) {
  switch (measure) {
    case Measure::kRet:
      return told.has_ret ? std::max<std::int64_t>(told.ret, 0) : -1;
    case Measure::kItems: {
      if (!told.has_ret || told.size < 0) return -1;
      std::int64_t product = 0;
      if (told.ret <= 0) return 0;
      return __builtin_mul_overflow(told.ret, told.size, &product) ? -1 : product;
    }
    case Measure::kOne:
      return told.has_ret ? (told.ret == -1 ? 0 : 1) : -1;
    case Measure::kWord:
      if (told.ret_len >= 0 || !told.has_ret) return told.ret_len;
      return told.ret == -1 ? 0 : static_cast<std::int64_t>(sizeof(int));
    case Measure::kRetLen:
      if (told.ret_len < 0 && told.has_ret && told.ret == -1) return 0;
      return told.ret_len;
    default:
      return -1;
  }
}

}  // namespace

const char* role_name(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

std::span<const Call> all_calls() { return kCalls; }

Call call_of(std::string_view category, std::string_view name) {
  if (category != "POSIX" && category != "STDIO") return {};
  const auto* found = std::lower_bound(
      std::begin(kCalls), std::end(kCalls), name,
      [](const Call& call, std::string_view wanted) { return call.name < wanted; });
  if (found == std::end(kCalls) || found->name != name) return {.role = Role::kMetadataCall};
  return *found;
}

Moved moved_bytes(const Call& call, std::span<const Field> args) {
  if (!moves(call.role)) return {};
  const Told told = told_by(args);
  if (told.failed) return {};
  const auto positive = [](std::int64_t n) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
  };
  if (call.measure == Measure::kLengths) {
    const bool nothing = told.has_ret && told.ret <= 0;
    return {positive(told.read_len), positive(told.write_len),
            nothing || told.read_len >= 0 || told.write_len >= 0};
  }
  const std::int64_t length = length_of(call.measure, told);
  return {reads(call.role) ? positive(length) : 0, writes(call.role) ? positive(length) : 0,
          length >= 0};
}

std::uint64_t mapped_bytes(std::span<const Field> args) {
  std::int64_t length = 0;
  for (const Field& field : args) {
    if (is(field.key, "errno")) return 0;
    if (is(field.key, "length")) integer_of(field, length);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(length, 0));
}

bool is_no_file(std::string_view path) {
  const auto begins = [&](std::string_view with) { return path.substr(0, with.size()) == with; };
  return begins("pipe:") || begins("socket:") || begins("anon_inode:") || begins("/dev/pts/") ||
         begins("/dev/tty") || path == "/dev/ptmx" || path == "/dev/console";
}

}  // namespace dft::reader
