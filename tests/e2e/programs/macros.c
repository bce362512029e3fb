/* Every macro of the C header, once. Compiles as C99 without a warning, and to nothing with
 * DFTRACER_DISABLE; prints the same either way. */
#include <dftracer/dftracer.h>
#include <stdio.h>

static int early(int n) {
  DFTRACER_C_FUNCTION_START();
  DFTRACER_C_FUNCTION_UPDATE_INT("n", n);
  if (n > 0) return n; /* no END: the scope ends it */
  DFTRACER_C_FUNCTION_END();
  return -1;
}

static int factorial(int n) {
  int result;
  DFTRACER_C_FUNCTION_START();
  DFTRACER_C_FUNCTION_UPDATE_INT("n", n);
  result = n <= 1 ? 1 : n * factorial(n - 1);
  DFTRACER_C_FUNCTION_END();
  return result;
}

static void arguments(const char* key) {
  DFTRACER_C_FUNCTION_START();
  DFTRACER_C_FUNCTION_UPDATE_INT("int", -7);
  DFTRACER_C_FUNCTION_UPDATE_INT("large", 9223372036854775807LL);
  DFTRACER_C_FUNCTION_UPDATE_FLOAT("float", 0.1);
  DFTRACER_C_FUNCTION_UPDATE_STR("text", "a \"b\"");
  DFTRACER_C_FUNCTION_UPDATE_INT_TYPE("typed_int", 5, DFTRACER_TAG_VALUE);
  DFTRACER_C_FUNCTION_UPDATE_STR_TYPE("typed_text", "t", DFTRACER_TAG_IGNORE);
  DFTRACER_C_FUNCTION_UPDATE_INT(key, 1); /* not a literal: another key each time */
  DFTRACER_C_FUNCTION_UPDATE_INT("twice", 1);
  DFTRACER_C_FUNCTION_UPDATE_INT("twice", 2);
  DFTRACER_C_FUNCTION_END();
  (void)key;
}

static void regions(void) {
  DFTRACER_C_REGION_START(outer);
  DFTRACER_C_REGION_START(inner);
  DFTRACER_C_REGION_UPDATE_INT(outer, "int", 1);
  DFTRACER_C_REGION_UPDATE_FLOAT(outer, "float", 2.5);
  DFTRACER_C_REGION_UPDATE_STR(inner, "text", "of inner");
  DFTRACER_C_REGION_UPDATE_INT_TYPE(outer, "typed_int", 3, DFTRACER_TAG_KEY);
  DFTRACER_C_REGION_UPDATE_STR_TYPE(inner, "typed_text", "x", DFTRACER_TAG_KEY);
  DFTRACER_C_REGION_END(inner);
  DFTRACER_C_REGION_END(outer);
}

int main(void) {
  int rank = 3;
  int i;
  DFTRACER_C_INIT("t.pfw", "/tmp/data", &rank);
  DFTRACER_C_INIT_NO_BIND("ignored.pfw", NULL, NULL);
  printf("%d ", early(4));
  printf("%d ", early(0));
  printf("%d\n", factorial(4));
  arguments("first");
  arguments("second");
  regions();
  for (i = 0; i < 3; ++i) {
    DFTRACER_C_REGION_START(loop);
    DFTRACER_C_REGION_UPDATE_INT(loop, "i", i);
    DFTRACER_C_REGION_END(loop);
  }
  if (i == 3) DFTRACER_C_METADATA(meta, "key", "value");
  DFTRACER_C_INSTANT("now");
  DFTRACER_C_COUNTER("level", 12.5);
  DFTRACER_C_APP_METADATA_INT("app_int", -12);
  DFTRACER_C_APP_METADATA_STR("app_text", "a value");
  DFTRACER_C_MARK_USED("a layer");
  DFTRACER_C_FINI();
  DFTRACER_C_FINI();
  (void)rank;
  return 0;
}
