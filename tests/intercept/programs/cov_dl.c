/* Loads libraries in every way: main(way, library, file, ...), three words each. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "intercept.h"

typedef int (*Work)(const char*);

static int load(const char* library, int flags, const char* function, const char* path) {
  void* handle = dlopen(library, flags);
  Work work = NULL;
  if (handle != NULL) *(void**)&work = dlsym(handle, function);
  if (work == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return work(path);
}

static void* in_thread(void* words) {
  char** argv = words;
  return load(argv[1], RTLD_NOW, "work", argv[2]) == 0 ? NULL : words;
}

int main(int argc, char** argv) {
  void* early = argc > 2 && strcmp(argv[1], "early") == 0 ? dlopen(argv[2], RTLD_NOW) : NULL;
  START();
  for (int i = 1; i + 2 < argc; i += 3) {
    char** words = argv + i;
    int ret = 9;
    if (strcmp(words[0], "early") == 0) {
      ret = early == NULL ? 1 : load(words[1], RTLD_NOW | RTLD_NOLOAD, "work", words[2]);
    } else if (strcmp(words[0], "lazy") == 0) {
      ret = load(words[1], RTLD_LAZY, "work", words[2]);
    } else if (strcmp(words[0], "local") == 0) {
      ret = load(words[1], RTLD_NOW | RTLD_LOCAL, "work", words[2]);
    } else if (strcmp(words[0], "global") == 0) {
      ret = load(words[1], RTLD_NOW | RTLD_GLOBAL, "work", words[2]);
    } else if (strcmp(words[0], "deep") == 0) {
      ret = load(words[1], RTLD_NOW | RTLD_DEEPBIND, "work", words[2]);
    } else if (strcmp(words[0], "lazydeep") == 0) {
      ret = load(words[1], RTLD_LAZY | RTLD_DEEPBIND, "work", words[2]);
    } else if (strcmp(words[0], "next") == 0) {
      ret = load(words[1], RTLD_NOW, "work_next", words[2]);
    } else if (strcmp(words[0], "thread") == 0) {
      pthread_t thread;
      void* result = words;
      pthread_create(&thread, NULL, in_thread, words);
      pthread_join(thread, &result);
      ret = result != NULL;
    } else if (strcmp(words[0], "below") == 0) {
      void* handle = dlopen(words[1], RTLD_NOW);
      int (*below)(const char*, const char*) = NULL;
      if (handle != NULL) *(void**)&below = dlsym(handle, "work_below");
      ret = below == NULL ? 1 : below(words[1], words[2]);
    } else if (strcmp(words[0], "again") == 0) {
      for (int turn = 0; turn < 5; ++turn) {
        void* handle = dlopen(words[1], RTLD_NOW);
        Work work = NULL;
        if (handle != NULL) *(void**)&work = dlsym(handle, "work");
        ret = work == NULL ? 1 : work(words[2]) + dlclose(handle);
        if (ret != 0) break;
      }
    } else if (strcmp(words[0], "new") == 0) {
      void* handle = dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW);
      Work work = NULL;
      if (handle != NULL) *(void**)&work = dlsym(handle, "work");
      if (work == NULL) fprintf(stderr, "%s\n", dlerror());
      ret = work == NULL ? 1 : work(words[2]);
    }
    if (ret != 0) {
      fprintf(stderr, "%s %s: %d\n", words[0], words[2], ret);
      return 1;
    }
  }
  return 0;
}
