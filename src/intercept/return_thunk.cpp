#include "intercept/return_thunk.hpp"

#include <string_view>

#include "base/hot.hpp"
#include "base/syscalls.hpp"

extern "C" {
DFT_HOT extern bool dftracer_jumps_back;
DFT_HOT constinit bool dftracer_jumps_back = false;
}

#if defined(__x86_64__)

// The name is the one that -mfunction-return=thunk-extern refers to. rcx holds no return value and
// is not preserved across calls.
asm(R"(
  .text
  .p2align 6
  .hidden __x86_return_thunk
  .globl __x86_return_thunk
  .type __x86_return_thunk, @function
__x86_return_thunk:
  .cfi_startproc
  cmpb $0, dftracer_jumps_back(%rip)
  je 1f
  .cfi_remember_state
  popq %rcx
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %rcx
  jmp *%rcx
1:
  .cfi_restore_state
  ret
  .cfi_endproc
  .size __x86_return_thunk, . - __x86_return_thunk
)");

#endif

namespace dft::intercept {
namespace {

// CET shadow stack, which only calls and returns may change.
bool has_shadow_stack() {
#if defined(__x86_64__)
  unsigned long pointer = 0;
  asm volatile("rdsspq %0" : "+r"(pointer));  // does nothing where there is none
  return pointer != 0;
#else
  return false;
#endif
}

}  // namespace

void choose_way_back() noexcept {
  char says[128];
  const long n = sys::read_file("/sys/devices/system/cpu/vulnerabilities/spec_rstack_overflow",
                                says, sizeof says);
  const std::string_view guard(says, n > 0 ? static_cast<std::size_t>(n) : 0);
  dftracer_jumps_back = guard.find("Safe RET") != std::string_view::npos && !has_shadow_stack();
}

}  // namespace dft::intercept
