/* A library that calls back when it ends, after libraries that were loaded later have ended. */
static void (*g_callback)(void);
void at_library_end(void (*callback)(void));
void at_library_end(void (*callback)(void)) { g_callback = callback; }
__attribute__((destructor)) static void ends(void) {
  if (g_callback) g_callback();
}
