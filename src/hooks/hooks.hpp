// Ways in which programs tell about their regions without our interface: NVTX, ITT, and the hooks
// that compilers call at the begin and end of every function (-finstrument-functions).
// Called by the C API when a session starts, on the thread that does it.
#pragma once
#include <cstdint>

namespace dft::hooks {

// The session has started. When it ends, what the ending thread has open is recorded until then.
void begin() noexcept;
// Calls of functions that took fewer ticks are not recorded.
std::uint64_t least_ticks() noexcept;
// A library was unloaded: another one may take its addresses.
void forget_functions() noexcept;

}  // namespace dft::hooks
