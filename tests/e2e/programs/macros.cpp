// Every macro of the C++ header, once. C++11; with DFTRACER_DISABLE nothing is left of them.
#include <dftracer/dftracer.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

int early(int n) {
  DFTRACER_CPP_FUNCTION();
  DFTRACER_CPP_FUNCTION_UPDATE("n", n);
  if (n > 0) return n;
  return -1;
}

void throws() {
  DFTRACER_CPP_FUNCTION();
  throw std::runtime_error("on purpose");
}

void arguments(const char* key) {
  DFTRACER_CPP_FUNCTION();
  DFTRACER_CPP_FUNCTION_UPDATE("int", -7);
  DFTRACER_CPP_FUNCTION_UPDATE("unsigned", 4000000000u);
  DFTRACER_CPP_FUNCTION_UPDATE("large", std::int64_t{9223372036854775807});
  DFTRACER_CPP_FUNCTION_UPDATE("huge", std::uint64_t{18446744073709551615u});
  DFTRACER_CPP_FUNCTION_UPDATE("bool", true);
  DFTRACER_CPP_FUNCTION_UPDATE("double", 0.1);
  DFTRACER_CPP_FUNCTION_UPDATE("float", 0.5f);
  DFTRACER_CPP_FUNCTION_UPDATE("text", "literal");
  DFTRACER_CPP_FUNCTION_UPDATE("string", std::string("with\0nul", 8));
  DFTRACER_CPP_FUNCTION_UPDATE_TYPE("typed", 5, DFTRACER_TAG_VALUE);
  DFTRACER_CPP_FUNCTION_UPDATE(key, 1);
  (void)key;
}

void regions() {
  DFTRACER_CPP_REGION(outer);
  {
    DFTRACER_CPP_REGION(inner);
    DFTRACER_CPP_REGION_UPDATE(inner, "text", "of inner");
    DFTRACER_CPP_REGION_UPDATE_TYPE(inner, "typed", 1, DFTRACER_TAG_KEY);
  }
  DFTRACER_CPP_REGION_START(heap);
  DFTRACER_CPP_REGION_DYN_UPDATE(heap, "int", 2);
  DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(heap, "typed", 2, DFTRACER_TAG_KEY);
  DFTRACER_CPP_REGION_END(heap);
  DFTRACER_CPP_REGION_UPDATE(outer, "after", 3);
}

#ifndef DFTRACER_DISABLE
// The class itself, as older programs use it.
void by_hand() {
  DFTracer region("by hand", "mine", DF_DATA_EVENT);
  region.update("k", 1);
  region.finalize();
  region.finalize();
  DFTracer only_name("only name");
  DFTracer group("group", "mine", DF_METADATA_EVENT);
  DFTracer nothing(static_cast<const char*>(nullptr), nullptr);
  nothing.update(nullptr, static_cast<const char*>(nullptr));
}
#else
void by_hand() {}
#endif

}  // namespace

int main() {
  const int rank = -1;
  DFTRACER_CPP_INIT("t.pfw", nullptr, &rank);
  DFTRACER_CPP_INIT_NO_BIND(nullptr, nullptr, nullptr);
  std::printf("%d ", early(4));
  std::printf("%d\n", early(0));
  try {
    throws();
  } catch (const std::runtime_error&) {
  }
  arguments("first");
  arguments("second");
  regions();
  by_hand();
  DFTRACER_CPP_METADATA(meta, "key", "value");
  DFTRACER_CPP_INSTANT("now");
  DFTRACER_CPP_COUNTER("level", 12.5);
  DFTRACER_CPP_APP_METADATA_INT("app_int", 2147483648LL);
  DFTRACER_CPP_APP_METADATA_STR("app_text", "a value");
  DFTRACER_CPP_MARK_USED("a layer");
  DFTRACER_CPP_FINI();
  DFTRACER_CPP_FINI();
  (void)rank;
  return 0;
}
