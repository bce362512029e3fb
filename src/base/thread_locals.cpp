#include "base/lock.hpp"
#include "base/signals.hpp"

namespace dft {

thread_local constinit std::uint32_t t_slow = 0;
thread_local constinit std::int32_t t_vforked_from = 0;

}  // namespace dft
