// Which files are mapped where, to tell calls about files from calls about memory. Used on
// the program's threads.
#pragma once
#include <cstddef>

#include "intercept/file_table.hpp"

namespace dft::intercept {

void remember_mapping(const void* at, std::size_t length, File* file) noexcept;
// The file that is mapped at this address, or nullptr.
File* mapped_file(const void* at) noexcept;
// The mapping is gone, or replaced.
void forget_mapping(const void* at, std::size_t length) noexcept;

}  // namespace dft::intercept
