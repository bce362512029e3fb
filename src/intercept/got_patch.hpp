// Rewrites the GOT of loaded objects: all of them if the program starts the tracer itself, without
// the preload library, and those of other link-map namespaces in any case. Under the loader's lock,
// on the thread that begins interception or that loaded a library.
#pragma once

namespace dft::intercept {

// The objects of namespaces that dlmopen has made, or these and the program's own.
enum class Which : int { kNone, kOthers, kAll };
// The objects that the preload library does not reach: all, if there is none.
Which unpreloaded() noexcept;

// Patches every import of an intercepted function in the objects that are loaded now.
void patch_objects(Which which) noexcept;
// Restores the real functions.
void restore_objects() noexcept;

// Whether the wrapper may call dlopen itself, so that it can patch the library afterwards: not if
// the loader needs to see the caller's return address.
bool can_follow_dlopen(const char* file, int mode) noexcept;
void* followed_dlopen(const char* file, int mode);
// The same for dlmopen.
bool can_follow_dlmopen(const char* file) noexcept;
void* followed_dlmopen(long space, const char* file, int mode);
// A library is about to be loaded by a jump to the loader: it is patched at the next dlsym.
void expect_library(Which which) noexcept;
void before_dlsym() noexcept;
// A function of a library layer, looked up by name.
bool can_follow_dlsym(void* handle, const char* symbol) noexcept;
void* followed_dlsym(void* handle, const char* symbol);

}  // namespace dft::intercept
