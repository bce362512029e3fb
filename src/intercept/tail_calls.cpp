// Entries written in assembly, because they must leave the caller's frame as they found it.
#include <dlfcn.h>

#include "intercept/got_patch.hpp"
#include "intercept/processes.hpp"
#include "intercept/syscall_filter.hpp"
#include "intercept/wrap_macros.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp

// vfork returns twice on one stack: a wrapper's frame would be overwritten by the second return. So
// the event is recorded before, and the entry jumps to the real function.
extern "C" void* DFT_WRAPPER(before_vfork)() {
  before_vfork();
  return reinterpret_cast<void*>(real<pid_t()>(Row::vfork));
}

// dlopen uses its return address to find the caller's search path and namespace. So the entry jumps
// to it, unless neither matters for the name; then the wrapper can act afterwards.
extern "C" void* DFT_WRAPPER(before_dlopen)(const char* file, int mode) {
  if constexpr (kIsOwn<Row::dlopen>) {
    if (can_follow_dlopen(file, mode)) return reinterpret_cast<void*>(followed_dlopen);
  } else {
    expect_library(Which::kOthers);
  }
  return reinterpret_cast<void*>(real<void*(const char*, int)>(Row::dlopen));
}

// dlmopen uses its return address for the search path only.
extern "C" void* DFT_WRAPPER(before_dlmopen)(Lmid_t, const char* file) {
  if constexpr (kIsOwn<Row::dlmopen>) {
    if (can_follow_dlmopen(file)) return reinterpret_cast<void*>(followed_dlmopen);
  } else {
    expect_library(Which::kOthers);
  }
  return reinterpret_cast<void*>(real<void*(Lmid_t, const char*, int)>(Row::dlmopen));
}

// dlsym uses its return address, too.
extern "C" void* DFT_WRAPPER(before_dlsym)() {
  before_dlsym();
  return reinterpret_cast<void*>(real<void*(void*, const char*)>(Row::dlsym));
}

extern "C" void* DFT_WRAPPER(real_syscall)() {
  return reinterpret_cast<void*>(
      real<long(long, long, long, long, long, long, long)>(Row::syscall));
}

#if defined(__x86_64__)

// Hot system calls that are not recorded, such as futex, pass after one table lookup.
asm(R"(
  .macro dftracer_function name
  .text
  .hidden \name
  .globl \name
  .type \name, @function
\name:
  .endm

  .macro dftracer_save register
  pushq \register
  .cfi_adjust_cfa_offset 8
  .endm
  .macro dftracer_restore register
  popq \register
  .cfi_adjust_cfa_offset -8
  .endm

  .macro dftracer_jump_after name, before
  dftracer_function \name
  .cfi_startproc
  dftracer_save %rdi
  dftracer_save %rsi
  dftracer_save %rdx
  call \before
  dftracer_restore %rdx
  dftracer_restore %rsi
  dftracer_restore %rdi
  jmp *%rax
  .cfi_endproc
  .size \name, . - \name
  .endm

  .macro dftracer_jump_unless_wanted name, wanted, real
  dftracer_function \name
  .cfi_startproc
  cmpq $512, %rdi
  jae 1f
  leaq dftracer_wanted_calls(%rip), %rax
  cmpb $0, (%rax, %rdi)
  jne \wanted
1:
  dftracer_save %rdi
  dftracer_save %rsi
  dftracer_save %rdx
  dftracer_save %rcx
  dftracer_save %r8
  dftracer_save %r9
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call \real
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  dftracer_restore %r9
  dftracer_restore %r8
  dftracer_restore %rcx
  dftracer_restore %rdx
  dftracer_restore %rsi
  dftracer_restore %rdi
  jmp *%rax
  .cfi_endproc
  .size \name, . - \name
  .endm
)");
static_assert(kCallNumbers == 512);

#define DFT_AS_TEXT(symbol) #symbol
#define DFT_TEXT(symbol) DFT_AS_TEXT(symbol)
#define DFT_JUMP_AFTER(symbol, before) \
  asm("dftracer_jump_after " DFT_TEXT(DFT_WRAPPER(symbol)) ", " DFT_TEXT(DFT_WRAPPER(before)))
DFT_JUMP_AFTER(vfork, before_vfork);
DFT_JUMP_AFTER(__vfork, before_vfork);
DFT_JUMP_AFTER(dlopen, before_dlopen);
DFT_JUMP_AFTER(dlmopen, before_dlmopen);
DFT_JUMP_AFTER(dlsym, before_dlsym);
asm("dftracer_jump_unless_wanted " DFT_TEXT(DFT_WRAPPER(syscall)) ", "  //
    DFT_TEXT(DFT_WRAPPER(syscall_wanted)) ", " DFT_TEXT(DFT_WRAPPER(real_syscall)));

#else

extern "C" void* DFT_WRAPPER(dlopen)(const char* file, int mode) {
  return reinterpret_cast<void* (*)(const char*, int)>(DFT_WRAPPER(before_dlopen)(file, mode))(
      file, mode);
}
extern "C" void* DFT_WRAPPER(dlmopen)(Lmid_t space, const char* file, int mode) {
  return reinterpret_cast<void* (*)(Lmid_t, const char*, int)>(
      DFT_WRAPPER(before_dlmopen)(space, file))(space, file, mode);
}
extern "C" void* DFT_WRAPPER(dlsym)(void* handle, const char* name) {
  return reinterpret_cast<void* (*)(void*, const char*)>(DFT_WRAPPER(before_dlsym)())(handle, name);
}
extern "C" long DFT_WRAPPER(syscall_wanted)(long, long, long, long, long, long, long);
extern "C" long DFT_WRAPPER(syscall)(long number, long a, long b, long c, long d, long e, long f) {
  return DFT_WRAPPER(syscall_wanted)(number, a, b, c, d, e, f);
}

#endif
