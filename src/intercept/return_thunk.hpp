// How a wrapper returns to the program: by a jump where returns are always mispredicted.
#pragma once

// Some kernels flush the return stack buffer on a system call, as a mitigation of return-predictor
// attacks: then every return after a system call is mispredicted, the wrapper's as well. There,
// wrappers jump back through a register, which the indirect-branch predictor handles.
#if defined(__x86_64__) && __has_cpp_attribute(gnu::function_return) && !defined(__CET__)
#define DFT_RETURNS [[gnu::function_return("thunk-extern")]]
#else
#define DFT_RETURNS
#endif

namespace dft::intercept {

// Detects it, once.
void choose_way_back() noexcept;

}  // namespace dft::intercept
