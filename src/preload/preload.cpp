// libdftracer_preload.so: the names of libc's functions, each a jump to its wrapper in the core.
// The table of rows makes them; nothing else is in here, so that the core has the one state of a
// process whichever way led in.
#include <dlfcn.h>

extern "C" {

void dftracer_preload_begin();

// The next function of that name after this library: libc's, or another interposer's.
__attribute__((visibility("default"))) void* dftracer_preload_next(const char* name) {
  // By way of dlvsym, because the name dlsym is one of ours.
  using Function = void* (*)(void*, const char*);
  static Function dlsym_itself = nullptr;
  if (dlsym_itself == nullptr) {
    void* at = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (at == nullptr) at = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (at == nullptr) return nullptr;
    dlsym_itself = reinterpret_cast<Function>(at);
  }
  void* found = dlsym_itself(RTLD_NEXT, name);
  asm("" : "+r"(found));  // a jump instead of a call would make the core the one who asks
  return found;
}

__attribute__((constructor)) static void begin() { dftracer_preload_begin(); }

}  // extern "C"

// One entry is {symbol, shown, function, set}: 32 bytes, the function at 16. r11 belongs to nobody
// across a call, and all argument registers stay as they are.
asm(R"(
  .text
  .set dftracer_entry, 16
)");
#define DFT_JUMP(symbol)                                \
  asm(".globl " #symbol                                 \
      "\n"                                              \
      ".type " #symbol                                  \
      ", @function\n"                                   \
      ".p2align 4\n" #symbol                            \
      ":\n"                                             \
      "  movq dftracer_wrappers@GOTPCREL(%rip), %r11\n" \
      "  jmp *dftracer_entry(%r11)\n"                   \
      ".size " #symbol ", . - " #symbol                 \
      "\n"                                              \
      ".set dftracer_entry, dftracer_entry + 32\n");
#define DFT_ROW(set, symbol, ...) DFT_JUMP(symbol)
#define DFT_ODD(set, symbol, shown) DFT_JUMP(symbol)
#include "intercept/table.def"
