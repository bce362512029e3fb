/* Preloaded in place of the library that intercepts: starts a trace from inside, as a program does
   that calls the tracer itself. So any program can be run in FUNCTION mode. */
#include <dftracer/dftracer.h>
#include <stddef.h>

__attribute__((constructor)) static void start(void) { DFTRACER_C_INIT(NULL, NULL, NULL); }
