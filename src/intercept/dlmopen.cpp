#include "intercept/dlmopen.hpp"

#include <dlfcn.h>

#include "intercept/elf_object.hpp"
#include "intercept/link_namespaces.hpp"
#include "intercept/wrapper_list.hpp"

// Set by the entry: the number of the namespace, and in the low 16 bits the row. Read by the
// wrapper when it calls its libc. A signal handler or a callback may come from a third namespace
// and overwrite it; the call then runs in a libc whose errno the caller does not see. There is no
// per-call state that could prevent this.
extern "C" {
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] extern thread_local std::uint32_t dftracer_other_call;
thread_local constinit std::uint32_t dftracer_other_call = 0;
}

// The entries, 16 bytes each: all rows of each namespace.
asm(".set dftracer_rows, 0");
#define DFT_ROW(category, symbol, shown) asm(".set dftracer_rows, dftracer_rows + 1");
#include "format/calls.def"
#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .type dftracer_other_entries, @function
dftracer_other_entries:
  .cfi_startproc
  .set dftracer_space, 1
  .rept 15
  .set dftracer_row, 0
  .rept dftracer_rows
  .p2align 4
  movl $(dftracer_space << 16 | dftracer_row), %r11d
  jmp dftracer_other_enter
  .set dftracer_row, dftracer_row + 1
  .endr
  .set dftracer_space, dftracer_space + 1
  .endr
dftracer_other_enter:
  movq dftracer_other_call@gottpoff(%rip), %r10
  movl %r11d, %fs:(%r10)
  movzwl %r11w, %r11d
  leaq dftracer_other_wrappers(%rip), %r10
  jmp *(%r10, %r11, 8)
  .cfi_endproc
  .size dftracer_other_entries, . - dftracer_other_entries
)");
#elif defined(__aarch64__)
// x9 to x17 hold no argument and are free across a call; `hint #34` is `bti c`.
asm(R"(
  .text
  .p2align 4
  .type dftracer_other_entries, %function
dftracer_other_entries:
  .cfi_startproc
  .set dftracer_space, 1
  .rept 15
  .set dftracer_row, 0
  .rept dftracer_rows
  hint #34
  movz w16, #dftracer_row
  movk w16, #dftracer_space, lsl #16
  b dftracer_other_enter
  .set dftracer_row, dftracer_row + 1
  .endr
  .set dftracer_space, dftracer_space + 1
  .endr
dftracer_other_enter:
  adrp x9, :gottprel:dftracer_other_call
  ldr x9, [x9, :gottprel_lo12:dftracer_other_call]
  mrs x10, tpidr_el0
  str w16, [x10, x9]
  and x16, x16, #0xffff
  adrp x9, dftracer_other_wrappers
  add x9, x9, :lo12:dftracer_other_wrappers
  ldr x16, [x9, x16, lsl #3]
  br x16
  .cfi_endproc
  .size dftracer_other_entries, . - dftracer_other_entries
)");
#endif
extern "C" [[gnu::visibility("hidden")]] char dftracer_other_entries[];

namespace dft::intercept {
namespace {

static_assert(kMostOthers == 15);
constexpr std::size_t kEntrySize = 16;

struct OtherLibc {
  std::atomic<const Space*> known_by;
  std::atomic<int* (*)()> errno_at;
  std::atomic<void*> real[kRows];
};
OtherLibc g_others[kMostOthers + 1];

OtherLibc& of_this_call() noexcept { return g_others[dftracer_other_call >> 16]; }

// The function that a namespace resolves this name to: its libc's, or the first object's
// that has it.
struct Offers {
  const link_map* objects;
  Object libc;

  [[nodiscard]] void* function(const char* name) const noexcept {
    void* found = libc.function(name);
    Object object;
    for (const link_map* map = objects; map != nullptr && found == nullptr; map = map->l_next)
      if (describe_offers(*map, object)) found = object.function(name);
    return found;
  }
};

// All of them each time: glibc reuses the numbers of namespaces. Not through dlmopen or dlsym: the
// loader is locked, and glibc's dlmopen fails without unlocking if the namespace has just gone.
void meet(OtherLibc& libc, const link_map* objects) noexcept {
  Offers offers{objects, {}};
  const bool has_libc = describe_libc(objects, offers.libc);
  void* errno_at = has_libc ? offers.libc.function("__errno_location") : nullptr;
  libc.errno_at.store(reinterpret_cast<int* (*)()>(errno_at));
  for (std::size_t row = 0; row < kRows; ++row) {
    void* found = errno_at != nullptr ? offers.function(kWrappers[row].symbol) : nullptr;
    libc.real[row].store(found, std::memory_order_relaxed);
  }
}

}  // namespace

bool has_others() noexcept { return next_space(first_space()) != nullptr; }

void meet_others() noexcept {
  for (const Space* space = next_space(first_space()); space != nullptr;
       space = next_space(space)) {
    link_map* first = space->common.r_map;
    Lmid_t number = 0;
    if (first == nullptr || ::dlinfo(first, RTLD_DI_LMID, &number) != 0) continue;
    if (number < 1 || number > static_cast<Lmid_t>(kMostOthers)) continue;
    meet(g_others[number], first);
    g_others[number].known_by.store(space);
  }
}

void* other_real(unsigned space, std::size_t row) noexcept {
  return g_others[space].real[row].load(std::memory_order_relaxed);
}

void* other_entry(unsigned space, std::size_t row) noexcept {
  return dftracer_other_entries + ((space - 1) * kRows + row) * kEntrySize;
}

const link_map* other_objects(unsigned space) noexcept {
  const Space* known_by = g_others[space].known_by.load();
  return known_by != nullptr ? known_by->common.r_map : nullptr;
}

void* find_real(OtherRow row) noexcept {
  return of_this_call().real[index_of(row)].load(std::memory_order_relaxed);
}

int errno_of_other() noexcept { return *of_this_call().errno_at.load()(); }

}  // namespace dft::intercept
