#include "intercept/elf_object.hpp"

#include "intercept/probe.hpp"

namespace dft::intercept {

namespace {

// The loader has made the addresses in the dynamic section absolute, except in the vDSO.
bool read_dynamic(const ElfW(Dyn) * dynamic, Object& object) noexcept {
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
      case DT_HASH:
        object.old_hashes = reinterpret_cast<const std::uint32_t*>(address(value));
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

}  // namespace

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
      // As the loader rounds them when it protects them.
      const std::size_t page = sys::page_size();
      object.relro_begin = at / page * page;
      object.relro_end = (at + part.p_memsz) / page * page;
    }
  }
  return dynamic != nullptr && read_dynamic(dynamic, object);
}

bool describe_offers(const link_map& map, Object& object) noexcept {
  object = {};
  object.base = map.l_addr;
  return map.l_ld != nullptr && read_dynamic(map.l_ld, object);
}

bool describe_libc(const link_map* objects, Object& libc) noexcept {
  for (const link_map* map = objects; map != nullptr; map = map->l_next)
    if (describe_offers(*map, libc) && libc.is_libc()) return true;
  return false;
}

// Libraries begin with their ELF header. The kernel checks the address, in case one does not.
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

void* Object::at(std::uint32_t index, const char* name, unsigned type) const noexcept {
  constexpr unsigned kHidden = 0x8000;  // an older version of the symbol
  const ElfW(Sym) & symbol = symbols[index];
  const bool usable = symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
                      ELF64_ST_TYPE(symbol.st_info) == type &&
                      (versions == nullptr || (versions[index] & kHidden) == 0);
  if (!usable || !is_same(names + symbol.st_name, name)) return nullptr;
  return reinterpret_cast<void*>(base + symbol.st_value);
}

void* Object::find(const char* name, unsigned type) const noexcept {
  void* found = nullptr;
  if (hashes != nullptr) {
    // Buckets, each the index of its first symbol, and beside the symbols their hashes, whose
    // lowest bit says that the bucket ends.
    std::uint32_t hash = 5381;
    for (const char* p = name; *p != '\0'; ++p) hash = hash * 33 + static_cast<unsigned char>(*p);
    const std::uint32_t buckets = hashes[0];
    const std::uint32_t first = hashes[1];
    const std::uint32_t* bucket = hashes + 4 + hashes[2] * (sizeof(ElfW(Addr)) / sizeof(hash));
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t at = buckets != 0 ? bucket[hash % buckets] : 0;
    for (bool more = at >= first && at != 0; more && found == nullptr; ++at) {
      if ((chain[at - first] | 1) == (hash | 1)) found = this->at(at, name, type);
      more = (chain[at - first] & 1) == 0;
    }
  } else if (old_hashes != nullptr) {
    // Buckets, each the index of its first symbol, and for each symbol the next of its bucket.
    std::uint32_t hash = 0;
    for (const char* p = name; *p != '\0'; ++p) {
      hash = (hash << 4) + static_cast<unsigned char>(*p);
      hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
    }
    const std::uint32_t buckets = old_hashes[0];
    const std::uint32_t* chain = old_hashes + 2 + buckets;
    std::uint32_t at = buckets != 0 ? old_hashes[2 + hash % buckets] : 0;
    for (; at != 0 && found == nullptr; at = chain[at]) found = this->at(at, name, type);
  }
  return found;
}

}  // namespace dft::intercept
