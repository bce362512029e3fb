// Accesses to mapped files: page faults, as the kernel samples them for this process, merged into
// runs; and how much of a mapping was touched when it ends. On the program's threads at calls about
// mappings, on the writer's thread in between (sink::Watch), and on the one that ends the trace.
#pragma once
#include <cstddef>
#include <cstdint>

#include "intercept/mappings.hpp"

namespace dft::intercept {

// Interception begins or ends. `wanted`: the setting.
void begin_page_faults(bool wanted) noexcept;
void end_page_faults() noexcept;

// A traced file was mapped: faults are watched from now on.
void watch_mapping() noexcept;
// This part of the address space is about to be unmapped, or moved: records what was touched there.
void before_unmap(const void* at, std::size_t length) noexcept;

}  // namespace dft::intercept
