/* A library that stands before libc with a memcpy that knows threads, as profilers and sanitizers
   have: on a thread that libc did not make it has no place to count. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t g_key;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void make_key(void) {
  if (pthread_key_create(&g_key, free) != 0) {
    abort();
  }
}

void* memcpy(void* to, const void* from, size_t size) {
  pthread_once(&g_once, make_key);
  size_t* copied = pthread_getspecific(g_key);
  if (copied == NULL) {
    copied = calloc(1, sizeof *copied);
    pthread_setspecific(g_key, copied);
  }
  *copied += size;
  volatile char* out = to;
  const char* in = from;
  for (size_t i = 0; i < size; ++i) {
    out[i] = in[i];
  }
  return to;
}
