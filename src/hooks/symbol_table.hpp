// The functions in the symbol table of an ELF file (.symtab), by address. Called on slow paths, by one
// thread at a time.
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace dft::hooks {

// Lives as long as the process; close() gives its memory back.
class SymbolTable {
 public:
  // Reads the file of a loaded object. Empty if it cannot be read, has been replaced by another one
  // since, or was stripped. The program's descriptors are not touched.
  void load(const char* path, const dl_phdr_info& loaded) noexcept;
  struct Symbol {
    std::uint64_t address;
    const char* name;
    std::uint64_t size;  // of its code
  };
  // The function that begins at this address of the file; nullptr if there is none.
  [[nodiscard]] const Symbol* find(std::uint64_t address) const noexcept;
  void close() noexcept;

 private:
  bool read(const dl_phdr_info& loaded) noexcept;

  const std::byte* file_ = nullptr;
  std::size_t size_ = 0;
  Symbol* symbols_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

}  // namespace dft::hooks
