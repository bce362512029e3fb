// Who owns a spool, and whether that process image still runs.
// Called at start-up and by recoverers.
#pragma once
#include "buffer/layout.hpp"

namespace dft::recovery {

// This process image, as others will have to recognise it.
void describe_self(buffer::Owner& owner) noexcept;

// Turns a process of this host into its parent; false when there is none to be seen.
bool describe_parent(buffer::Owner& owner) noexcept;

enum class Life {
  kRuns,
  kGone,
  kCannotTell,  // on another host, or in another pid namespace
};

// `spool` and `mapped_as` are base names of the spool's file, now and when it was mapped: an image
// that runs has it mapped under one of them; one that exec has replaced, under the same pid and
// start time, has not.
Life life_of(const buffer::Owner& owner, const char* spool, const char* mapped_as) noexcept;

// Whether the process is there at all, whatever program it runs now.
bool process_exists(const buffer::Owner& owner) noexcept;

// Equal for all images that one process has had.
std::uint64_t process_key(const buffer::Owner& owner) noexcept;

}  // namespace dft::recovery
