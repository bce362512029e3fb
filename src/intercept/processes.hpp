// The beginnings and ends of processes, seen from inside.
#pragma once

namespace dft::intercept {

// On the thread that is about to call vfork.
void before_vfork() noexcept;
// The process leaves without running its destructors.
void process_leaves() noexcept;

// The process is about to forbid itself what the tracer needs: what was recorded is written, and
// nothing is recorded from then on.
void enters_sandbox() noexcept;

}  // namespace dft::intercept
