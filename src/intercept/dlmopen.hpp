// The other libcs of a process. Each link-map namespace that dlmopen makes has a libc of its own,
// with its own functions, streams and errno; a call from there must end there. So the wrappers are
// compiled twice, the second time for these libcs (DFT_OTHER_LIBC), and an import is patched to an
// entry of its namespace, which notes in a thread-local where the call comes from.
#pragma once
#include <link.h>

#include <cstddef>

namespace dft::intercept {

// As many as glibc supports, beside the program's own.
inline constexpr unsigned kMostOthers = 15;

// Whether another namespace exists or has existed.
bool has_others() noexcept;
// Looks up the functions of all namespaces. Under the loader's lock, as everything below.
void meet_others() noexcept;

// For the namespace with this number: the real function of a row, and the entry to patch in. Null
// if there is none.
void* other_real(unsigned space, std::size_t row) noexcept;
void* other_entry(unsigned space, std::size_t row) noexcept;
// The first of its objects; null if it has none.
const link_map* other_objects(unsigned space) noexcept;

}  // namespace dft::intercept
