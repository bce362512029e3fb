#include "reader/traffic.hpp"

#include <algorithm>
#include <iterator>

namespace dft::reader {
namespace {

struct Call {
  std::string_view name;
  Way way;
  Measure measure = Measure::kRet;
};

// Sorted by name.
constexpr Call kCalls[] = {
    {"copy_file_range", Way::kBoth},
    {"dprintf", Way::kWrite},
    {"fgetc", Way::kRead, Measure::kOne},
    {"fgetc_unlocked", Way::kRead, Measure::kOne},
    {"fgets", Way::kRead, Measure::kRetLen},
    {"fgets_unlocked", Way::kRead, Measure::kRetLen},
    {"fprintf", Way::kWrite},
    {"fputc", Way::kWrite, Measure::kOne},
    {"fputc_unlocked", Way::kWrite, Measure::kOne},
    {"fread", Way::kRead, Measure::kItems},
    {"fread_unlocked", Way::kRead, Measure::kItems},
    {"fwrite", Way::kWrite, Measure::kItems},
    {"fwrite_unlocked", Way::kWrite, Measure::kItems},
    {"getc", Way::kRead, Measure::kOne},
    {"getc_unlocked", Way::kRead, Measure::kOne},
    {"getdelim", Way::kRead},
    {"getline", Way::kRead},
    {"pread", Way::kRead},
    {"pread64", Way::kRead},
    {"preadv", Way::kRead},
    {"preadv2", Way::kRead},
    {"preadv64", Way::kRead},
    {"preadv64v2", Way::kRead},
    {"printf", Way::kWrite},
    {"putc", Way::kWrite, Measure::kOne},
    {"putc_unlocked", Way::kWrite, Measure::kOne},
    {"pwrite", Way::kWrite},
    {"pwrite64", Way::kWrite},
    {"pwritev", Way::kWrite},
    {"pwritev2", Way::kWrite},
    {"pwritev64", Way::kWrite},
    {"pwritev64v2", Way::kWrite},
    {"read", Way::kRead},
    {"readv", Way::kRead},
    {"sendfile", Way::kBoth},
    {"sendfile64", Way::kBoth},
    {"splice", Way::kBoth},
    {"vdprintf", Way::kWrite},
    {"vfprintf", Way::kWrite},
    {"vprintf", Way::kWrite},
    {"write", Way::kWrite},
    {"writev", Way::kWrite},
};

}  // namespace

Traffic traffic_of(std::string_view category, std::string_view name) {
  if (category != "POSIX" && category != "STDIO") return {};
  const auto* found = std::lower_bound(
      std::begin(kCalls), std::end(kCalls), name,
      [](const Call& call, std::string_view wanted) { return call.name < wanted; });
  if (found == std::end(kCalls) || found->name != name) return {};
  return {found->way, found->measure};
}

std::uint64_t moved_bytes(Measure measure, std::span<const Field> args) {
  std::int64_t ret = measure == Measure::kRetLen ? 0 : -1;
  std::int64_t size = 1;
  for (const Field& field : args) {
    if (measure == Measure::kRetLen ? is(field.key, "ret_len") : is(field.key, "ret")) {
      integer_of(field, ret);
    } else if (measure == Measure::kItems && is(field.key, "size")) {
      integer_of(field, size);
    }
  }
  if (measure == Measure::kOne) return ret == -1 ? 0 : 1;
  if (ret <= 0 || size <= 0) return 0;
  std::int64_t product = 0;
  return __builtin_mul_overflow(ret, size, &product) ? 0 : static_cast<std::uint64_t>(product);
}

}  // namespace dft::reader
