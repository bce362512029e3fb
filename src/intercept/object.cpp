#include "intercept/object.hpp"

#include "intercept/probe.hpp"

namespace dft::intercept {

// The loader has made the addresses in the dynamic section absolute, except in the kernel's own
// object.
bool describe(const dl_phdr_info& info, Object& object) noexcept {
  object = {};
  object.base = info.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  object.begin = ~ElfW(Addr){0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info.dlpi_phdr[i];
    const ElfW(Addr) at = object.base + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (part.p_type == PT_LOAD) {
      if (at < object.begin) object.begin = at;
      if (at + part.p_memsz > object.end) object.end = at + part.p_memsz;
    }
    if (part.p_type == PT_GNU_RELRO) {
      object.relro_begin = at / kPage * kPage;
      object.relro_end = (at + part.p_memsz) / kPage * kPage;
    }
  }
  if (dynamic == nullptr) return false;
  const auto address = [&](ElfW(Addr) value) {
    return value < object.base ? object.base + value : value;
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object.symbols = reinterpret_cast<const ElfW(Sym)*>(address(value));
        break;
      case DT_STRTAB:
        object.names = reinterpret_cast<const char*>(address(value));
        break;
      case DT_GNU_HASH:
        object.hashes = reinterpret_cast<const std::uint32_t*>(address(value));
        break;
      case DT_VERSYM:
        object.versions = reinterpret_cast<const ElfW(Half)*>(address(value));
        break;
      case DT_SONAME:
        object.own_name = value;
        break;
      case DT_JMPREL:
        object.tables[0] = reinterpret_cast<const ElfW(Rela)*>(address(value));
        break;
      case DT_PLTRELSZ:
        object.sizes[0] = value / sizeof(ElfW(Rela));
        break;
      case DT_RELA:
        object.tables[1] = reinterpret_cast<const ElfW(Rela)*>(address(value));
        break;
      case DT_RELASZ:
        object.sizes[1] = value / sizeof(ElfW(Rela));
        break;
      default:
        break;
    }
  }
  return object.symbols != nullptr && object.names != nullptr;
}

// Libraries begin with their header; the kernel is asked, in case one does not.
bool describe(const link_map& map, Object& object) noexcept {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(map.l_addr);
  if (!kernel_reads(reinterpret_cast<const char*>(header)) ||
      std::memcmp(header, ELFMAG, SELFMAG) != 0)
    return false;
  dl_phdr_info info{};
  info.dlpi_addr = map.l_addr;
  info.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(map.l_addr + header->e_phoff);
  info.dlpi_phnum = header->e_phnum;
  return describe(info, object);
}

// A table of buckets, each the index of its first symbol, and beside the symbols their hashes, of
// which the lowest bit says that the bucket ends.
void* Object::function(const char* name) const noexcept {
  constexpr unsigned kHidden = 0x8000;  // an older version, for those who were linked to it
  if (hashes == nullptr) return nullptr;
  std::uint32_t hash = 5381;
  for (const char* p = name; *p != '\0'; ++p) hash = hash * 33 + static_cast<unsigned char>(*p);
  const std::uint32_t buckets = hashes[0];
  const std::uint32_t first = hashes[1];
  const std::uint32_t filter_words = hashes[2];
  const std::uint32_t* bucket = hashes + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  std::uint32_t at = bucket[hash % buckets];
  if (at < first) return nullptr;
  for (;; ++at) {
    const std::uint32_t found = chain[at - first];
    const ElfW(Sym) & symbol = symbols[at];
    if ((found | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        (versions == nullptr || (versions[at] & kHidden) == 0) &&
        std::strcmp(names + symbol.st_name, name) == 0)
      return reinterpret_cast<void*>(base + symbol.st_value);
    if ((found & 1) != 0) return nullptr;
  }
}

}  // namespace dft::intercept
