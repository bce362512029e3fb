/* A library that closes a pipe when it ends, as PyTorch's does. */
#include <unistd.h>
static int g_ends[2];
__attribute__((constructor)) static void begins(void) {
  if (pipe(g_ends) != 0) _exit(9);
}
__attribute__((destructor)) static void ends(void) {
  if (close(g_ends[0]) == 0 && close(g_ends[1]) == 0) (void)!write(1, "closed\n", 7);
}
