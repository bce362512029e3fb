// From rows of the table of calls to wrappers: the columns as code. Included by wrap_*.cpp only.
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

// Evaluated after the call, when `ret` is known.
#define DFT_AFTER(value) [&]([[maybe_unused]] auto ret) { return value; }

// The column `recorded`.
#define DFT_NUM(name) DFT_AFTER(field(Key::name, name))
#define DFT_NUM_AS(key, value) DFT_AFTER(field(Key::key, value))
#define DFT_STR(key, text) DFT_AFTER(TextArg(Key::key, text))
#define DFT_PATH(key, directory, path) DFT_AFTER(SecondPath(Key::key, directory, path))
#define DFT_FILE(key, fd) DFT_AFTER(SecondFd(Key::key, fd))
#define DFT_OFFSET(key, pointer) DFT_AFTER(began_at(Key::key, pointer, ret))

// (NUM(a), STR(b, c)) -> , DFT_NUM(a), DFT_STR(b, c). DFT_EACH cannot be used: these lists are
// unfolded inside it.
#define DFT_FIELDS_0()
#define DFT_FIELDS_1(a) , DFT_##a
#define DFT_FIELDS_2(a, ...) , DFT_##a DFT_FIELDS_1(__VA_ARGS__)
#define DFT_FIELDS_3(a, ...) , DFT_##a DFT_FIELDS_2(__VA_ARGS__)
#define DFT_FIELDS_4(a, ...) , DFT_##a DFT_FIELDS_3(__VA_ARGS__)
#define DFT_FIELDS_5(a, ...) , DFT_##a DFT_FIELDS_4(__VA_ARGS__)
#define DFT_FIELDS_6(a, ...) , DFT_##a DFT_FIELDS_5(__VA_ARGS__)
#define DFT_FIELDS_PICK(_0, _1, _2, _3, _4, _5, _6, which, ...) which
#define DFT_FIELDS(...)                                                                   \
  DFT_FIELDS_PICK(_ __VA_OPT__(, ) __VA_ARGS__, DFT_FIELDS_6, DFT_FIELDS_5, DFT_FIELDS_4, \
                  DFT_FIELDS_3, DFT_FIELDS_2, DFT_FIELDS_1, DFT_FIELDS_0, )               \
  (__VA_ARGS__)

// The column `does`: what the kernel counts, and what is recorded beyond the row's own list.
#define DFT_AMOUNT_RET ret
#define DFT_AMOUNT_ITEMS ret* size
#define DFT_AMOUNT_ONE one(ret)
#define DFT_AMOUNT_RET_LEN(n) n
#define DFT_AMOUNT_WORD(n) n
#define DFT_AMOUNT_UNKNOWN(n) n
#define DFT_MOVED_READ(amount) reads(DFT_AMOUNT_##amount)
#define DFT_MOVED_WRITE(amount) writes(DFT_AMOUNT_##amount)
#define DFT_MOVED_SEND(amount) uncounted(ret)
#define DFT_MOVED_RECEIVE(amount) uncounted(ret)
#define DFT_MOVED_COPY_TO(key) both_ways(ret)
#define DFT_MOVED_COPY_FROM(key) both_ways(ret)
#define DFT_MOVED_SPLICE_TO(key) uncounted(ret)
#define DFT_MOVED_OPEN moves_nothing()
#define DFT_MOVED_CLOSE moves_nothing()
#define DFT_MOVED_DUPLICATE moves_nothing()
#define DFT_MOVED_SEEK moves_nothing()
#define DFT_MOVED_MAP moves_nothing()
#define DFT_MOVED_SYNC moves_nothing()
#define DFT_MOVED_SUBMIT moves_nothing()
#define DFT_MOVED_WAIT moves_nothing()
#define DFT_MOVED_LOCK moves_nothing()
#define DFT_MOVED_PROCESS moves_nothing()
#define DFT_MOVED_METADATA moves_nothing()

#define DFT_LENGTH_RET
#define DFT_LENGTH_ITEMS
#define DFT_LENGTH_ONE
#define DFT_LENGTH_RET_LEN(n) , DFT_NUM_AS(ret_len, n)
#define DFT_LENGTH_WORD(n)
#define DFT_LENGTH_UNKNOWN(n)
#define DFT_LENGTH_TAKEN
#define DFT_BEYOND_READ(amount) DFT_LENGTH_##amount
#define DFT_BEYOND_WRITE(amount) DFT_LENGTH_##amount
#define DFT_BEYOND_SEND(amount) DFT_LENGTH_##amount
#define DFT_BEYOND_RECEIVE(amount) DFT_LENGTH_##amount
#define DFT_BEYOND_COPY_TO(key)
#define DFT_BEYOND_COPY_FROM(key)
#define DFT_BEYOND_SPLICE_TO(key)
#define DFT_BEYOND_OPEN
#define DFT_BEYOND_CLOSE
#define DFT_BEYOND_DUPLICATE
#define DFT_BEYOND_SEEK
#define DFT_BEYOND_MAP
#define DFT_BEYOND_SYNC
#define DFT_BEYOND_SUBMIT
#define DFT_BEYOND_WAIT
#define DFT_BEYOND_LOCK
#define DFT_BEYOND_PROCESS
#define DFT_BEYOND_METADATA

// The arguments of a probe behind the call itself.
#define DFT_COUNTED(does, recorded) \
  DFT_AFTER(DFT_MOVED_##does) DFT_FIELDS recorded DFT_BEYOND_##does

namespace dft::intercept {

// Functions that return nothing are given a result, so that one probe fits all.
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

// The common form of a wrapper, also of one written by hand, which states the bytes that
// the kernel counts.
#define DFT_PROBE_WITH(category, symbol, R, parameters, arguments, about, ...)                 \
  give<R>(probe<Row::symbol, Category::category>(                                              \
      about,                                                                                   \
      [&] { return result_of<R>([&] { return real<R parameters>(Row::symbol) arguments; }); }, \
      __VA_ARGS__))
#define DFT_PROBE(category, symbol, R, parameters, arguments, about, bytes, ...) \
  DFT_PROBE_WITH(category, symbol, R, parameters, arguments, about,              \
                 DFT_AFTER(bytes) __VA_OPT__(, ) __VA_ARGS__)
