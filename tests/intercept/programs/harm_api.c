/* Regions alone, until the tracer has its thread. */
#include <dftracer/dftracer.h>
#include <stdio.h>
#include <sys/single_threaded.h>

int main(void) {
  DFTRACER_C_INIT(NULL, NULL, NULL);
  for (int i = 0; i < 5000; ++i) {
    DFTRACER_C_REGION_START(region);
    DFTRACER_C_REGION_END(region);
  }
  puts(__libc_single_threaded ? "libc sees one thread" : "libc sees several threads");
  DFTRACER_C_FINI();
  return 0;
}
