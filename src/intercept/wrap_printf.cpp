// Wrappers written by hand: printf and scanf, whose variable arguments are passed on as a va_list.
#include "intercept/wrap_macros.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp

#define DFT_WITH_LIST(last, call) \
  va_list list;                   \
  va_start(list, last);           \
  const auto result = call;       \
  va_end(list);                   \
  return result

#define DFT_LISTED(set, symbol, R, listed, types, args, about, bytes) \
  give<int>(probe<Row::symbol, Category::set>(                        \
      about, [&] { return real<R types>(Row::listed) args; }, DFT_AFTER(bytes)))

extern "C" int DFT_WRAPPER(fprintf)(FILE* stream, const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, fprintf, int, vfprintf, (FILE*, const char*, va_list),
                                   (stream, format, list), on_stream(stream), writes(ret)));
}
extern "C" int DFT_WRAPPER(_IO_fprintf)(FILE* stream, const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, _IO_fprintf, int, vfprintf, (FILE*, const char*, va_list),
                                   (stream, format, list), on_stream(stream), writes(ret)));
}
extern "C" int DFT_WRAPPER(fwprintf)(FILE* stream, const wchar_t* format, ...) {
  DFT_WITH_LIST(format,
                DFT_LISTED(STDIO, fwprintf, int, vfwprintf, (FILE*, const wchar_t*, va_list),
                           (stream, format, list), on_stream(stream), writes(ret)));
}
extern "C" int DFT_WRAPPER(wprintf)(const wchar_t* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, wprintf, int, vwprintf, (const wchar_t*, va_list),
                                   (format, list), on_stream(stdout), writes(ret)));
}
extern "C" int DFT_WRAPPER(__fprintf_chk)(FILE* stream, int level, const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, __fprintf_chk, int, __vfprintf_chk,
                                   (FILE*, int, const char*, va_list),
                                   (stream, level, format, list), on_stream(stream), writes(ret)));
}
extern "C" int DFT_WRAPPER(printf)(const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, printf, int, vprintf, (const char*, va_list),
                                   (format, list), on_stream(stdout), writes(ret)));
}
extern "C" int DFT_WRAPPER(_IO_printf)(const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(STDIO, _IO_printf, int, vprintf, (const char*, va_list),
                                   (format, list), on_stream(stdout), writes(ret)));
}
extern "C" int DFT_WRAPPER(__printf_chk)(int level, const char* format, ...) {
  DFT_WITH_LIST(format,
                DFT_LISTED(STDIO, __printf_chk, int, __vprintf_chk, (int, const char*, va_list),
                           (level, format, list), on_stream(stdout), writes(ret)));
}
extern "C" int DFT_WRAPPER(dprintf)(int fd, const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(POSIX, dprintf, int, vdprintf, (int, const char*, va_list),
                                   (fd, format, list), on_fd(fd), writes(ret)));
}
extern "C" int DFT_WRAPPER(__dprintf_chk)(int fd, int level, const char* format, ...) {
  DFT_WITH_LIST(format, DFT_LISTED(POSIX, __dprintf_chk, int, __vdprintf_chk,
                                   (int, int, const char*, va_list), (fd, level, format, list),
                                   on_fd(fd), writes(ret)));
}

#define DFT_SCANF(symbol, listed)                                                              \
  extern "C" int DFT_WRAPPER(symbol)(FILE * stream, const char* format, ...) {                 \
    DFT_WITH_LIST(format,                                                                      \
                  DFT_LISTED(STDIO, symbol, CharResult, listed, (FILE*, const char*, va_list), \
                             (stream, format, list), on_stream(stream), moves_nothing()));     \
  }
#define DFT_SCANF_STDIN(symbol, listed)                                                         \
  extern "C" int DFT_WRAPPER(symbol)(const char* format, ...) {                                 \
    DFT_WITH_LIST(format, DFT_LISTED(STDIO, symbol, CharResult, listed, (const char*, va_list), \
                                     (format, list), on_stream(stdin), moves_nothing()));       \
  }
DFT_SCANF(fscanf, vfscanf)
DFT_SCANF(__isoc99_fscanf, __isoc99_vfscanf)
DFT_SCANF(__isoc23_fscanf, __isoc23_vfscanf)
DFT_SCANF_STDIN(scanf, vscanf)
DFT_SCANF_STDIN(__isoc99_scanf, __isoc99_vscanf)
DFT_SCANF_STDIN(__isoc23_scanf, __isoc23_vscanf)
