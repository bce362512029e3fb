// From rows to functions: the wrapper of each row, by its place in the table.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdarg>

#include "intercept/probe.hpp"

// Where a wrapper of the row `symbol` is defined. C linkage and a name of its own: no prototype of
// libc, with its attributes and inline versions, can be in the way.
#ifdef DFT_OTHER_LIBC
#define DFT_WRAPPER(symbol) dftracer_other_##symbol
#else
#define DFT_WRAPPER(symbol) dftracer_wrap_##symbol
#endif

// The macros of a row's last columns: evaluated after the call, when `ret` is known.
#define DFT_AFTER(value) [&]([[maybe_unused]] auto ret) { return value; }
#define N(name) DFT_AFTER(field(Key::name, name))
#define K(key, value) DFT_AFTER(field(Key::key, value))
#define S(key, text) DFT_AFTER(String(Key::key, text))
#define P(key, directory, path) DFT_AFTER(Second(Key::key, directory, path))
#define D(key, fd) DFT_AFTER(SecondOpen(Key::key, fd))
#define O(key, pointer) DFT_AFTER(began_at(Key::key, pointer, ret))

namespace dft::intercept {

// Calls that return nothing are given a result, so that one probe fits all.
template <class R, class Call>
[[gnu::always_inline]] inline auto result_of(Call call) {
  if constexpr (std::is_void_v<R>) {
    call();
    return Void{};
  } else {
    return call();
  }
}
template <class R, class T>
[[gnu::always_inline]] inline R give(T value) {
  if constexpr (!std::is_void_v<R>) return static_cast<R>(value);
}

}  // namespace dft::intercept

// The common shape of a wrapper, also of one written by hand.
#define DFT_PROBE(set, symbol, R, params, args, about, bytes, ...)                           \
  give<R>(probe<Row::symbol, Set::set>(                                                      \
      about, [&] { return result_of<R>([&] { return real<R params>(Row::symbol) args; }); }, \
      DFT_AFTER(bytes) __VA_OPT__(, ) __VA_ARGS__))
