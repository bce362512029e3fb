/* nothing [BIND]
 * Begins and ends a trace and does nothing in between: with BIND 1 as most programs do, otherwise
 * without following I/O calls. The bare build is a program that does not even link a tracer. */
#include <dftracer/dftracer.h>
#include <stddef.h>

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '1') {
    DFTRACER_C_INIT(NULL, NULL, NULL);
  } else {
    DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
  }
  DFTRACER_C_FINI();
  return 0;
}
