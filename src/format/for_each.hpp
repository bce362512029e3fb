// DFT_EACH(M, common, entries...) expands to M(common, entry) for each of up to 16 entries. Used
// by calls.def and the macros that expand it; preprocessor only.
#pragma once

#define DFT_EACH_1(M, common, entry) M(common, entry)
#define DFT_EACH_2(M, common, entry, ...) M(common, entry) DFT_EACH_1(M, common, __VA_ARGS__)
#define DFT_EACH_3(M, common, entry, ...) M(common, entry) DFT_EACH_2(M, common, __VA_ARGS__)
#define DFT_EACH_4(M, common, entry, ...) M(common, entry) DFT_EACH_3(M, common, __VA_ARGS__)
#define DFT_EACH_5(M, common, entry, ...) M(common, entry) DFT_EACH_4(M, common, __VA_ARGS__)
#define DFT_EACH_6(M, common, entry, ...) M(common, entry) DFT_EACH_5(M, common, __VA_ARGS__)
#define DFT_EACH_7(M, common, entry, ...) M(common, entry) DFT_EACH_6(M, common, __VA_ARGS__)
#define DFT_EACH_8(M, common, entry, ...) M(common, entry) DFT_EACH_7(M, common, __VA_ARGS__)
#define DFT_EACH_9(M, common, entry, ...) M(common, entry) DFT_EACH_8(M, common, __VA_ARGS__)
#define DFT_EACH_10(M, common, entry, ...) M(common, entry) DFT_EACH_9(M, common, __VA_ARGS__)
#define DFT_EACH_11(M, common, entry, ...) M(common, entry) DFT_EACH_10(M, common, __VA_ARGS__)
#define DFT_EACH_12(M, common, entry, ...) M(common, entry) DFT_EACH_11(M, common, __VA_ARGS__)
#define DFT_EACH_13(M, common, entry, ...) M(common, entry) DFT_EACH_12(M, common, __VA_ARGS__)
#define DFT_EACH_14(M, common, entry, ...) M(common, entry) DFT_EACH_13(M, common, __VA_ARGS__)
#define DFT_EACH_15(M, common, entry, ...) M(common, entry) DFT_EACH_14(M, common, __VA_ARGS__)
#define DFT_EACH_16(M, common, entry, ...) M(common, entry) DFT_EACH_15(M, common, __VA_ARGS__)
#define DFT_EACH_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, \
                      which, ...)                                                            \
  which
#define DFT_EACH(M, common, ...)                                                              \
  DFT_EACH_PICK(__VA_ARGS__, DFT_EACH_16, DFT_EACH_15, DFT_EACH_14, DFT_EACH_13, DFT_EACH_12, \
                DFT_EACH_11, DFT_EACH_10, DFT_EACH_9, DFT_EACH_8, DFT_EACH_7, DFT_EACH_6,     \
                DFT_EACH_5, DFT_EACH_4, DFT_EACH_3, DFT_EACH_2, DFT_EACH_1, )                 \
  (M, common, __VA_ARGS__)

// The elements of a parenthesized list, without its parentheses.
#define DFT_SPREAD(...) __VA_ARGS__
