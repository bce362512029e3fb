// What calls of MPI have started, joined with the calls that complete it. On the program's threads.
#pragma once
#include "intercept/mpi_words.hpp"

namespace dft::intercept::mpi {

// The handles of the requests that a call may complete: the call overwrites them.
class Pending {
 public:
  Pending(const Given& given, bool single) noexcept;
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] Word word(std::size_t i) const { return i < count_ ? words_[i] : 0; }

 private:
  Word own_[64];
  Word* words_ = own_;
  std::size_t count_ = 0;
};

// Room for the status of any library.
struct OwnStatus {
  alignas(16) std::byte bytes[64];
};

// The status of the i-th completed request; not known if the program did not want it.
Result status_at(const Given& given, Role role, std::size_t i) noexcept;

struct Completed {
  std::int64_t number = 0;
  std::int64_t last_request = kNotKnown;
};

// Records what the call has completed, between these times. False if it has found nothing.
bool complete(const Given& given, const Pending& pending, std::uint64_t start, std::uint64_t end,
              Completed& completed) noexcept;
// The same for a call that failed: it has completed those whose handles it has taken away.
void complete_failed(const Given& given, const Pending& pending, std::uint64_t start,
                     std::uint64_t end, Completed& completed) noexcept;

}  // namespace dft::intercept::mpi
