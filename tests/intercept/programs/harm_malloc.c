/* A program whose allocator does I/O on every call, as allocators that log do. */
#include "harm.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
static int log_file = -1;

static void note(void) {
  if (log_file < 0) {
    log_file = open("data", O_RDONLY);
  }
  char byte;
  (void)!pread(log_file, &byte, 1, 5);
}

void* malloc(size_t size) {
  const int saved = errno;
  note();
  errno = saved;
  const size_t whole = (size + 31) & ~(size_t)15;
  const size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
  if (at + whole > sizeof arena) {
    errno = ENOMEM;
    return NULL;
  }
  *(size_t*)(arena + at) = size;
  return arena + at + 16;
}

void free(void* pointer) {
  const int saved = errno;
  if (pointer) {
    note();
  }
  errno = saved;
}

void* calloc(size_t count, size_t size) { return malloc(count * size); /* never used before */ }

void* realloc(void* pointer, size_t size) {
  char* fresh = malloc(size);
  if (fresh && pointer) {
    const size_t old = *(size_t*)((char*)pointer - 16);
    memcpy(fresh, pointer, old < size ? old : size);
  }
  return fresh;
}

static void* work(void* unused) {
  for (int i = 0; i < 200; ++i) {
    FILE* file = fopen("data", "r"); /* allocates while it opens */
    char line[100];
    if (!file || fread(line, 1, sizeof line, file) != sizeof line) {
      say("cannot read");
    }
    fclose(file);
  }
  return unused;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    pthread_create(&threads[i], NULL, work, NULL);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
  }
  const int fd = open("data", O_RDONLY);
  marks(fd, 1000, 0, 2000);
  say("end");
  return 0;
}
