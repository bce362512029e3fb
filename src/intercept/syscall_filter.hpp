// Which of the calls that a program makes through syscall() are looked at: dftracer_wanted_calls,
// a byte for each number, which the entry of syscall reads (tail_calls.cpp).
#pragma once

namespace dft::intercept {

// System calls from here on go through syscall() unseen.
inline constexpr long kCallNumbers = 512;

}  // namespace dft::intercept
