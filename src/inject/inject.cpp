// libdftracer_inject.so: the functions that NVTX and ITT look for in the library of a tool, each a jump
// into the core. Apart from the core and from the preload library, because a name that a program finds
// in every traced process is one that it may call.
#include <cstdint>

extern "C" {

int dftracer_nvtx_attach(const void* (*exports)(std::uint32_t));
void dftracer_itt_attach(void* global, std::uint32_t groups);

#define DFT_INJECTED __attribute__((visibility("default")))

DFT_INJECTED int InitializeInjectionNvtx2(const void* (*exports)(std::uint32_t)) {
  return dftracer_nvtx_attach(exports);
}

DFT_INJECTED void __itt_api_init(void* global, std::uint32_t groups) {
  dftracer_itt_attach(global, groups);
}

}  // extern "C"
