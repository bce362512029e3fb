/* Events of the program's last moments: atexit handlers from before and after init, destructors,
 * and the end of another library. Prints nothing; one event for each, told apart by `w`. */
#include "faults.h"

static void before_init(void) { record(1, 0, 0); }
static void after_init(void) { record(2, 0, 0); }
__attribute__((destructor)) static void at_end(void) { record(3, 0, 0); }
__attribute__((destructor(101))) static void at_very_end(void) { record(4, 0, 0); }
static void on_exit_handler(int status, void* unused) {
  (void)status, (void)unused;
  record(5, 0, 0);
}

#ifdef WITH_LIBRARY
extern void at_library_end(void (*callback)(void));
static void library_ends(void) { record(6, 0, 0); }
#endif

int main(int argc, char** argv) {
  if (argc < 2) return 80;
  atexit(before_init);
  if (dftracer_initialize(argv[1], NULL, NULL) != 0) return 81;
  atexit(after_init);
  on_exit(on_exit_handler, NULL);
#ifdef WITH_LIBRARY
  at_library_end(library_ends);
#endif
  record(0, 0, 0);
  if (argc > 2) dftracer_finalize(); /* what comes later is not recorded, and harms nobody */
  return 0;
}
