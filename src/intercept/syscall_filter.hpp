// Which of the calls that a program makes through syscall() are looked at: dftracer_wanted_calls,
// one byte per number, which the entry of syscall() reads (tail_calls.cpp).
#pragma once

namespace dft::intercept {

// System calls from this number on go through syscall() unseen.
inline constexpr long kCallNumbers = 512;

}  // namespace dft::intercept
