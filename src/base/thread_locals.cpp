// The thread-locals of lock.hpp and signals.hpp, read and written by each thread for itself.
#include "base/lock.hpp"
#include "base/signals.hpp"

namespace dft {

thread_local constinit std::uint32_t t_slow = 0;
thread_local constinit std::int32_t t_vforked_from = 0;

}  // namespace dft
