// How a wrapper returns to the program.
#pragma once

// Some kernels guard against what a processor's return predictor can be made to do, in a way that
// leaves nothing in it for the program: after a system call every return is predicted wrongly, the
// wrapper's as well. Where that is so, wrappers jump back; jumps are predicted by another part of
// the processor.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CET__)
#define DFT_RETURNS [[gnu::function_return("thunk-extern")]]
#else
#define DFT_RETURNS
#endif

namespace dft::intercept {

// Looks at the machine, once.
void choose_way_back() noexcept;

}  // namespace dft::intercept
