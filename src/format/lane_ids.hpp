// How a trace numbers the lanes beside a thread. Written by the sink and the extension,
// read by exports.
#pragma once
#include <cstdint>

namespace dft::format {

// A lane is shown as a thread whose number has the lane's above these bits; the kernel's numbers
// are smaller. Crossing spans take lanes 1, 2, ... as needed; the highest are left to other
// tracers' events, and those of thread 0, which does not exist, to devices.
inline constexpr std::uint32_t kThreadBits = 22;
inline constexpr std::uint32_t kMostCrossing = 959;
inline constexpr std::uint32_t kFirstForeign = 960;
inline constexpr std::uint32_t kLastLane = 1023;

}  // namespace dft::format
