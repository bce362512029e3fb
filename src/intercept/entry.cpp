#include "intercept/entry.hpp"

#include "intercept/patch.hpp"
#include "intercept/processes.hpp"
#include "intercept/rows.hpp"

using namespace dft::intercept;  // NOLINT: as in rows.cpp

// vfork returns twice on one stack: whatever the wrapper had there would be gone the second time.
// So the event is recorded before, and the real function is jumped to.
extern "C" void* dftracer_before_vfork() {
  before_vfork();
  return reinterpret_cast<void*>(real<pid_t()>(Row::vfork));
}

// dlopen looks at its return address to see who calls, whose search path counts. So it is jumped to
// as well, unless the name is one for which that does not matter; then the wrapper can act
// afterwards.
extern "C" void* dftracer_before_dlopen(const char* file, int mode) {
  if (can_follow_dlopen(file, mode)) return reinterpret_cast<void*>(followed_dlopen);
  return reinterpret_cast<void*>(real<void*(const char*, int)>(Row::dlopen));
}

// dlsym looks at its return address, too.
extern "C" void* dftracer_before_dlsym() {
  before_dlsym();
  return reinterpret_cast<void*>(real<void*(void*, const char*)>(Row::dlsym));
}

extern "C" void* dftracer_real_syscall() {
  return reinterpret_cast<void*>(
      real<long(long, long, long, long, long, long, long)>(Row::syscall));
}

#if defined(__x86_64__)

// The hot ones of other kinds, futex among them, pass by after a look at a table.
asm(R"(
  .text
  .hidden dftracer_wrap_vfork
  .globl dftracer_wrap_vfork
  .type dftracer_wrap_vfork, @function
dftracer_wrap_vfork:
  .cfi_startproc
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call dftracer_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dftracer_wrap_vfork, . - dftracer_wrap_vfork
  .hidden dftracer_wrap___vfork
  .globl dftracer_wrap___vfork
  .set dftracer_wrap___vfork, dftracer_wrap_vfork

  .macro dftracer_jump_after name
  .hidden dftracer_wrap_\name
  .globl dftracer_wrap_\name
  .type dftracer_wrap_\name, @function
dftracer_wrap_\name:
  .cfi_startproc
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call dftracer_before_\name
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dftracer_wrap_\name, . - dftracer_wrap_\name
  .endm
  dftracer_jump_after dlopen
  dftracer_jump_after dlsym

  .hidden dftracer_wrap_syscall
  .globl dftracer_wrap_syscall
  .type dftracer_wrap_syscall, @function
dftracer_wrap_syscall:
  .cfi_startproc
  cmpq $512, %rdi
  jae 1f
  leaq dftracer_wanted_calls(%rip), %rax
  cmpb $0, (%rax, %rdi)
  jne dftracer_wrap_syscall_wanted
1:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call dftracer_real_syscall
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dftracer_wrap_syscall, . - dftracer_wrap_syscall
)");
static_assert(kCallNumbers == 512);

#else

extern "C" void* DFT_WRAPPER(dlopen)(const char* file, int mode) {
  return reinterpret_cast<void* (*)(const char*, int)>(dftracer_before_dlopen(file, mode))(file,
                                                                                           mode);
}
extern "C" void* DFT_WRAPPER(dlsym)(void* handle, const char* name) {
  return reinterpret_cast<void* (*)(void*, const char*)>(dftracer_before_dlsym())(handle, name);
}
extern "C" long dftracer_wrap_syscall_wanted(long, long, long, long, long, long, long);
extern "C" long DFT_WRAPPER(syscall)(long number, long a, long b, long c, long d, long e, long f) {
  return dftracer_wrap_syscall_wanted(number, a, b, c, d, e, f);
}

#endif
