#include "intercept/fault_rings.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

#include "base/syscalls.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

namespace dft::intercept {
namespace {

// Bits of perf_event_attr, whose last ones are newer than some headers.
constexpr std::uint64_t kInherit = 1 << 1;
constexpr std::uint64_t kExcludeKernel = 1 << 5;
constexpr std::uint64_t kExcludeHypervisor = 1 << 6;
constexpr std::uint64_t kUseClockId = 1 << 25;
constexpr std::uint64_t kInheritThread = std::uint64_t{1} << 35;  // Linux 5.13

// A fault that begins, and a major one that has ended: in one ring, told apart by their size.
constexpr std::uint64_t kBegins = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
constexpr std::uint64_t kEnds = kBegins | PERF_SAMPLE_CPU;
struct Sample {
  perf_event_header header;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint64_t time;
  std::uint64_t address;
};
static_assert(sizeof(Sample) == 32);
constexpr std::size_t kLargest = 64;

constexpr std::size_t kMostRings = 64;
constexpr std::size_t kMostThreads = 1024;
// 128 pages are what the kernel lets every user have per processor.
constexpr std::size_t kPages = 128;
constexpr std::size_t kFewestPages = 8;

struct Ring {
  perf_event_mmap_page* head;
  std::size_t size;  // of the data, a power of two
};
Ring g_rings[kMostRings];
std::atomic<std::size_t> g_count{0};
bool g_exclude_kernel = false;  // what the kernel faults in for the program is not permitted to see
bool g_by_thread = false;       // new threads must be found
std::uint32_t g_known[kMostThreads];
std::size_t g_known_count = 0;

int open_event(std::uint64_t config, std::uint64_t sampled, int thread, int processor,
               std::uint64_t flags) noexcept {
  perf_event_attr what;
  std::memset(&what, 0, sizeof what);
  what.type = PERF_TYPE_SOFTWARE;
  what.size = PERF_ATTR_SIZE_VER5;
  what.config = config;
  what.sample_period = 1;
  what.sample_type = sampled;
  what.wakeup_events = 1u << 30;
  what.clockid = CLOCK_REALTIME;
  flags |= kExcludeHypervisor | kUseClockId | (g_exclude_kernel ? kExcludeKernel : 0);
  std::memcpy(reinterpret_cast<char*>(&what) + offsetof(perf_event_attr, read_format) + 8, &flags,
              sizeof flags);
  return static_cast<int>(
      sys::call(SYS_perf_event_open, &what, thread, processor, -1, PERF_FLAG_FD_CLOEXEC));
}

bool map_ring(int event, Ring& ring) noexcept {
  const std::size_t page = sys::page_size();
  for (std::size_t pages = kPages; pages >= kFewestPages; pages /= 2) {
    void* at = sys::map((pages + 1) * page, MAP_SHARED, event, 0);
    if (at == nullptr) continue;
    ring = {static_cast<perf_event_mmap_page*>(at), pages * page};
    return true;
  }
  return false;
}

// The faults of a thread on a processor (-1: on any), into the ring of `output` or a new one.
// Returns the descriptor to give as `output` next time, or -1.
int watch_thread(int thread, int processor, std::uint64_t flags, int output) noexcept {
  const int begins = open_event(PERF_COUNT_SW_PAGE_FAULTS, kBegins, thread, processor, flags);
  if (begins < 0) return -1;
  if (output < 0) {
    const std::size_t count = g_count.load(std::memory_order_relaxed);
    if (count == kMostRings || !map_ring(begins, g_rings[count])) {
      sys::close(begins);
      return -1;
    }
    g_count.store(count + 1, std::memory_order_release);
    output = begins;
  } else if (sys::call(SYS_ioctl, begins, PERF_EVENT_IOC_SET_OUTPUT, output) != 0) {
    sys::close(begins);
    return -1;
  }
  const int ends = open_event(PERF_COUNT_SW_PAGE_FAULTS_MAJ, kEnds, thread, processor, flags);
  if (ends >= 0 && sys::call(SYS_ioctl, ends, PERF_EVENT_IOC_SET_OUTPUT, output) != 0)
    sys::close(ends);
  return output;
}

// The threads of the process but for this one.
template <class See>
void each_thread(See see) noexcept {
  const int tasks = sys::open("/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (tasks < 0) return;
  const int self = sys::thread_id();
  sys::each_entry(tasks, [&](const char* name) {
    int number = 0;
    for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
    if (number != 0 && number != self) see(number);
  });
  sys::close(tasks);
}

std::size_t processors(std::uint64_t (&mask)[16]) noexcept {
  const long size = sys::call(SYS_sched_getaffinity, sys::process_id(), sizeof mask, mask);
  std::size_t count = 0;
  for (long i = 0; i < size / 8; ++i)
    for (std::uint64_t left = mask[i]; left != 0; left &= left - 1) ++count;
  return count;
}

// One ring per processor, which all threads share, also those that they create later.
bool watch_processors(const std::uint64_t (&mask)[16]) noexcept {
  for (int processor = 0; processor < 1024; ++processor) {
    if ((mask[processor / 64] >> processor % 64 & 1) == 0) continue;
    int output = -1;
    bool failed = false;
    each_thread([&](int thread) {
      if (failed) return;
      const int got = watch_thread(thread, processor, kInherit | kInheritThread, output);
      // A thread may have ended meanwhile; without any ring there is something else.
      failed = got < 0 && output < 0;
      if (got >= 0) output = got;
    });
    if (output < 0) return false;
  }
  return true;
}

// One ring per thread.
bool watch_threads() noexcept {
  g_by_thread = true;
  g_known_count = 0;
  follow_threads();
  return g_count.load() != 0;
}

template <class T>
T atomically(T& from) noexcept {
  return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

// Copies from a ring, whose end continues at its beginning.
void copy_from(const Ring& ring, std::uint64_t at, void* to, std::size_t size) noexcept {
  const char* data = reinterpret_cast<const char*>(ring.head) + sys::page_size();
  const std::size_t begin = at & (ring.size - 1);
  const std::size_t first = size < ring.size - begin ? size : ring.size - begin;
  std::memcpy(to, data + begin, first);
  std::memcpy(static_cast<char*>(to) + first, data, size - first);
}

std::size_t take_from(Ring& ring, FaultSample* to, std::size_t most, std::uint64_t& lost) noexcept {
  const std::uint64_t head = atomically(ring.head->data_head);
  std::uint64_t tail = ring.head->data_tail;
  std::size_t count = 0;
  while (tail < head && count < most) {
    alignas(8) char record[kLargest] = {};
    perf_event_header header;
    copy_from(ring, tail, &header, sizeof header);
    if (header.size < sizeof header) {  // cannot be
      tail = head;
      break;
    }
    copy_from(ring, tail, record, header.size < kLargest ? header.size : kLargest);
    if (header.type == PERF_RECORD_SAMPLE) {
      Sample sample;
      std::memcpy(&sample, record, sizeof sample);
      to[count++] = {sample.thread, header.size > sizeof sample, sample.time, sample.address};
    } else if (header.type == PERF_RECORD_LOST) {
      std::uint64_t words[2];  // an id, and how many
      std::memcpy(words, record + sizeof header, sizeof words);
      lost += words[1];
    }
    tail += header.size;
  }
  __atomic_store_n(&ring.head->data_tail, tail, __ATOMIC_RELEASE);
  return count;
}

}  // namespace

bool open_fault_rings() noexcept {
  std::uint64_t mask[16] = {};
  const std::size_t allowed = processors(mask);
  std::size_t threads = 0;
  each_thread([&](int) { ++threads; });
  constexpr std::size_t kMostEvents = 64;
  for (const bool exclude_kernel : {false, true}) {
    g_exclude_kernel = exclude_kernel;
    g_by_thread = false;
    if (allowed * threads <= kMostEvents && watch_processors(mask)) return true;
    close_fault_rings();
    if (watch_threads()) return true;
    close_fault_rings();
  }
  return false;
}

void follow_threads() noexcept {
  if (!g_by_thread) return;
  each_thread([](int thread) {
    const auto number = static_cast<std::uint32_t>(thread);
    for (std::size_t i = 0; i < g_known_count; ++i)
      if (g_known[i] == number) return;
    if (g_known_count == kMostThreads) return;
    g_known[g_known_count++] = number;
    watch_thread(thread, -1, 0, -1);
  });
}

void close_fault_rings() noexcept {
  const std::size_t count = g_count.exchange(0);
  for (std::size_t i = 0; i < count; ++i) {
    sys::unmap(g_rings[i].head, g_rings[i].size + sys::page_size());
    g_rings[i] = {};
  }
  // The thread's table holds nothing else: other files are open only while they are written.
  sys::call(SYS_close_range, 0, ~0u, 0);
}

void forget_fault_rings() noexcept { g_count.store(0); }

std::size_t take_samples(FaultSample* to, std::size_t most, std::uint64_t& lost) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < g_count.load(std::memory_order_acquire) && count < most; ++i)
    count += take_from(g_rings[i], to + count, most - count, lost);
  return count;
}

}  // namespace dft::intercept
