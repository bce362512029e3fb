// A loaded ELF object: its imports and exports, read straight from its memory, so that it can be
// done while the loader is locked.
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace dft::intercept {

// Not strcmp: a sanitizer may interpose it and not be initialized yet.
constexpr bool is_same(const char* a, const char* b) {
  while (*a == *b && *a != '\0') {
    ++a;
    ++b;
  }
  return *a == *b;
}

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
  ElfW(Addr) own_name;              // DT_SONAME, as an offset in the string table; 0: none
  const std::uint32_t* old_hashes;  // DT_HASH
  const std::uint32_t* hashes;      // DT_GNU_HASH
  const ElfW(Half) * versions;      // of the symbols

  [[nodiscard]] bool is_called(const char* name) const {
    return own_name != 0 && is_same(names + own_name, name);
  }
  [[nodiscard]] bool is_libc() const { return is_called("libc.so.6"); }
  // The function, or the variable, that it exports under this name, or null. Calls no other code.
  [[nodiscard]] void* function(const char* name) const noexcept { return find(name, STT_FUNC); }
  [[nodiscard]] void* variable(const char* name) const noexcept { return find(name, STT_OBJECT); }

 private:
  [[nodiscard]] void* find(const char* name, unsigned type) const noexcept;
  [[nodiscard]] void* at(std::uint32_t index, const char* name, unsigned type) const noexcept;
};

// False if the object cannot be used.
bool describe(const dl_phdr_info& info, Object& object) noexcept;
// An object of another namespace, of which only the load address is known.
bool describe(const link_map& map, Object& object) noexcept;
// Only its exports and its name. Calls no other code.
bool describe_offers(const link_map& map, Object& object) noexcept;
// The same for the libc among these objects; false if there is none.
bool describe_libc(const link_map* objects, Object& libc) noexcept;

}  // namespace dft::intercept
