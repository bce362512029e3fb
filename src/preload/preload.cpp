// libdftracer_preload.so: the names of libc's functions, each a jump to its wrapper in the core.
// Made from the table of calls; nothing else is in here, so that a process has one state, in the core,
// whichever way it was loaded.
extern "C" {

void dftracer_preload_begin();
void dftracer_function_enter(void*, void*);
void dftracer_function_exit(void*, void*);

// Where this library is: what a call is passed on to is looked for behind it.
__attribute__((visibility("default"))) extern const char dftracer_preload_here = 1;

// The core's table, by its row: {symbol, shown, function, category}.
struct Wrapper {
  const char* symbol;
  const char* shown;
  void* function;
  long category;
};
extern const Wrapper dftracer_wrappers[];

// Where each name leads: to a look into the table at first, because calls come before constructors
// have run; from then on straight to the wrapper.
extern void* dftracer_ways[] __attribute__((visibility("hidden")));
extern void* dftracer_ways_end[] __attribute__((visibility("hidden")));

__attribute__((constructor)) static void begin() {
  const Wrapper* entry = dftracer_wrappers;
  for (void** way = dftracer_ways; way != dftracer_ways_end; ++way) *way = (entry++)->function;
  dftracer_preload_begin();
}

// The hooks of programs that are compiled with -finstrument-functions. libc has functions of these names
// that do nothing; they are no rows of the table because they are not calls of libc's.
__attribute__((visibility("default"))) void __cyg_profile_func_enter(void* function, void* site) {
  dftracer_function_enter(function, site);
}
__attribute__((visibility("default"))) void __cyg_profile_func_exit(void* function, void* site) {
  dftracer_function_exit(function, site);
}

}  // extern "C"

static_assert(sizeof(Wrapper) == 32 && __builtin_offsetof(Wrapper, function) == 16);
#if defined(__x86_64__)

// r11 is free across a call; all argument registers stay as they are.
asm(R"(
  .text
  .set dftracer_entry, 16
  .data
  .p2align 6
dftracer_ways:
)");
#define DFT_JUMP(symbol)                                \
  asm(".data\n"                                         \
      "1: .quad 2f\n"                                   \
      ".section .text.unlikely, \"ax\"\n"               \
      "2:\n"                                            \
      "  movq dftracer_wrappers@GOTPCREL(%rip), %r11\n" \
      "  jmp *dftracer_entry(%r11)\n"                   \
      ".set dftracer_entry, dftracer_entry + 32\n"      \
      ".text\n"                                         \
      ".globl " #symbol                                 \
      "\n"                                              \
      ".type " #symbol                                  \
      ", @function\n"                                   \
      ".p2align 3\n" #symbol                            \
      ":\n"                                             \
      "  jmp *1b(%rip)\n"                               \
      ".size " #symbol ", . - " #symbol "\n");

#elif defined(__aarch64__)

// x16 and x17 are free across a call; all argument registers stay as they are. A name leaves the
// address of its way in x17, from which the first call finds its row in the core's table: ways are
// 8 bytes apart, rows 32. `hint #34` is `bti c`: indirect calls may land here, and so may a branch
// through x16.
asm(R"(
  .text
  .p2align 2
  .type dftracer_first_call, %function
dftracer_first_call:
  hint #34
  adrp x16, dftracer_ways
  add x16, x16, :lo12:dftracer_ways
  sub x17, x17, x16
  adrp x16, :got:dftracer_wrappers
  ldr x16, [x16, :got_lo12:dftracer_wrappers]
  add x16, x16, x17, lsl #2
  ldr x16, [x16, #16]
  br x16
  .size dftracer_first_call, . - dftracer_first_call
  .data
  .p2align 6
dftracer_ways:
)");
#define DFT_JUMP(symbol)               \
  asm(".data\n"                        \
      "1: .quad dftracer_first_call\n" \
      ".text\n"                        \
      ".globl " #symbol                \
      "\n"                             \
      ".type " #symbol                 \
      ", %function\n"                  \
      ".p2align 2\n" #symbol           \
      ":\n"                            \
      "  hint #34\n"                   \
      "  adrp x17, 1b\n"               \
      "  add x17, x17, :lo12:1b\n"     \
      "  ldr x16, [x17]\n"             \
      "  br x16\n"                     \
      ".size " #symbol ", . - " #symbol "\n");

#endif

#define DFT_ROW(category, symbol, shown) DFT_JUMP(symbol)
#include "format/calls.def"
asm(R"(
  .data
dftracer_ways_end:
  .text
)");
