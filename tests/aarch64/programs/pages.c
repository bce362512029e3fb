/* Preloaded: a machine whose pages have 64 KiB, as far as the tracer can tell. */
#include <dlfcn.h>
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type) {
  unsigned long (*real)(unsigned long) =
      (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");
  return type == AT_PAGESZ ? 65536 : real(type);
}
