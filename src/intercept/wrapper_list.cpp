// The list of wrappers. Apart from their definitions, so that it can declare all of them alike: it
// must be there before any constructor has run.
#include "intercept/wrapper_list.hpp"

using dft::intercept::Category;
using dft::intercept::kRows;
using dft::intercept::Wrapper;

#define DFT_ROW(category, symbol, shown)    \
  extern "C" void dftracer_wrap_##symbol(); \
  extern "C" void dftracer_other_##symbol();
#include "format/calls.def"

extern "C" __attribute__((visibility("default"))) constinit const Wrapper dftracer_wrappers[] = {
#define DFT_ROW(category, symbol, shown) \
  {#symbol, #shown, dftracer_wrap_##symbol, Category::category},
#include "format/calls.def"
};
static_assert(std::size(dftracer_wrappers) == kRows);

// Those for the libcs of other link-map namespaces, by the same rows.
using Function = void();
extern "C" Function* const dftracer_other_wrappers[];
extern "C" [[gnu::visibility("hidden")]] constinit Function* const dftracer_other_wrappers[] = {
#define DFT_ROW(category, symbol, shown) dftracer_other_##symbol,
#include "format/calls.def"
};
static_assert(std::size(dftracer_other_wrappers) == kRows);
