#include "sink/writer.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include "record/say.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

namespace dft::sink {
namespace {
constexpr unsigned kUnshareFiles = 2;  // CLOSE_RANGE_UNSHARE
constexpr long kIdleNs = 500'000'000;
constexpr long kLookNs = 20'000;
constexpr int kLooks = 10'000;
}  // namespace

void Writer::notify() noexcept {
  say_what_was_kept();
  work_.fetch_add(1, std::memory_order_seq_cst);
  auto none = State::kNone;
  // Making a thread takes more stack than a signal handler may have.
  if (state_.load() == State::kNone && on_alternate_stack()) return;
  if (state_.compare_exchange_strong(none, State::kRuns)) {
    // Where no thread can be had, the threads that need room drain by themselves.
    if (!start()) state_.store(State::kCannot);
  } else if (none == State::kRuns) {
    sys::futex_wake(&work_, 1);
  }
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
  notify();
  bool again = false;
  for (int i = 0; i < 100 && state_.load() == State::kRuns; ++i) {
    const std::uint32_t seen = sink_.progress();
    if (sink_.blocks() != blocks || spool_.segments() != seen_segments) return true;
    if (rounds_.load() - rounds > 1) return false;  // it has been round twice and gained nothing
    if (rounds_.load() != rounds && !again) {
      again = true;
      notify();
    }
    sink_.wait(seen, 1'000'000);
  }
  return sink_.blocks() != blocks || spool_.segments() != seen_segments;
}

// Called under the sink's lock, before the full chunks are written: growing is quicker.
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

bool Writer::start() noexcept {
  // The caller is on a slow path, so the thread inherits a mask in which every signal is blocked:
  // the program's handlers keep running on the program's threads only.
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, main, this);
  if (error == EINVAL) {  // a program with a lot of thread-local data needs more
    pthread_attr_setstacksize(&attributes, std::size_t{2} << 20);
    error = pthread_create(&thread, &attributes, main, this);
  }
  pthread_attr_destroy(&attributes);
  return error == 0;
}

void Writer::stop() noexcept {
  stopping_.store(true);
  work_.fetch_add(1);
  sys::futex_wake(&work_, 1);
}

void Writer::pause() noexcept {
  if (state_.load() == State::kRuns) {
    pausing_.store(true);
    work_.fetch_add(1);
    sys::futex_wake(&work_, 1);
  }
  for (int i = 0; i < kLooks; ++i) {
    int thread = thread_.load();
    if (thread == 0 && state_.load() != State::kRuns) break;
    if (thread != 0 && sys::call(SYS_tgkill, sys::process_id(), thread, 0) != 0) {
      thread_.compare_exchange_strong(thread, 0);
      break;
    }
    sys::sleep_ns(kLookNs);
  }
  pausing_.store(false);
}

void* Writer::main(void* self) noexcept {
  static_cast<Writer*>(self)->run();
  return nullptr;
}

void Writer::run() noexcept {
  thread_.store(sys::thread_id());
  sys::call(SYS_prctl, PR_SET_NAME, "dftracer", 0, 0, 0);
  // A table of its own, without copies of the program's descriptors: our files can never take a
  // number that the program expects to get, and never keep a pipe of its open. Before Linux 5.9 the
  // table is shared.
  if (sys::call(SYS_close_range, 0, ~0u, kUnshareFiles) == 0) say_later_on_this_thread();
  std::uint32_t seen = work_.load() - 1;
  while (!stopping_.load()) {
    const std::uint32_t now = work_.load(std::memory_order_acquire);
    if (now != seen) {
      seen = now;
      {
        Locked locked(sink_.lock());
        grow_if_asked();
        sink_.drain(Sink::Scope::kFull);
      }
      rounds_.fetch_add(1);
      sink_.notice();
      continue;
    }
    if (pausing_.load()) {
      if (leave(seen)) return;
    } else if (sys::futex_wait(&work_, seen, kIdleNs) == -ETIMEDOUT && leave(seen)) {
      // Idle threads leave: a process whose own threads have all ended would otherwise never end.
      return;
    }
  }
}

// False when there was something to do after all, and nobody else has taken it on.
bool Writer::leave(std::uint32_t seen) noexcept {
  state_.store(State::kNone);
  auto none = State::kNone;
  return work_.load(std::memory_order_seq_cst) == seen ||
         !state_.compare_exchange_strong(none, State::kRuns);
}

}  // namespace dft::sink
