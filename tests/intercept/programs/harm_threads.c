/* Threads with little room, coroutines, and I/O at the end of threads and of the process.

     harm_threads small COUNT       threads with the smallest stack there is
     harm_threads keys COUNT        destructors of thread-specific data that do I/O
     harm_threads coroutines COUNT  contexts on 16 KiB stacks that swap between their calls
     harm_threads many COUNT        short threads, one after another
     harm_threads exit              exit() in a thread while others go on
     harm_threads last              the main thread is gone, another one ends the process */
#include "harm.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

static int data;
static pthread_barrier_t barrier;

static pthread_t begin(void* (*body)(void*), long number, size_t stack) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (stack) {
    NEED(pthread_attr_setstacksize(&attributes, stack) == 0);
  }
  NEED(pthread_create(&thread, &attributes, body, (void*)number) == 0);
  pthread_attr_destroy(&attributes);
  return thread;
}

/* More records than a chunk takes, and calls with names, of which the tracer keeps a table. */
static void* small(void* given) {
  const int number = (int)(long)given;
  char byte;
  for (int i = 0; i < 300; ++i) {
    const int fd = open("data", O_RDONLY);
    if (fd < 0 || pread(fd, &byte, 1, i) != 1 || byte != (char)i || close(fd) != 0) {
      say("wrong in thread %d", number);
    }
    if (open("nothing/at/all", O_RDONLY) != -1 || errno != ENOENT) {
      say("wrong in thread %d", number);
    }
  }
  marks(data, 1000 + number, 0, 1500);
  return NULL;
}

static pthread_key_t keys[3];
static int rounds;

static void destroy(void* given) {
  const long value = (long)given;
  const int number = (int)(value & 0xffff), round = (int)(value >> 16);
  marks(data, 1000 + number, 10 * round, 10 * round + 10);
  __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
  if (round < 4) { /* once more: the destructors run again while there are values */
    pthread_setspecific(keys[1], (void*)(((long)(round + 1) << 16) | number));
  }
}

static void* with_keys(void* given) {
  const long number = (long)given;
  marks(data, 1000 + (int)number, 0, 10);
  pthread_setspecific(keys[1], (void*)((1L << 16) | number));
  return NULL;
}

/* The thread's first call at all is in its destructor. */
static void* only_keys(void* given) {
  pthread_setspecific(keys[1], (void*)((1L << 16) | (long)given));
  return NULL;
}

static ucontext_t main_context, contexts[4];

static void coroutine(int number, int count) {
  for (int i = 0; i < count; ++i) {
    marks(data, 1000 + number, i, i + 1);
    swapcontext(&contexts[number], &main_context);
    const int fd = open("data", O_RDONLY);
    swapcontext(&contexts[number], &main_context);
    close(fd);
  }
}

static void coroutines(int count) {
  static char stacks[4][16384];
  for (int i = 0; i < 4; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof stacks[i];
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)(void))coroutine, 2, i, count);
  }
  for (int round = 0; round < 2 * count + 1; ++round) {
    for (int i = 0; i < 4; ++i) {
      swapcontext(&main_context, &contexts[i]);
    }
  }
}

static void* short_one(void* given) {
  const int number = (int)(long)given;
  marks(data, 1000, number, number + 1);
  return NULL;
}

static void* goes_on(void* given) {
  (void)given;
  char byte;
  pthread_barrier_wait(&barrier);
  for (;;) {
    (void)!read(data, &byte, 1);
    lseek(data, 0, SEEK_SET);
  }
  return NULL;
}

static void* exits(void* given) {
  (void)given;
  pthread_barrier_wait(&barrier);
  marks(data, 1000, 0, 500);
  say("exit");
  exit(4);
}

static void* last(void* given) {
  pthread_join((pthread_t)given, NULL);
  marks(data, 1001, 0, 500);
  say("last");
  return NULL;
}

int main(int argc, char** argv) {
  NEED(argc > 1);
  const char* what = argv[1];
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  data = open("data", O_RDONLY);
  pthread_t threads[64];
  if (strcmp(what, "small") == 0) {
    NEED(count <= 64);
    for (int i = 0; i < count; ++i) {
      threads[i] = begin(small, i, PTHREAD_STACK_MIN);
    }
    for (int i = 0; i < count; ++i) {
      pthread_join(threads[i], NULL);
    }
  } else if (strcmp(what, "keys") == 0) {
    for (int i = 0; i < 3; ++i) {
      NEED(pthread_key_create(&keys[i], i == 1 ? destroy : NULL) == 0);
    }
    for (int i = 0; i < count; ++i) {
      pthread_join(begin(i % 2 ? with_keys : only_keys, i, 0), NULL);
    }
    say("rounds %d", rounds);
  } else if (strcmp(what, "coroutines") == 0) {
    coroutines(count);
  } else if (strcmp(what, "many") == 0) {
    for (int i = 0; i < count; ++i) {
      pthread_join(begin(short_one, i, 0), NULL);
    }
  } else if (strcmp(what, "exit") == 0) {
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; ++i) {
      begin(goes_on, i, 0);
    }
    pthread_join(begin(exits, 0, 0), NULL);
  } else if (strcmp(what, "last") == 0) {
    begin(last, (long)pthread_self(), 0);
    marks(data, 1000, 0, 500);
    pthread_exit(NULL);
  }
  say("end");
  return 0;
}
