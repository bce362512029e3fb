// Layers of calls whose functions are not libc's but another library's: liburing, MPI, HDF5. The
// imports of such functions are redirected in all loaded objects once the library itself is
// loaded, with the preload library and without. The preload library exports none of them: a
// program that finds a symbol which its own library lacks may call it, and abort.
//
// A layer is a table of LibraryCall, made from rows like those of format/calls.def, and a line in
// kLayers (library_layers.cpp). Its wrappers run on the program's threads; everything here runs
// on the thread that begins interception or that loaded a library.
#pragma once
#include <atomic>
#include <cstddef>

namespace dft::intercept {

struct LibraryCall {
  const char* symbol;
  void (*wrapper)();
  std::atomic<void*> real;  // null where the library does not have it
};

// All functions of a layer are found at once: when a loaded object exports `anchor`.
struct LibraryLayer {
  const char* anchor;
  LibraryCall* calls;
  std::size_t count;
  std::atomic<bool> present;
  // Fills in the calls, where that would cost a program that does not have the library; or null.
  void (*prepare)() noexcept = nullptr;
};

// Only inside a wrapper, which no program reaches before its real function was found.
template <class F>
[[gnu::always_inline]] inline F* real_of(const LibraryCall& call) noexcept {
  return reinterpret_cast<F*>(call.real.load(std::memory_order_relaxed));
}

// Looks at the objects that were loaded since the last time: cheap if there are none, and a few
// look-ups per object while no library of a layer is loaded.
void patch_library_layers() noexcept;
// Restores the real functions in all objects.
void restore_library_layers() noexcept;

// A library is about to be loaded by a jump to the loader: it is patched at the next dlsym.
void expect_library_layers() noexcept;
void patch_expected_layers() noexcept;
// Whether a layer whose library is loaded has this function.
bool is_library_call(const char* symbol) noexcept;
// What a program gets that looked up such a function by name: its wrapper, if `found` is the real
// one.
void* wrapper_for(const char* symbol, void* found) noexcept;

}  // namespace dft::intercept
