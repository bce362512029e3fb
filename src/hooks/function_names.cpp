#include "hooks/function_names.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "hooks/symbol_table.hpp"

// libstdc++'s demangler without the heap: the program's allocator may be the caller. Only its archive,
// which the core is linked with, has it.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*callback)(const char*, std::size_t, void*),
                                             void* opaque) __attribute__((weak));

namespace dft::hooks {

namespace {

// Objects whose functions were called. Further ones have dynamic symbols only.
constexpr std::size_t kMostModules = 64;
struct Module {
  std::uintptr_t base;
  std::uintptr_t begin;
  std::uintptr_t end;
  SymbolTable symbols;
};
Module g_modules[kMostModules];
std::size_t g_count = 0;

struct Wanted {
  std::uintptr_t address;
  Module* module;
  char file[256];  // its name without the directory
  std::uintptr_t base;
};

bool find_bounds(const dl_phdr_info& info, std::uintptr_t address, Module& module) {
  bool holds = false;
  module = {info.dlpi_addr, ~std::uintptr_t{0}, 0, {}};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info.dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
    module.begin = begin < module.begin ? begin : module.begin;
    module.end = begin + part.p_memsz > module.end ? begin + part.p_memsz : module.end;
    holds |= address - begin < part.p_memsz;
  }
  return holds;
}

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  Module module;
  if (!find_bounds(*info, wanted.address, module)) return 0;
  const bool is_program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
  const char* path = is_program ? "/proc/self/exe" : info->dlpi_name;
  const char* shown = is_program ? program_invocation_short_name : std::strrchr(path, '/');
  if (shown == nullptr) shown = path;
  if (*shown == '/') ++shown;
  std::strncpy(wanted.file, shown, sizeof wanted.file - 1);
  wanted.base = module.base;
  if (g_count == kMostModules) return 1;
  wanted.module = &g_modules[g_count++];
  *wanted.module = module;
  wanted.module->symbols.load(path, *info);
  return 1;
}

Wanted find_module(std::uintptr_t address) {
  Wanted wanted{address, nullptr, {}, 0};
  for (std::size_t i = 0; i < g_count; ++i) {
    Module& module = g_modules[i];
    if (address >= module.begin && address < module.end) {
      wanted.module = &module;
      wanted.base = module.base;
      return wanted;
    }
  }
  ::dl_iterate_phdr(look_at, &wanted);
  return wanted;
}

struct Text {
  char* at;
  std::size_t size;
  std::size_t room;
};

bool demangle(const char* name, Text& text) {
  if (name[0] != '_' || name[1] != 'Z' ||
      ::strnlen(name, kLongestFunctionName) == kLongestFunctionName) {
    return false;
  }
  if (&__gcclibcxx_demangle_callback != nullptr) {
    const auto append = [](const char* part, std::size_t size, void* opaque) {
      auto& to = *static_cast<Text*>(opaque);
      const std::size_t n = size < to.room - to.size ? size : to.room - to.size;
      std::memcpy(to.at + to.size, part, n);
      to.size += n;
    };
    return __gcclibcxx_demangle_callback(name, append, &text) == 0;
  }
  int status = 0;
  char* made = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (made == nullptr) return false;
  text.size = ::strnlen(made, text.room);
  std::memcpy(text.at, made, text.size);
  std::free(made);
  return true;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::string_view without_types(std::string_view text) noexcept {
  // Copies that the optimizer made, and what follows the parameters.
  if (const std::size_t clone = text.find(" [clone"); clone != text.npos)
    text = text.substr(0, clone);
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view end : {" const", " volatile", " &", " &&", " noexcept"}) {
      if (!ends_with(text, end)) continue;
      text.remove_suffix(end.size());
      again = true;
    }
  }
  // The last parenthesis closes the parameters, unless nothing is before them.
  if (ends_with(text, ")")) {
    int depth = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
      depth += text[i] == ')' ? 1 : text[i] == '(' ? -1 : 0;
      if (depth != 0) continue;
      const bool is_call_operator =
          i >= 8 && text.substr(i - 8, 8) == "operator" && i + 2 == text.size();
      if (i > 0 && !is_call_operator) text = text.substr(0, i);
      break;
    }
  }
  // What stands before the last blank outside brackets is the type that a template returns. Operators
  // have blanks in their names, and an arrow or comparison is not a bracket.
  const std::size_t operator_at = text.find("operator");
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size() && i < operator_at; ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return text.substr(begin);
}

std::string_view name_function(const void* address, char (&to)[kLongestFunctionName],
                               std::uint64_t& size) noexcept {
  size = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Dl_info dynamic{};
  const char* name = nullptr;
  ElfW(Sym)* entry = nullptr;
  if (::dladdr1(address, &dynamic, reinterpret_cast<void**>(&entry), RTLD_DL_SYMENT) != 0 &&
      dynamic.dli_saddr == address) {
    name = dynamic.dli_sname;
    if (entry != nullptr) size = entry->st_size;
  }
  Wanted wanted{};
  if (name == nullptr) {
    wanted = find_module(at);
    const SymbolTable::Symbol* found =
        wanted.module != nullptr ? wanted.module->symbols.find(at - wanted.base) : nullptr;
    if (found != nullptr) {
      name = found->name;
      size = found->size;
    }
  }
  Text text{to, 0, sizeof to};
  if (name != nullptr && demangle(name, text)) return without_types({to, text.size});
  if (name != nullptr) {
    text.size = ::strnlen(name, sizeof to);
    std::memcpy(to, name, text.size);
    return {to, text.size};
  }
  if (wanted.file[0] == '\0' && dynamic.dli_fname != nullptr) {
    const char* slash = std::strrchr(dynamic.dli_fname, '/');
    std::strncpy(wanted.file, slash != nullptr ? slash + 1 : dynamic.dli_fname,
                 sizeof wanted.file - 1);
  }
  text.size = ::strnlen(wanted.file, sizeof wanted.file);
  std::memcpy(to, wanted.file, text.size);
  std::memcpy(to + text.size, "+0x", 3);
  char* end = std::to_chars(to + text.size + 3, to + sizeof to, at - wanted.base, 16).ptr;
  return {to, static_cast<std::size_t>(end - to)};
}

void forget_modules() noexcept {
  for (std::size_t i = 0; i < g_count; ++i) g_modules[i].symbols.close();
  g_count = 0;
}

}  // namespace dft::hooks
