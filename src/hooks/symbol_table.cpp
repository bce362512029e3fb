#include "hooks/symbol_table.hpp"

#include <elf.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "base/syscalls.hpp"

namespace dft::hooks {

namespace {

constexpr std::size_t kMostSymbols = std::size_t{4} << 20;

struct Mapped {
  const char* path;
  const std::byte* at;
  std::size_t size;
};

void map_file(Mapped& file) {
  const int fd = sys::open(file.path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return;
  struct stat status;
  if (sys::status(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    const long got = sys::call(SYS_mmap, nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (got > 0 || got <= -4096) {
      file.at = reinterpret_cast<const std::byte*>(got);
      file.size = size;
    }
  }
  sys::close(fd);
}

[[gnu::noinline, noreturn]] void map_and_exit(Mapped* file) {
  map_file(*file);
  for (;;) sys::call(SYS_exit, 0);
}

// In a child that shares this process's memory but not its descriptors, as vfork() does it: even for a
// moment, a descriptor could have the number that another thread of the program counts on. No signal is
// sent when it ends, and a wait() of the program does not see it.
[[gnu::noinline]] void map_in_child(Mapped* file) {
  const long child =
      sys::call(SYS_clone, CLONE_VM | CLONE_VFORK, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) map_and_exit(file);
  if (child > 0) sys::call(SYS_wait4, child, nullptr, __WCLONE, nullptr);
}

template <class T>
bool read_at(const std::byte* file, std::size_t size, std::uint64_t at, T& to) {
  if (at > size || size - at < sizeof to) return false;
  std::memcpy(&to, file + at, sizeof to);
  return true;
}

}  // namespace

void SymbolTable::load(const char* path, const dl_phdr_info& loaded) noexcept {
  Mapped file{path, nullptr, 0};
  map_in_child(&file);
  // The compiler sees that the child never returns, and not that it has filled this.
  asm volatile("" : : "r"(&file) : "memory");
  // Emulators make a child with memory of its own.
  if (file.at == nullptr) map_file(file);
  if (file.at == nullptr) return;
  file_ = file.at;
  size_ = file.size;
  if (!read(loaded)) close();
}

bool SymbolTable::read(const dl_phdr_info& loaded) noexcept {
  ElfW(Ehdr) head;
  if (!read_at(file_, size_, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(ElfW(Shdr))) {
    return false;
  }
  // Another file has other segments.
  const std::size_t segments = sizeof(ElfW(Phdr)) * loaded.dlpi_phnum;
  if (head.e_phnum != loaded.dlpi_phnum || head.e_phoff > size_ ||
      size_ - head.e_phoff < segments ||
      std::memcmp(file_ + head.e_phoff, loaded.dlpi_phdr, segments) != 0) {
    return false;
  }
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    ElfW(Shdr) section;
    ElfW(Shdr) names;
    const auto at = [&head](std::uint64_t number) {
      return head.e_shoff + number * sizeof(ElfW(Shdr));
    };
    if (!read_at(file_, size_, at(i), section) || section.sh_type != SHT_SYMTAB ||
        !read_at(file_, size_, at(section.sh_link), names)) {
      continue;
    }
    if (section.sh_offset > size_ || section.sh_size > size_ - section.sh_offset ||
        names.sh_offset > size_ || names.sh_size > size_ - names.sh_offset || names.sh_size == 0) {
      return false;
    }
    const auto* text = reinterpret_cast<const char*>(file_ + names.sh_offset);
    if (text[names.sh_size - 1] != '\0') return false;
    const std::size_t count = std::min(section.sh_size / sizeof(ElfW(Sym)), kMostSymbols);
    room_ = count * sizeof(Symbol);
    symbols_ = static_cast<Symbol*>(sys::map_private(room_));
    if (symbols_ == nullptr) return false;
    for (std::size_t n = 0; n < count; ++n) {
      ElfW(Sym) symbol;
      std::memcpy(&symbol, file_ + section.sh_offset + n * sizeof symbol, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_name >= names.sh_size || text[symbol.st_name] == '\0') {
        continue;
      }
      symbols_[count_++] = {symbol.st_value, text + symbol.st_name, symbol.st_size};
    }
    // Of several names for one address, always the same one.
    std::sort(symbols_, symbols_ + count_, [](const Symbol& a, const Symbol& b) {
      return a.address != b.address ? a.address < b.address : a.name < b.name;
    });
    return count_ != 0;
  }
  return false;
}

const SymbolTable::Symbol* SymbolTable::find(std::uint64_t address) const noexcept {
  const Symbol* begin = symbols_;
  const Symbol* end = begin + count_;
  const Symbol* at = std::lower_bound(
      begin, end, address, [](const Symbol& s, std::uint64_t a) { return s.address < a; });
  return at != end && at->address == address ? at : nullptr;
}

void SymbolTable::close() noexcept {
  if (symbols_ != nullptr) sys::unmap(symbols_, room_);
  if (file_ != nullptr) sys::call(SYS_munmap, file_, size_);
  *this = {};
}

}  // namespace dft::hooks
