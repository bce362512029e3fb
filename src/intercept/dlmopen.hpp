// The other libcs of a process. Each name space that dlmopen makes has a libc of its own, with its
// own functions, streams and errno; a call from there must end there. So the wrappers exist twice,
// the second time for rows of these libcs (DFT_OTHER_LIBC), and an import is sent to an entry that
// is made for its name space, which notes on the thread where the call comes from.
#pragma once
#include <link.h>

#include <cstddef>

namespace dft::intercept {

// As many as the loader makes, beside the program's own.
inline constexpr unsigned kMostOthers = 15;

// Whether there is one, or was.
bool has_others() noexcept;
// Looks up the functions of all that are there. Under the loader's lock, like what follows.
void meet_others() noexcept;

// Of the name space with this number: where its calls go, and the entry that stands in for it.
// nullptr where there is none.
void* other_real(unsigned space, std::size_t row) noexcept;
void* other_entry(unsigned space, std::size_t row) noexcept;
// The first of its objects, nullptr without any.
const link_map* other_objects(unsigned space) noexcept;

}  // namespace dft::intercept
