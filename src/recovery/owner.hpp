// Identifies the owner of a spool, and checks whether that process image still runs.
// Called at start-up and by recoverers; any thread.
#pragma once
#include "buffer/layout.hpp"

namespace dft::recovery {

// Describes this process image, for other processes to identify it.
void describe_self(buffer::Owner& owner) noexcept;

// Replaces a process of this host by its parent; false if there is none, or it is not visible.
bool describe_parent(buffer::Owner& owner) noexcept;

enum class Life {
  kRuns,
  kGone,
  kCannotTell,  // on another host, or in another pid namespace
};

// `spool` and `mapped_as` are the base names of the spool file, now and when it was mapped: a
// running image has the file mapped under one of them; an image that replaced it by exec, with
// the same pid and start time, does not.
Life life_of(const buffer::Owner& owner, const char* spool, const char* mapped_as) noexcept;

// Whether the process exists at all, whatever program it runs now.
bool process_exists(const buffer::Owner& owner) noexcept;

// The same for all images that one process runs (across exec).
std::uint64_t process_key(const buffer::Owner& owner) noexcept;

}  // namespace dft::recovery
