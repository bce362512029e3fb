/* First in main: nothing under preload; the same program compiled for FUNCTION mode starts itself.
 */
#ifndef INTERCEPT_H
#define INTERCEPT_H
#ifdef INIT
#include <dftracer/dftracer.h>
#include <stddef.h>
#define START() DFTRACER_C_INIT(NULL, NULL, NULL)
#else
#define START() ((void)0)
#endif
#endif
