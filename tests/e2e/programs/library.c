/* A library that traces itself, as if it were alone: compiled twice, with NAME a and b. */
#include <dftracer/dftracer.h>
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

void JOIN(start_, NAME)(void) { DFTRACER_C_INIT(TEXT(NAME) ".pfw", NULL, NULL); }
void JOIN(work_, NAME)(void) {
  DFTRACER_C_FUNCTION_START();
  DFTRACER_C_FUNCTION_END();
}
void JOIN(stop_, NAME)(void) { DFTRACER_C_FINI(); }
