// The wrappers that the table's rows make.
#include "intercept/wrap_rows.hpp"

#include "intercept/return_thunk.hpp"

using namespace dft::intercept;  // NOLINT: the rows are written in this namespace's terms

// The rows name parameters of libc's functions, some of which only pass through.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define DFT_ROW(set, symbol, shown, R, params, args, about, bytes, ...)                      \
  extern "C" DFT_RETURNS R DFT_WRAPPER(symbol) params {                                      \
    return DFT_PROBE(set, symbol, R, params, args, about, bytes __VA_OPT__(, ) __VA_ARGS__); \
  }
#define DFT_ODD(set, symbol, shown)
#include "intercept/wrap.def"
