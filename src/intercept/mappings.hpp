// Which files are mapped where, so that calls about memory can be told from calls about files.
// Asked on the program's threads.
#pragma once
#include <cstddef>

#include "intercept/file_table.hpp"

namespace dft::intercept {

void remember_mapping(const void* at, std::size_t length, File* file) noexcept;
// The file that is mapped at this address, or nullptr.
File* mapped_file(const void* at) noexcept;
// These addresses hold something else now.
void forget_mapping(const void* at, std::size_t length) noexcept;

}  // namespace dft::intercept
