// The C++ face of dftracer: regions that end with their scope, also when it is left by an
// exception. C++11 and later; included by dftracer.h.
#ifndef DFTRACER_DFTRACER_HPP
#define DFTRACER_DFTRACER_HPP

#include <dftracer/dftracer.h>

#ifndef DFTRACER_DISABLE

#include <string>
#include <type_traits>

// One region. The name and category are looked up at every construction; the macros below remember
// them.
class DFTracer {
 public:
  explicit DFTracer(const char* name, const char* category = "CPP_APP",
                    int event_type = DF_DATA_EVENT, int /*type*/ = DFTRACER_TAG_KEY)
      : DFTracer(static_cast<dftracer_site*>(nullptr), name, category, event_type) {}
  DFTracer(dftracer_site* site, const char* name, const char* category,
           int event_type = DF_DATA_EVENT) {
    region_.opaque[0] = 0;
    if (event_type == DF_DATA_EVENT) dftracer_region_begin(&region_, site, name, category);
  }
  ~DFTracer() { finalize(); }
  DFTracer(const DFTracer&) = delete;
  DFTracer& operator=(const DFTracer&) = delete;

  // Numbers, bool and text; the last value of a key counts.
  template <class T, typename std::enable_if<std::is_integral<T>::value, int>::type = 0>
  void update(const char* key, T value, dftracer_site* site = nullptr) {
    if (std::is_same<T, bool>::value) {
      dftracer_region_bool(&region_, site, key, value ? 1 : 0);
    } else if (std::is_signed<T>::value) {
      dftracer_region_int(&region_, site, key, static_cast<std::int64_t>(value));
    } else {
      dftracer_region_uint(&region_, site, key, static_cast<std::uint64_t>(value));
    }
  }
  template <class T, typename std::enable_if<std::is_floating_point<T>::value, int>::type = 0>
  void update(const char* key, T value, dftracer_site* site = nullptr) {
    dftracer_region_float(&region_, site, key, static_cast<double>(value));
  }
  void update(const char* key, const char* value, dftracer_site* site = nullptr) {
    dftracer_region_string(&region_, site, key, value);
  }
  void update(const char* key, const std::string& value, dftracer_site* site = nullptr) {
    dftracer_region_bytes(&region_, site, key, value.data(), value.size());
  }
  // Ends the region before its scope does.
  void finalize() { dftracer_region_close_(&region_); }

 private:
  dftracer_region region_;
};

#define DFTRACER_CPP_INIT(log_file, data_dirs, process_id) \
  DFTRACER_C_INIT(log_file, data_dirs, process_id)
#define DFTRACER_CPP_INIT_NO_BIND(log_file, data_dirs, process_id) \
  DFTRACER_C_INIT_NO_BIND(log_file, data_dirs, process_id)
#define DFTRACER_CPP_FINI() DFTRACER_C_FINI()

#define DFTRACER_CPP_FUNCTION()               \
  static dftracer_site dftracer_site_dft_fn_; \
  DFTracer profiler_dft_fn(&dftracer_site_dft_fn_, __func__, "CPP_APP")
#define DFTRACER_CPP_REGION(name)                \
  static dftracer_site dftracer_site_cpp_##name; \
  DFTracer profiler_##name(&dftracer_site_cpp_##name, #name, "CPP_APP")
#define DFTRACER_CPP_REGION_START(name)              \
  static dftracer_site dftracer_site_cpp_dyn_##name; \
  DFTracer* profiler_##name = new DFTracer(&dftracer_site_cpp_dyn_##name, #name, "CPP_APP")
#define DFTRACER_CPP_REGION_END(name) \
  do {                                \
    delete profiler_##name;           \
    profiler_##name = nullptr;        \
  } while (0)

#define DFTRACER_CPP_ARG_(region, key, value)                                              \
  do {                                                                                     \
    static dftracer_site dftracer_key_;                                                    \
    (region).update((key), (value), DFTRACER_IS_LITERAL_(key) ? &dftracer_key_ : nullptr); \
  } while (0)
#define DFTRACER_CPP_FUNCTION_UPDATE(key, value) DFTRACER_CPP_ARG_(profiler_dft_fn, key, value)
#define DFTRACER_CPP_REGION_UPDATE(name, key, value) DFTRACER_CPP_ARG_(profiler_##name, key, value)
#define DFTRACER_CPP_REGION_DYN_UPDATE(name, key, value) \
  DFTRACER_CPP_ARG_(*profiler_##name, key, value)
#define DFTRACER_CPP_FUNCTION_UPDATE_TYPE(key, value, type) \
  do {                                                      \
    (void)(type);                                           \
    DFTRACER_CPP_FUNCTION_UPDATE(key, value);               \
  } while (0)
#define DFTRACER_CPP_REGION_UPDATE_TYPE(name, key, value, type) \
  do {                                                          \
    (void)(type);                                               \
    DFTRACER_CPP_REGION_UPDATE(name, key, value);               \
  } while (0)
#define DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(name, key, value, type) \
  do {                                                              \
    (void)(type);                                                   \
    DFTRACER_CPP_REGION_DYN_UPDATE(name, key, value);               \
  } while (0)

#define DFTRACER_CPP_METADATA(name, key, value) DFTRACER_C_METADATA(name, key, value)
#define DFTRACER_CPP_INSTANT(name) \
  dftracer_instant((name), "CPP_APP", static_cast<const dftracer_arg*>(nullptr), 0)
#define DFTRACER_CPP_COUNTER(name, value) dftracer_counter((name), "CPP_APP", (value))
#define DFTRACER_CPP_APP_METADATA_INT(key, value) DFTRACER_C_APP_METADATA_INT(key, value)
#define DFTRACER_CPP_APP_METADATA_STR(key, value) DFTRACER_C_APP_METADATA_STR(key, value)
#define DFTRACER_CPP_MARK_USED(name) DFTRACER_C_MARK_USED(name)

#else  // DFTRACER_DISABLE

#define DFTRACER_CPP_INIT(log_file, data_dirs, process_id) DFTRACER_NOTHING_
#define DFTRACER_CPP_INIT_NO_BIND(log_file, data_dirs, process_id) DFTRACER_NOTHING_
#define DFTRACER_CPP_FINI() DFTRACER_NOTHING_
#define DFTRACER_CPP_FUNCTION() DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION(name) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_START(name) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_END(name) DFTRACER_NOTHING_
#define DFTRACER_CPP_FUNCTION_UPDATE(key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_UPDATE(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_DYN_UPDATE(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_FUNCTION_UPDATE_TYPE(key, value, type) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_UPDATE_TYPE(name, key, value, type) DFTRACER_NOTHING_
#define DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(name, key, value, type) DFTRACER_NOTHING_
#define DFTRACER_CPP_METADATA(name, key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_INSTANT(name) DFTRACER_NOTHING_
#define DFTRACER_CPP_COUNTER(name, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_APP_METADATA_INT(key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_APP_METADATA_STR(key, value) DFTRACER_NOTHING_
#define DFTRACER_CPP_MARK_USED(name) DFTRACER_NOTHING_

#endif  // DFTRACER_DISABLE

#endif  // DFTRACER_DFTRACER_HPP
