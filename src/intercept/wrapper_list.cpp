// The table of wrappers. Apart from their definitions, so that it can name all of them alike: it
// must be there before any constructor has run.
#include "intercept/wrapper_list.hpp"

using dft::intercept::kRows;
using dft::intercept::Set;
using dft::intercept::Wrapper;

#define DFT_BOTH(symbol)                    \
  extern "C" void dftracer_wrap_##symbol(); \
  extern "C" void dftracer_other_##symbol();
#define DFT_ROW(set, symbol, ...) DFT_BOTH(symbol)
#define DFT_ODD(set, symbol, shown) DFT_BOTH(symbol)
#include "intercept/wrap.def"

extern "C" __attribute__((visibility("default"))) constinit const Wrapper dftracer_wrappers[] = {
#define DFT_ROW(set, symbol, shown, ...) {#symbol, shown, dftracer_wrap_##symbol, Set::set},
#define DFT_ODD(set, symbol, shown) {#symbol, shown, dftracer_wrap_##symbol, Set::set},
#include "intercept/wrap.def"
};
static_assert(std::size(dftracer_wrappers) == kRows);

// Those for the libcs of other name spaces, by the same rows.
using Function = void();
extern "C" Function* const dftracer_other_wrappers[];
extern "C" [[gnu::visibility("hidden")]] constinit Function* const dftracer_other_wrappers[] = {
#define DFT_ROW(set, symbol, ...) dftracer_other_##symbol,
#define DFT_ODD(set, symbol, ...) dftracer_other_##symbol,
#include "intercept/wrap.def"
};
static_assert(std::size(dftracer_other_wrappers) == kRows);
