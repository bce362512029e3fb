/* Loads libraries into name spaces of their own: main(way, library, function, file, ...), four
 * words each. Prints what the function says, and whether errno is still what it was here. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "intercept.h"

typedef void Function(const char* path, char* said, size_t room);

static int call(void* handle, const char* name, const char* path) {
  char said[512] = "";
  if (handle == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  if (strcmp(name, "pass_on") == 0) {
    ssize_t (*pass_on)(int, const void*, size_t);
    *(void**)&pass_on = dlsym(handle, name);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    printf("%zd\n", pass_on(fd, "passed", 6));
    return close(fd);
  }
  Function* function;
  *(void**)&function = dlsym(handle, name);
  if (function == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  errno = 4242;
  function(path, said, sizeof said);
  printf("%s: %s, errno %d, error %s\n", name, said, errno, dlerror());
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  Lmid_t space = LM_ID_NEWLM;
  void* early = NULL;
  if (argc > 2 && strcmp(argv[1], "early") == 0) early = dlmopen(LM_ID_NEWLM, argv[2], RTLD_LAZY);
  START();
  for (int i = 1; i + 3 < argc; i += 4) {
    const char *way = argv[i], *library = argv[i + 1], *name = argv[i + 2], *path = argv[i + 3];
    int failed = 0;
    dlerror();
    if (strcmp(way, "early") == 0) {
      failed = call(early, name, path);
    } else if (strcmp(way, "again") == 0) { /* the number of the name space is given again */
      for (int turn = 0; turn < 3; ++turn) {
        void* handle = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
        failed |= call(handle, name, path) || dlclose(handle);
      }
    } else if (strcmp(way, "same") == 0) { /* as the one before */
      failed = call(dlmopen(space, library, RTLD_LAZY), name, path);
    } else if (strcmp(way, "swap") == 0) { /* the first library of its name space goes */
      void* first = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
      if (first == NULL || dlinfo(first, RTLD_DI_LMID, &space) != 0) return 1;
      char other[512];
      snprintf(other, sizeof other, "%s.copy", library);
      void* second = dlmopen(space, other, RTLD_NOW);
      failed = dlclose(first) || call(second, name, path);
    } else {
      void* handle = dlmopen(LM_ID_NEWLM, library, way[0] == 'l' ? RTLD_LAZY : RTLD_NOW);
      failed = call(handle, name, path) || dlinfo(handle, RTLD_DI_LMID, &space) != 0;
    }
    if (failed) return 1;
  }
  return 0;
}
