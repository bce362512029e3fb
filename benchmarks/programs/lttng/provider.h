/* The events of the LTTng-UST column: one at the entry and one at the exit of a call, which
 * together carry what one event of ours does (descriptor, file, size, result, duration). The file
 * is a number whose path is told once, when it is opened, as ours is. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER bench_io

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./provider.h"

#if !defined(BENCH_LTTNG_PROVIDER_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
TRACEPOINT_EVENT(
  bench_io, transfer_entry,
  TP_ARGS(int, fd, size_t, count, uint64_t, file),
  TP_FIELDS(
    ctf_integer(int, fd, fd)
    ctf_integer(size_t, count, count)
    ctf_integer_hex(uint64_t, file, file)
  )
)
TRACEPOINT_EVENT(bench_io, transfer_exit, TP_ARGS(long, ret), TP_FIELDS(ctf_integer(long, ret, ret)))
TRACEPOINT_EVENT(
  bench_io, open_entry,
  TP_ARGS(const char*, path, int, flags, uint64_t, file),
  TP_FIELDS(
    ctf_string(path, path)
    ctf_integer(int, flags, flags)
    ctf_integer_hex(uint64_t, file, file)
  )
)
TRACEPOINT_EVENT(bench_io, open_exit, TP_ARGS(int, ret), TP_FIELDS(ctf_integer(int, ret, ret)))
TRACEPOINT_EVENT(
  bench_io, close_entry,
  TP_ARGS(int, fd, uint64_t, file),
  TP_FIELDS(ctf_integer(int, fd, fd) ctf_integer_hex(uint64_t, file, file))
)
TRACEPOINT_EVENT(bench_io, close_exit, TP_ARGS(int, ret), TP_FIELDS(ctf_integer(int, ret, ret)))
/* clang-format on */

#endif /* BENCH_LTTNG_PROVIDER_H */

#include <lttng/tracepoint-event.h>
