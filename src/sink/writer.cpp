#include "sink/writer.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/message.hpp"
#include "base/thread_io.hpp"
#include "sink/raw_thread.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

namespace dft::sink {
namespace {
constexpr unsigned kUnshareFiles = 2;  // CLOSE_RANGE_UNSHARE
// The thread polls by the clock instead of waiting for the next full chunk: the kernel tends to
// place a woken thread on the waker's CPU, where it takes time from the program although other
// CPUs are idle. It places a new thread on an idle CPU, and short sleeps keep it there; so an
// idle thread exits soon. Polling also spares the program's threads the wake-up system call.
constexpr long kNapNs = 1'000'000;
constexpr long kIdleNs = 20'000'000;
// While it watches something, an idle thread looks this often.
constexpr long kWatchNapNs = 5'000'000;
constexpr std::uint32_t kLooksBetweenCounts = 32;
// This many full chunks end a sleep early: half of those that a spool starts with.
constexpr std::uint32_t kHurry = 4;
constexpr int kMostBlocks = 1024;  // per round
constexpr long kLookNs = 20'000;
constexpr int kLooks = 10'000;

// SCHED_BATCH: on waking up, the thread does not preempt the one that runs on its CPU. It still
// gets its fair share. Only if the program has not chosen a policy of its own.
void stand_back() {
  const sched_param none{};
  if (sys::call(SYS_sched_getscheduler, 0) == SCHED_OTHER)
    sys::call(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
}

// Whether the program's threads have all ended. Its first thread stays as a zombie while others run.
bool is_last_thread() noexcept {
  const int tasks = sys::open("/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (tasks < 0) return false;
  const int self = sys::thread_id();
  const int leader = sys::process_id();
  int others = 0;
  bool only_leader = true;
  sys::each_entry(tasks, [&](const char* name) {
    int number = 0;
    for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
    if (number == 0 || number == self) return;
    ++others;
    only_leader &= number == leader;
  });
  sys::close(tasks);
  if (others == 0) return true;
  if (!only_leader) return false;
  // "pid (name) state", of the first thread.
  char stat[256];
  const long got = sys::read_file("/proc/self/stat", stat, sizeof stat);
  const char* closing = nullptr;
  for (long i = 0; i + 2 < got; ++i)
    if (stat[i] == ')') closing = stat + i;
  return closing != nullptr && (closing[2] == 'Z' || closing[2] == 'X');
}

}  // namespace

void Writer::watch(const Watch& watch) noexcept {
  if (watch_.exchange(&watch) != &watch) resume_watch();
}

void Writer::resume_watch() noexcept {
  if (watch_.load() != nullptr && !start_if_needed()) ring();
}

void Writer::notify() noexcept {
  say_what_was_kept();
  const std::uint32_t work = work_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (!start_if_needed() && work - taken_.load(std::memory_order_relaxed) == kHurry) ring();
}

// Returns true if it started the thread.
bool Writer::start_if_needed() noexcept {
  auto none = WriterState::kNone;
  const std::uint32_t pauses = pauses_.load();
  // Creating a thread needs more stack than a signal handler may have.
  if (state_.load() != none || holds_.load() != 0 || on_alternate_stack()) return false;
  if (!state_.compare_exchange_strong(none, WriterState::kRuns)) return false;
  pauses_before_ = pauses;
  const WriterState started = start();
  if (started != WriterState::kRuns) state_.store(started);
  return true;
}

void Writer::ring() noexcept {
  bell_.fetch_add(1);
  sys::futex_wake(&bell_, 1);
}

bool Writer::make_room(std::size_t size, bool small, std::uint32_t seen_segments) noexcept {
  const std::uint64_t blocks = sink_.blocks();
  const std::uint32_t rounds = rounds_.load();
  {
    Locked locked(ask_lock_);
    if (asked_size_ < size) {
      asked_size_ = size;
      asked_small_ = small;
      asked_seen_ = seen_segments;
    }
  }
  const auto ask = [this] {
    work_.fetch_add(1, std::memory_order_seq_cst);
    if (!start_if_needed()) ring();
  };
  say_what_was_kept();
  ask();
  bool again = false;
  for (int i = 0; i < 100 && state_.load() == WriterState::kRuns; ++i) {
    const std::uint32_t seen = sink_.progress();
    if (sink_.blocks() != blocks || spool_.segments() != seen_segments) return true;
    if (rounds_.load() - rounds > 1) return false;  // two rounds without any gain
    if (rounds_.load() != rounds && !again) {
      again = true;
      ask();
    }
    sink_.wait(seen, 1'000'000);
  }
  return sink_.blocks() != blocks || spool_.segments() != seen_segments;
}

// Called under the sink's lock, before the full chunks are written: growing is faster.
void Writer::grow_if_asked() noexcept {
  Locked locked(ask_lock_);
  const std::size_t size = asked_size_;
  asked_size_ = 0;
  if (size == 0 || sink_.closed()) return;
  const bool huge = size > buffer::kLargeChunk - sizeof(buffer::ChunkHead);
  const bool burst = asked_small_ || huge || spool_.large_chunks() < buffer::kMostLargeChunks;
  if (spool_.has_free(size, asked_small_)) return;
  if (burst || !sink_.has_full_chunks()) spool_.grow(size, asked_small_, asked_seen_);
}

// The caller is on a slow path, so the thread inherits a fully blocked signal mask: the program's
// handlers keep running on the program's threads only. If no thread can be created, the threads
// that need room drain themselves.
Writer::WriterState Writer::start() noexcept {
  const RawStart raw = raw_ ? start_raw_thread(main, this) : RawStart::kNo;
  if (raw != RawStart::kNo) return raw == RawStart::kYes ? WriterState::kRuns : WriterState::kNone;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return WriterState::kCannot;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  const auto body = [](void* self) -> void* {
    main(self);
    return nullptr;
  };
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, body, this);
  if (error == EINVAL) {  // thread-locals of the program need more stack
    pthread_attr_setstacksize(&attributes, std::size_t{2} << 20);
    error = pthread_create(&thread, &attributes, body, this);
  }
  pthread_attr_destroy(&attributes);
  return error == 0 ? WriterState::kRuns : WriterState::kCannot;
}

void Writer::stop() noexcept {
  stopping_.store(true);
  ring();
}

void Writer::pause() noexcept {
  pauses_.fetch_add(1);
  ring();
  for (int i = 0; i < kLooks; ++i) {
    int thread = thread_.load();
    if (thread == 0 && state_.load() != WriterState::kRuns) break;
    if (thread != 0 && sys::call(SYS_tgkill, sys::process_id(), thread, 0) != 0) {
      thread_.compare_exchange_strong(thread, 0);
      break;
    }
    sys::sleep_ns(kLookNs);
  }
}

void Writer::hold() noexcept {
  holds_.fetch_add(1);
  pause();
}

void Writer::let_go() noexcept { holds_.fetch_sub(1); }

void Writer::main(void* self) noexcept {
  static_cast<Writer*>(self)->run();
  leave_thread_io();
}

void Writer::run() noexcept {
  thread_.store(sys::thread_id());
  sys::call(SYS_prctl, PR_SET_NAME, "dftracer", 0, 0, 0);
  // A descriptor table of its own, without copies of the program's descriptors: our files never
  // take a number that the program expects to get, and never keep one of its pipes open. Before
  // Linux 5.9 the table stays shared.
  has_own_table_ = sys::call(SYS_close_range, 0, ~0u, kUnshareFiles) == 0;
  if (has_own_table_) say_later_on_this_thread();
  stand_back();
  watch_failed_ = false;
  long idle = 0;
  // Work at least once, or a program that forks all the time would never make progress.
  bool worked = false;
  taken_.store(work_.load() - 1);
  for (std::uint32_t round = 0;; ++round) {
    const std::uint32_t bell = bell_.load();
    if (stopping_.load()) return end_watch();
    begin_watch();
    if (watching_ != nullptr && watching_->look()) work_.fetch_add(1, std::memory_order_seq_cst);
    const bool work =
        work_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed);
    const bool is_idle = idle >= kIdleNs;
    if (work && !(worked && is_sent_away())) {
      work_off();
      worked = true;
      idle = 0;
    } else if (is_sent_away() || (is_idle && watching_ == nullptr) ||
               (is_idle && round % kLooksBetweenCounts == 0 && is_last_thread())) {
      // An idle thread exits: a process whose other threads have ended could otherwise never end.
      end_watch();
      if (leave()) return;
      continue;
    } else {
      idle += kNapNs;
    }
    const long nap = watching_ != nullptr && is_idle ? kWatchNapNs : kNapNs;
    if (!is_sent_away()) sys::futex_wait(&bell_, bell, nap);
  }
}

void Writer::begin_watch() noexcept {
  const Watch* wanted = watch_.load(std::memory_order_acquire);
  if (wanted == nullptr || watching_ != nullptr || watch_failed_ || is_sent_away()) return;
  // In a table that it shares, the program would see the descriptors.
  watch_failed_ = !has_own_table_ || !wanted->begin();
  if (!watch_failed_) watching_ = wanted;
}

void Writer::end_watch() noexcept {
  if (watching_ == nullptr) return;
  watching_->end();
  watching_ = nullptr;
}

void Writer::work_off() noexcept {
  taken_.store(work_.load(std::memory_order_acquire), std::memory_order_relaxed);
  {
    Locked locked(sink_.lock());
    grow_if_asked();
    // Bounded: a program that records faster than one thread writes must not keep the lock forever.
    bool more = true;
    for (int blocks = 0; more && blocks < kMostBlocks && !stopping_.load(); ++blocks)
      if (!sink_.write_one_block(&more) || is_sent_away()) break;
  }
  rounds_.fetch_add(1);
  sink_.notice();
}

// False if more work arrived meanwhile and no other thread has taken over.
bool Writer::leave() noexcept {
  const bool sent_away = is_sent_away();
  state_.store(WriterState::kNone);
  if (sent_away) return true;  // the next full chunk starts a new thread
  auto none = WriterState::kNone;
  return work_.load(std::memory_order_seq_cst) == taken_.load(std::memory_order_relaxed) ||
         !state_.compare_exchange_strong(none, WriterState::kRuns);
}

}  // namespace dft::sink
