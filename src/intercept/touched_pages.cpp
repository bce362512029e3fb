#include "intercept/touched_pages.hpp"

#include <sys/ioctl.h>

#include "base/syscalls.hpp"

namespace dft::intercept {
namespace {

class Counting {
 public:
  explicit Counting(std::uintptr_t begin) : begin_(begin) {}
  void add(std::uintptr_t from, std::uintptr_t to) {
    if (touched_.bytes == 0) touched_.first = from - begin_;
    if (touched_.bytes == 0 || begin_ + touched_.last != from) ++touched_.ranges;
    touched_.last = to - begin_;
    touched_.bytes += to - from;
  }
  TouchedPages& result() { return touched_; }

 private:
  std::uintptr_t begin_;
  TouchedPages touched_{};
};

// PAGEMAP_SCAN of Linux 6.7; its header may be older.
struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanArguments {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t vec;
  std::uint64_t vec_len;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t kPresent = 1 << 3;

bool scan(int pagemap, std::uintptr_t begin, std::uintptr_t end, Counting& counting) {
  PageRegion regions[128];
  for (std::uintptr_t at = begin; at < end;) {
    ScanArguments what{};
    what.size = sizeof what;
    what.start = at;
    what.end = end;
    what.vec = reinterpret_cast<std::uint64_t>(regions);
    what.vec_len = sizeof regions / sizeof *regions;
    what.category_mask = kPresent;
    what.return_mask = kPresent;
    const long found = sys::call(SYS_ioctl, pagemap, kScan, &what);
    if (found < 0 || what.walk_end <= at) return false;
    for (long i = 0; i < found; ++i) counting.add(regions[i].start, regions[i].end);
    at = what.walk_end;
  }
  return true;
}

// Before Linux 6.7: a word per page, of which the highest bit is wanted.
bool read_words(int pagemap, std::uintptr_t begin, std::uintptr_t end, Counting& counting) {
  std::uint64_t words[2048];
  const std::size_t page = sys::page_size();
  for (std::uintptr_t at = begin; at < end;) {
    const std::size_t pages = (end - at + page - 1) / page;
    const std::size_t wanted = (pages < 2048 ? pages : 2048) * sizeof *words;
    const long got = sys::pread(pagemap, words, wanted, at / page * sizeof *words);
    if (got <= 0) return false;
    const std::size_t whole = static_cast<std::size_t>(got) / sizeof *words;
    for (std::size_t i = 0; i < whole; ++i, at += page)
      if (words[i] >> 63 != 0) counting.add(at, at + page);
    if (whole == 0) return false;
  }
  return true;
}

}  // namespace

TouchedPages count_touched(std::uintptr_t begin, std::uintptr_t end) noexcept {
  // Not /proc/self: the first thread may have ended.
  const int pagemap = sys::open("/proc/thread-self/pagemap", O_RDONLY);
  if (pagemap < 0) return {};
  const std::size_t page = sys::page_size();
  begin = begin / page * page;
  end = (end + page - 1) / page * page;
  Counting counting(begin);
  bool known = scan(pagemap, begin, end, counting);
  if (!known) {
    counting = Counting(begin);
    known = read_words(pagemap, begin, end, counting);
  }
  sys::close(pagemap);
  counting.result().known = known;
  return counting.result();
}

}  // namespace dft::intercept
