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

// dlsym uses its return address, too, but only for the two handles that mean a search order.
extern "C" void* DFT_WRAPPER(before_dlsym)(void* handle, const char* symbol) {
  before_dlsym();
  if constexpr (kIsOwn<Row::dlsym>) {
    if (can_follow_dlsym(handle, symbol)) return reinterpret_cast<void*>(followed_dlsym);
  }
  return reinterpret_cast<void*>(real<void*(void*, const char*)>(Row::dlsym));
}

extern "C" void* DFT_WRAPPER(real_syscall)() {
  return reinterpret_cast<void*>(
      real<long(long, long, long, long, long, long, long)>(Row::syscall));
}

asm(R"(
  .macro dftracer_function name
  .text
  .p2align 2
  .hidden \name
  .globl \name
  .type \name, %function
\name:
  .endm
)");

// Hot system calls that are not recorded, such as futex, pass after one table lookup.
#if defined(__x86_64__)

asm(R"(
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

#elif defined(__aarch64__)

// `hint #34` is `bti c`: indirect calls may land here. The real function is entered through x16,
// which its own landing pad admits. The return address is stored and restored as it came: the real
// function signs it itself, where it does.
asm(R"(
  .macro dftracer_frame size
  stp x29, x30, [sp, #-\size]!
  .cfi_def_cfa_offset \size
  .cfi_offset x29, -\size
  .cfi_offset x30, 8-\size
  mov x29, sp
  .endm
  .macro dftracer_unframe size
  ldp x29, x30, [sp], #\size
  .cfi_restore x29
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  .endm

  .macro dftracer_jump_after name, before
  dftracer_function \name
  .cfi_startproc
  hint #34
  dftracer_frame 48
  stp x0, x1, [sp, #16]
  str x2, [sp, #32]
  bl \before
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldr x2, [sp, #32]
  dftracer_unframe 48
  br x16
  .cfi_endproc
  .size \name, . - \name
  .endm

  .macro dftracer_jump_unless_wanted name, wanted, real
  dftracer_function \name
  .cfi_startproc
  hint #34
  cmp x0, #512
  b.hs 1f
  adrp x16, dftracer_wanted_calls
  add x16, x16, :lo12:dftracer_wanted_calls
  ldrb w16, [x16, x0]
  cbz w16, 1f
  b \wanted
1:
  dftracer_frame 80
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  bl \real
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  dftracer_unframe 80
  br x16
  .cfi_endproc
  .size \name, . - \name
  .endm
)");

#endif

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
