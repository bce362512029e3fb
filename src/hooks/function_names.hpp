// The name of a function by its address: from the dynamic symbols, or from the symbol table of the file
// that it was loaded from, which the loader leaves out. Called at a function's first call, on a slow
// path, by one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dft::hooks {

inline constexpr std::size_t kLongestFunctionName = 1024;

// As people write it: demangled, without parameters and return type ("ns::Class::method",
// "sort<int>"). "program+0x1234" where there is no symbol. The text is in `to`.
// `size` becomes the length of its code, or 0.
std::string_view name_function(const void* address, char (&to)[kLongestFunctionName],
                               std::uint64_t& size) noexcept;

// A library was unloaded.
void forget_modules() noexcept;

// "int ns::f<int>(long) const" -> "ns::f<int>"; for tests.
std::string_view without_types(std::string_view demangled) noexcept;

}  // namespace dft::hooks
