// One io_uring of the program: where its queues are, and which of its requests are in flight. The
// queues are memory that the program and the kernel write; everything read from them is checked.
// Used by the wrappers of liburing and of syscall(), on the program's threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "intercept/generation_lock.hpp"
#include "intercept/pending.hpp"

namespace dft::intercept {

// Of the kernel's interface (linux/io_uring.h), which build machines may not have.
inline constexpr unsigned kSetupSqe128 = 1u << 10;
inline constexpr unsigned kSetupCqe32 = 1u << 11;
inline constexpr unsigned kSetupNoMmap = 1u << 14;
inline constexpr unsigned kSetupNoArray = 1u << 16;
inline constexpr unsigned kSetupCqeMixed = 1u << 18;
inline constexpr unsigned kSetupSqeMixed = 1u << 19;
inline constexpr unsigned kFeatureSingleMmap = 1u << 0;

struct Sqe {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint16_t ioprio;
  std::int32_t fd;
  std::uint64_t off;
  std::uint64_t addr;
  std::uint32_t len;
  std::uint32_t op_flags;
  std::uint64_t user_data;
  std::uint16_t buf_index;
  std::uint16_t personality;
  std::int32_t file_index;  // or the descriptor that a splice reads
  std::uint64_t addr3;
  std::uint64_t pad;
};
static_assert(sizeof(Sqe) == 64);
struct Cqe {
  std::uint64_t user_data;
  std::int32_t res;
  std::uint32_t flags;
};
static_assert(sizeof(Cqe) == 16);

// Where the queues are.
struct RingQueues {
  int fd;
  unsigned setup_flags;
  const std::byte* sqes;
  const unsigned* sq_array;  // null: entry i is request i
  const unsigned* sq_tail;   // the kernel's
  unsigned sq_entries;       // powers of two
  const std::byte* cqes;
  const unsigned* cq_tail;
  unsigned cq_entries;
};

class Ring {
 public:
  // Ready for a new ring. Signals are blocked. False without memory.
  bool begin(const RingQueues& queues, unsigned sq_seen, std::uint64_t generation) noexcept;

  // The requests up to `tail` are about to be submitted; returns how many are new. `site` is that
  // of the submitting call.
  unsigned see_submissions(buffer::ThreadState& t, unsigned tail, std::uint64_t start,
                           std::uint64_t site) noexcept;
  // Records the requests whose completions are new.
  void see_completions(buffer::ThreadState& t, std::uint64_t now) noexcept;
  // The ring or the recording ends: requests in flight are recorded as unfinished. Returns the
  // number of completions whose requests were not seen.
  std::uint64_t finish(buffer::ThreadState& t, std::uint64_t now) noexcept;
  // Its memory is about to go. Under the lock.
  void forget_queues() noexcept { queues_.cq_tail = nullptr; }

  // The registered files, from `first` on; a null `fds` makes empty slots.
  void resize_files(unsigned count) noexcept;
  void set_files(unsigned first, const int* fds, unsigned count) noexcept;

  // Threads that find the ring busy leave what is new to the next call. What was seen in another
  // generation, before a fork or in another session, is forgotten.
  bool lock(const buffer::ThreadState& t) noexcept;
  void unlock() noexcept { lock_.unlock(); }

  [[nodiscard]] const RingQueues& queues() const noexcept { return queues_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return pending_.size(); }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

 private:
  void add(buffer::ThreadState& t, const Sqe& sqe, std::uint64_t start,
           std::uint64_t site) noexcept;
  void complete(buffer::ThreadState& t, const Cqe& cqe, std::uint64_t now) noexcept;
  [[nodiscard]] File* fixed_file(unsigned slot) const noexcept;
  void record_unfinished(buffer::ThreadState& t, const Request& request,
                         std::uint64_t now) noexcept;
  bool make_room(buffer::ThreadState& t, std::uint64_t now) noexcept;

  RingQueues queues_{};
  GenerationLock lock_;
  std::uint64_t generation_ = 0;
  // Completions whose request was not seen or had no room, or that were overwritten before they
  // were seen.
  std::uint64_t unseen_ = 0;
  unsigned sq_seen_ = 0;
  unsigned cq_seen_ = 0;
  PendingTable pending_;
  std::atomic<File*>* files_ = nullptr;  // registered ones
  unsigned file_count_ = 0;
  unsigned file_room_ = 0;
};

}  // namespace dft::intercept
