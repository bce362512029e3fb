// Who made an intercepted call: the line of Python code that the thread runs, and the native caller.
// A place is described once per trace, in an SH record; events carry its hash as `site_hash`. On the
// program's threads.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/hot.hpp"
#include "buffer/lane.hpp"
#include "intercept/python_frames.hpp"

namespace dft::intercept {

// Lives as long as the process.
struct Site {
  std::atomic<std::uint64_t> announced;  // the generation whose trace has its SH record
  std::uint64_t hash;                    // 0: nothing is known of the caller
  const void* caller;                    // the return address; null if Python code says it all
  PythonPlace place;                     // without code: a native place
  std::uint64_t code;                    // identities of its code objects
  std::uint64_t callee;
  std::uint32_t length;
  char text[];
};

inline constexpr std::size_t kNativeSlots = 2048;
DFT_HOT extern std::atomic<bool> g_sites;            // sites are recorded
DFT_HOT extern std::atomic<const Python*> g_python;  // null: no interpreter has been seen
[[gnu::visibility("hidden")]] extern std::atomic<Site*> g_native_sites[kNativeSlots];

// Whether events get sites, from the settings. Called when interception begins.
void use_sites(bool wanted) noexcept;
// A library has been unloaded: another one may take its addresses.
void forget_native_sites() noexcept;

// Null if there are too many places, or the interpreter has not begun.
Site* python_site(const Python& python, const void* caller) noexcept;
Site* native_site(const void* caller) noexcept;
// Puts the SH record into the thread's trace. False if that is not possible.
bool announce(Site& site) noexcept;

inline std::size_t native_slot(const void* caller) {
  return reinterpret_cast<std::uintptr_t>(caller) * 0x9e3779b97f4a7c15u >> 53;
}
static_assert(kNativeSlots == 1 << (64 - 53));

// The hash of the site, announced in the thread's trace; 0: none.
[[gnu::always_inline]] inline std::uint64_t site_of(buffer::ThreadState& t,
                                                    const void* caller) noexcept {
  if (!g_sites.load(std::memory_order_relaxed)) return 0;
  Site* site;
  if (const Python* python = g_python.load(std::memory_order_acquire)) {
    site = python_site(*python, caller);
  } else {
    site = g_native_sites[native_slot(caller)].load(std::memory_order_acquire);
    if (site == nullptr || site->caller != caller) [[unlikely]]
      site = native_site(caller);
  }
  if (site == nullptr || site->hash == 0) [[unlikely]]
    return 0;
  if (site->announced.load(std::memory_order_relaxed) != buffer::announcing(t)) [[unlikely]]
    return announce(*site) ? site->hash : 0;
  return site->hash;
}

// The return address of the function that this is inlined into: of a wrapper.
[[gnu::always_inline]] inline const void* caller_of_wrapper() noexcept {
  const void* address = __builtin_return_address(0);
#if defined(__aarch64__)
  // The highest bits may be a signature.
  constexpr std::uintptr_t kAddress = (std::uintptr_t{1} << 48) - 1;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) & kAddress);
#else
  return address;
#endif
}

}  // namespace dft::intercept
