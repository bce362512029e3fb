/* The C face of dftracer: record regions, arguments, counters and metadata of a program.
 * Plain C99, self-contained; link with -ldftracer_core. C++ programs get dftracer.hpp on top.
 *
 * Nothing is recorded unless DFTRACER_ENABLE=1 is set when the program runs, and nothing is even
 * compiled in when DFTRACER_DISABLE is defined before this header is included.
 * Every function may be called from any thread, before, during and after a session, with null or
 * empty arguments: then it does nothing, or uses the documented default. None ever fails the
 * program. */
#ifndef DFTRACER_DFTRACER_H
#define DFTRACER_DFTRACER_H

#include <stddef.h>
#include <stdint.h>

#define DF_DATA_EVENT 0     /* a region is recorded as an event */
#define DF_METADATA_EVENT 1 /* a region only groups others and is not recorded itself */

/* How a value takes part when events are aggregated. In a trace of single events all are written.
 */
#define DFTRACER_TAG_KEY 0
#define DFTRACER_TAG_VALUE 1
#define DFTRACER_TAG_IGNORE 2

#ifndef DFTRACER_DISABLE

#ifdef __cplusplus
extern "C" {
#endif

/* A place in the program, or a key: remembers what its text is called inside. Static, zero at
 * first. */
typedef struct dftracer_site {
  uint64_t opaque;
} dftracer_site;

/* A region between its begin and its end. Yours to place, on the stack or anywhere; never copied.
 * Its first word is 0 while there is nothing to record. */
typedef struct dftracer_region {
  uint64_t opaque[31];
} dftracer_region;

typedef enum dftracer_type {
  DFTRACER_INT = 1,
  DFTRACER_UINT = 2,
  DFTRACER_FLOAT = 3,
  DFTRACER_STRING = 4,
  DFTRACER_BOOL = 7
} dftracer_type;

typedef struct dftracer_arg {
  const char* key;
  dftracer_type type;
  union {
    int64_t i;
    uint64_t u;
    double f;
    struct {
      const char* text;
      size_t size;
    } s;
  } value;
} dftracer_arg;

/* Starts recording. log_file: where to ("d/t.pfw" gives d/t.pfw.gz); NULL or "" takes
 * DFTRACER_LOG_FILE. data_dirs: directories whose files are of interest, ':' between them; NULL
 * takes DFTRACER_DATA_DIR. process_id: the rank of this process; NULL or a negative number takes
 * the launcher's. Returns 0 while this process records, also when somebody else started it;
 * otherwise -1, and a line on stderr says why unless tracing is simply off. Calls nest: as many
 * dftracer_finalize close it. */
int dftracer_initialize(const char* log_file, const char* data_dirs, const int* process_id);
/* The same without following the program's I/O calls. */
int dftracer_initialize_no_bind(const char* log_file, const char* data_dirs, const int* process_id);
/* Brings the file up to date; the last one closes it. Not needed: an exit does the same. */
void dftracer_finalize(void);
/* Brings the file up to date and goes on. */
void dftracer_flush(void);
/* 1 while events are recorded. */
int dftracer_active(void);
/* Time as events have it (microseconds of the Unix epoch unless DFTRACER_TIME_METRIC says
 * otherwise); 0 while nothing is recorded. */
uint64_t dftracer_time(void);

/* Begins a region. `site` may be NULL; if not, name and category must be the same text at every
 * call. */
void dftracer_region_begin(dftracer_region* region, dftracer_site* site, const char* name,
                           const char* category);
/* Arguments of a region that has begun; the last value of a key counts. `key_site` as `site` above.
 */
void dftracer_region_int(dftracer_region* region, dftracer_site* key_site, const char* key,
                         int64_t value);
void dftracer_region_uint(dftracer_region* region, dftracer_site* key_site, const char* key,
                          uint64_t value);
void dftracer_region_bool(dftracer_region* region, dftracer_site* key_site, const char* key,
                          int value);
void dftracer_region_float(dftracer_region* region, dftracer_site* key_site, const char* key,
                           double value);
void dftracer_region_string(dftracer_region* region, dftracer_site* key_site, const char* key,
                            const char* value);
void dftracer_region_bytes(dftracer_region* region, dftracer_site* key_site, const char* key,
                           const char* value, size_t size);
/* Ends and records it. Ending twice, or one that never began but is all zero, does nothing. */
void dftracer_region_end(dftracer_region* region);
/* Ends it without recording. */
void dftracer_region_drop(dftracer_region* region);

/* Something that happened now; something that has a value now; key and value for the whole process.
 */
void dftracer_instant(const char* name, const char* category, const dftracer_arg* args,
                      size_t count);
void dftracer_counter(const char* name, const char* category, double value);
void dftracer_metadata(const char* key, const char* value);
/* A region with times of its own, in units of dftracer_time(). */
void dftracer_complete(const char* name, const char* category, uint64_t start, uint64_t duration,
                       const dftracer_arg* args, size_t count);

/* Finishes the traces of dead processes in a directory. flags: 1 also those whose owner cannot be
 * seen from here. Returns 0 or an errno value. */
typedef struct dftracer_recovery {
  uint64_t spools;    /* found */
  uint64_t recovered; /* finished now */
  uint64_t events;    /* brought into traces by that */
  uint64_t alive;     /* of processes that still run */
  uint64_t unknown;   /* of processes that cannot be seen from here */
  uint64_t broken;    /* that cannot be read */
} dftracer_recovery;
int dftracer_recover(const char* directory, unsigned flags, dftracer_recovery* result);

/* Such as "3.0.0"; the file VERSION sets it. */
const char* dftracer_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---- Macros
 * ---------------------------------------------------------------------------------------- */

#if defined(__GNUC__) || defined(__clang__)
#define DFTRACER_UNUSED_ __attribute__((unused))
/* A region that the compiler ends when its scope is left. */
#define DFTRACER_SCOPED_ __attribute__((cleanup(dftracer_region_close_), unused))
#else
#define DFTRACER_UNUSED_
#define DFTRACER_SCOPED_
#endif

/* While nothing is recorded, a region costs one call. */
DFTRACER_UNUSED_ static inline void dftracer_region_close_(dftracer_region* region) {
  if (region->opaque[0] != 0) dftracer_region_end(region);
}

/* A key's id can be remembered at its place in the program only if the key is written there. */
#define DFTRACER_TEXT_OF_(...) #__VA_ARGS__
#define DFTRACER_TEXT_(...) DFTRACER_TEXT_OF_(__VA_ARGS__)
#define DFTRACER_IS_LITERAL_(key) \
  (DFTRACER_TEXT_(key)[0] == '"' && DFTRACER_TEXT_(key)[sizeof(DFTRACER_TEXT_(key)) - 2] == '"')
#define DFTRACER_ARG_(call, region, key, value)                                              \
  do {                                                                                       \
    static dftracer_site dftracer_key_;                                                      \
    if ((region).opaque[0] != 0)                                                             \
      call(&(region), DFTRACER_IS_LITERAL_(key) ? &dftracer_key_ : (dftracer_site*)0, (key), \
           (value));                                                                         \
  } while (0)

#define DFTRACER_C_INIT(log_file, data_dirs, process_id) \
  ((void)dftracer_initialize((log_file), (data_dirs), (process_id)))
#define DFTRACER_C_INIT_NO_BIND(log_file, data_dirs, process_id) \
  ((void)dftracer_initialize_no_bind((log_file), (data_dirs), (process_id)))
#define DFTRACER_C_FINI() dftracer_finalize()

#define DFTRACER_C_FUNCTION_START()           \
  static dftracer_site dftracer_site_data_fn; \
  DFTRACER_SCOPED_ dftracer_region data_fn;   \
  dftracer_region_begin(&data_fn, &dftracer_site_data_fn, __func__, "C_APP")
#define DFTRACER_C_FUNCTION_END() dftracer_region_close_(&data_fn)
#define DFTRACER_C_FUNCTION_UPDATE_INT(key, value) \
  DFTRACER_ARG_(dftracer_region_int, data_fn, key, value)
#define DFTRACER_C_FUNCTION_UPDATE_FLOAT(key, value) \
  DFTRACER_ARG_(dftracer_region_float, data_fn, key, value)
#define DFTRACER_C_FUNCTION_UPDATE_STR(key, value) \
  DFTRACER_ARG_(dftracer_region_string, data_fn, key, value)
#define DFTRACER_C_FUNCTION_UPDATE_INT_TYPE(key, value, type) \
  do {                                                        \
    (void)(type);                                             \
    DFTRACER_C_FUNCTION_UPDATE_INT(key, value);               \
  } while (0)
#define DFTRACER_C_FUNCTION_UPDATE_STR_TYPE(key, value, type) \
  do {                                                        \
    (void)(type);                                             \
    DFTRACER_C_FUNCTION_UPDATE_STR(key, value);               \
  } while (0)

#define DFTRACER_C_REGION_START(name)           \
  static dftracer_site dftracer_site_##name;    \
  DFTRACER_SCOPED_ dftracer_region data_##name; \
  dftracer_region_begin(&data_##name, &dftracer_site_##name, #name, "C_APP")
#define DFTRACER_C_REGION_END(name) dftracer_region_close_(&data_##name)
#define DFTRACER_C_REGION_UPDATE_INT(name, key, value) \
  DFTRACER_ARG_(dftracer_region_int, data_##name, key, value)
#define DFTRACER_C_REGION_UPDATE_FLOAT(name, key, value) \
  DFTRACER_ARG_(dftracer_region_float, data_##name, key, value)
#define DFTRACER_C_REGION_UPDATE_STR(name, key, value) \
  DFTRACER_ARG_(dftracer_region_string, data_##name, key, value)
#define DFTRACER_C_REGION_UPDATE_INT_TYPE(name, key, value, type) \
  do {                                                            \
    (void)(type);                                                 \
    DFTRACER_C_REGION_UPDATE_INT(name, key, value);               \
  } while (0)
#define DFTRACER_C_REGION_UPDATE_STR_TYPE(name, key, value, type) \
  do {                                                            \
    (void)(type);                                                 \
    DFTRACER_C_REGION_UPDATE_STR(name, key, value);               \
  } while (0)

/* `name` is the variable that older releases declared here; nothing needs it now. */
#define DFTRACER_C_METADATA(name, key, value) dftracer_metadata((key), (value))
#define DFTRACER_C_INSTANT(name) dftracer_instant((name), "C_APP", (const dftracer_arg*)0, 0)
#define DFTRACER_C_COUNTER(name, value) dftracer_counter((name), "C_APP", (value))
#define DFTRACER_C_APP_METADATA_INT(key, value) dftracer_metadata_int_((key), (value))
#define DFTRACER_C_APP_METADATA_STR(key, value) dftracer_metadata((key), (value))
#define DFTRACER_C_MARK_USED(name) dftracer_metadata("used", (name))

DFTRACER_UNUSED_ static inline void dftracer_metadata_int_(const char* key, long long value) {
  char text[24];
  char* p = text + sizeof text - 1;
  unsigned long long rest =
      value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
  *p = '\0';
  do {
    *--p = (char)('0' + (int)(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--p = '-';
  dftracer_metadata(key, p);
}

/* ---- The functions of older releases, by name
 * ------------------------------------------------------ */
#ifndef DFTRACER_NO_OLD_NAMES
struct DFTracerData {
  dftracer_region region;
};
#ifdef __cplusplus
extern "C" {
#endif
struct DFTracerData* dftracer_region_new(const char* name, const char* category, int event_type);
void dftracer_region_delete(struct DFTracerData* data);
#ifdef __cplusplus
}
#endif
DFTRACER_UNUSED_ static inline void initialize_main(const char* log_file, const char* data_dirs,
                                                    const int* process_id) {
  (void)dftracer_initialize(log_file, data_dirs, process_id);
}
DFTRACER_UNUSED_ static inline void initialize_no_bind(const char* log_file, const char* data_dirs,
                                                       const int* process_id) {
  (void)dftracer_initialize_no_bind(log_file, data_dirs, process_id);
}
DFTRACER_UNUSED_ static inline void finalize(void) { dftracer_finalize(); }
DFTRACER_UNUSED_ static inline struct DFTracerData* initialize_region(const char* name,
                                                                      const char* category,
                                                                      int event_type) {
  return dftracer_region_new(name, category, event_type);
}
DFTRACER_UNUSED_ static inline void finalize_region(struct DFTracerData* data) {
  dftracer_region_delete(data);
}
DFTRACER_UNUSED_ static inline void finalize_region_cleanup(struct DFTracerData** data) {
  if (data != 0 && *data != 0) {
    dftracer_region_delete(*data);
    *data = 0;
  }
}
DFTRACER_UNUSED_ static inline void update_metadata_int(struct DFTracerData* data, const char* key,
                                                        int value) {
  if (data != 0) dftracer_region_int(&data->region, (dftracer_site*)0, key, value);
}
DFTRACER_UNUSED_ static inline void update_metadata_string(struct DFTracerData* data,
                                                           const char* key, const char* value) {
  if (data != 0) dftracer_region_string(&data->region, (dftracer_site*)0, key, value);
}
DFTRACER_UNUSED_ static inline void update_metadata_int_type(struct DFTracerData* data,
                                                             const char* key, int value, int type) {
  (void)type;
  update_metadata_int(data, key, value);
}
DFTRACER_UNUSED_ static inline void update_metadata_string_type(struct DFTracerData* data,
                                                                const char* key, const char* value,
                                                                int type) {
  (void)type;
  update_metadata_string(data, key, value);
}
DFTRACER_UNUSED_ static inline void set_app_metadata_int(const char* key, int value) {
  dftracer_metadata_int_(key, value);
}
DFTRACER_UNUSED_ static inline void set_app_metadata_string(const char* key, const char* value) {
  dftracer_metadata(key, value);
}
DFTRACER_UNUSED_ static inline void mark_used(const char* name) { dftracer_metadata("used", name); }
#endif /* DFTRACER_NO_OLD_NAMES */

#else /* DFTRACER_DISABLE: every macro is an empty statement */

#define DFTRACER_NOTHING_ ((void)0)
#define DFTRACER_C_INIT(log_file, data_dirs, process_id) DFTRACER_NOTHING_
#define DFTRACER_C_INIT_NO_BIND(log_file, data_dirs, process_id) DFTRACER_NOTHING_
#define DFTRACER_C_FINI() DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_START() DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_END() DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_UPDATE_INT(key, value) DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_UPDATE_FLOAT(key, value) DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_UPDATE_STR(key, value) DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_UPDATE_INT_TYPE(key, value, type) DFTRACER_NOTHING_
#define DFTRACER_C_FUNCTION_UPDATE_STR_TYPE(key, value, type) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_START(name) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_END(name) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_UPDATE_INT(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_UPDATE_FLOAT(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_UPDATE_STR(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_UPDATE_INT_TYPE(name, key, value, type) DFTRACER_NOTHING_
#define DFTRACER_C_REGION_UPDATE_STR_TYPE(name, key, value, type) DFTRACER_NOTHING_
#define DFTRACER_C_METADATA(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_C_INSTANT(name) DFTRACER_NOTHING_
#define DFTRACER_C_COUNTER(name, value) DFTRACER_NOTHING_
#define DFTRACER_C_APP_METADATA_INT(key, value) DFTRACER_NOTHING_
#define DFTRACER_C_APP_METADATA_STR(key, value) DFTRACER_NOTHING_
#define DFTRACER_C_MARK_USED(name) DFTRACER_NOTHING_

#endif /* DFTRACER_DISABLE */

#ifdef __cplusplus
#include <dftracer/dftracer.hpp>
#endif

#endif /* DFTRACER_DFTRACER_H */
