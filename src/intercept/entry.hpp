// Entries that cannot be functions of C++: they must leave the caller's frame as they found it.
#pragma once

namespace dft::intercept {

// System calls from here on go through syscall() unseen.
inline constexpr long kCallNumbers = 512;

}  // namespace dft::intercept
