// The wrappers made from rows with a signature (format/calls.def).
#include "intercept/return_thunk.hpp"
#include "intercept/wrap_macros.hpp"

using namespace dft::intercept;  // NOLINT: the rows are written in this namespace's terms

// The rows name parameters of libc's functions, some of which only pass through.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define DFT_CALL_ROW(category, does, R, parameters, arguments, about, recorded, symbol, shown) \
  extern "C" DFT_RETURNS R DFT_WRAPPER(symbol) parameters {                                    \
    return DFT_PROBE_WITH(category, symbol, R, parameters, arguments, about,                   \
                          DFT_COUNTED(does, recorded));                                        \
  }
#include "format/calls.def"
