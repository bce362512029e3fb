// Rewriting the import tables of loaded objects, so that a program which starts the tracer itself
// is intercepted without the preload library, and name spaces of their own are with it. Under the
// loader's lock, on the thread that begins or that loaded a library.
#pragma once

namespace dft::intercept {

// Objects of name spaces that dlmopen has made, or these and the program's own.
enum class Which : int { kNone, kOthers, kAll };
// Where the preload library does not reach: everywhere, if there is none.
Which unpreloaded() noexcept;

// Sends every import of an intercepted function to its wrapper, in the objects that are loaded now.
void patch_objects(Which which) noexcept;
// Sends them back to the real functions.
void restore_objects() noexcept;

// Whether a library can be loaded on the caller's behalf without the loader noticing, and needs to
// be looked at afterwards.
bool can_follow_dlopen(const char* file, int mode) noexcept;
void* followed_dlopen(const char* file, int mode);
// The same with a name space.
bool can_follow_dlmopen(const char* file) noexcept;
void* followed_dlmopen(long space, const char* file, int mode);
// A library is about to be loaded unobserved, and is looked at when somebody asks for a function.
void expect_library(Which which) noexcept;
void before_dlsym() noexcept;

}  // namespace dft::intercept
