// A loaded object: what it imports, and what it offers. Read straight from its memory, so that it
// can be done while the loader is locked.
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dft::intercept {

inline constexpr std::size_t kPage = 4096;

struct Object {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols;
  const char* names;
  const ElfW(Rela) * tables[2];
  std::size_t sizes[2];
  ElfW(Addr) relro_begin;
  ElfW(Addr) relro_end;
  ElfW(Addr) begin;
  ElfW(Addr) end;
  ElfW(Addr) own_name;          // among the names; 0: it has none
  const std::uint32_t* hashes;  // DT_GNU_HASH
  const ElfW(Half) * versions;  // of the symbols

  [[nodiscard]] bool is_called(const char* name) const {
    return own_name != 0 && std::strcmp(names + own_name, name) == 0;
  }
  // The function that others get from it under this name, nullptr for none. Asks nobody.
  [[nodiscard]] void* function(const char* name) const noexcept;
};

// False if it is no object that can be used.
bool describe(const dl_phdr_info& info, Object& object) noexcept;
// One of another name space, of which the loader tells where it is and no more.
bool describe(const link_map& map, Object& object) noexcept;

}  // namespace dft::intercept
