// The slots of a loaded object through which it calls functions of other objects (its GOT): finding
// them, and exchanging a real function for a wrapper. Under the loader's lock.
#pragma once
#include <link.h>

#include <cstddef>

#include "intercept/elf_object.hpp"

namespace dft::intercept {

#if defined(__x86_64__)
inline constexpr unsigned kJumpSlot = R_X86_64_JUMP_SLOT;
inline constexpr unsigned kGlobal = R_X86_64_GLOB_DAT;
inline constexpr unsigned kPointer = R_X86_64_64;
#elif defined(__aarch64__)
inline constexpr unsigned kJumpSlot = R_AARCH64_JUMP_SLOT;
inline constexpr unsigned kGlobal = R_AARCH64_GLOB_DAT;
inline constexpr unsigned kPointer = R_AARCH64_ABS64;
#else
#error "import tables of this architecture are not known"
#endif

struct Exchange {
  ElfW(Addr) real;
  ElfW(Addr) wrapper;
};
enum class Direction : bool { kRestore, kPatch };
void exchange(const Object& object, ElfW(Addr) slot, const Exchange& ways,
              Direction direction) noexcept;

// Calls `see(name, slot)` for every import of a function.
template <class See>
void each_import(const Object& object, See see) {
  for (int table = 0; table < 2; ++table) {
    for (std::size_t i = 0; object.tables[table] != nullptr && i < object.sizes[table]; ++i) {
      const ElfW(Rela) & entry = object.tables[table][i];
      const auto type = static_cast<unsigned>(ELF64_R_TYPE(entry.r_info));
      if (type != kJumpSlot && type != kGlobal && type != kPointer) continue;
      const ElfW(Sym) & symbol = object.symbols[ELF64_R_SYM(entry.r_info)];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0 || entry.r_addend != 0) continue;
      see(object.names + symbol.st_name, object.base + entry.r_offset);
    }
  }
}

}  // namespace dft::intercept
