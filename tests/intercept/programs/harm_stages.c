/* I/O at every moment of a program's life: before main, after main, and in the library that it is
   linked with (harm_stages_lib.c), whose constructors run before those of a preloaded library and
   whose destructors run after them. Each moment makes marks of its own.

     harm_stages [return|exit|quick_exit|_exit] */
#include "harm.h"

#include <fcntl.h>

extern int stage_library(void);

static void stage(int who) {
  const int fd = open("data", O_RDONLY);
  marks(fd, who, 0, 25);
  close(fd);
  FILE* file = fopen("data", "r");
  char bytes[4] = "";
  if (!file || fread(bytes, 1, 4, file) != 4 || memcmp(bytes, "\0\1\2\3", 4) != 0) {
    say("stage %d cannot read", who);
  }
  if (file) {
    fclose(file);
  }
  say("stage %d", who);
}

static void preinit(int argc, char** argv, char** envp) {
  (void)argc, (void)argv, (void)envp;
  stage(1001);
}
__attribute__((section(".preinit_array"), used)) static void (*const before)(int, char**,
                                                                             char**) = preinit;

__attribute__((constructor(101))) static void first(void) { stage(1002); }
__attribute__((constructor)) static void second(void) { stage(1003); }
__attribute__((destructor)) static void before_last(void) { stage(1004); }
__attribute__((destructor(101))) static void last(void) { stage(1005); }

/* Which of them is used is decided while the program is being relocated. */
static int plain(void) { return 7; }
static int (*choose(void))(void) {
  /* Only system calls: more is not ready in a bare program either. */
  const int fd = open("data", O_RDONLY);
  char bytes[1006];
  (void)!pread(fd, bytes, sizeof bytes, 0);
  close(fd);
  return plain;
}
int chosen(void) __attribute__((ifunc("choose")));

static void at_end(void) { stage(1007); }
static void at_quick_end(void) { stage(1008); }
static void on_end(int status, void* unused) {
  (void)unused;
  say("status %d", status);
  stage(1009);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  stage(1010);
  say("chosen %d, library %d", chosen(), stage_library());
  atexit(at_end);
  at_quick_exit(at_quick_end);
  on_exit(on_end, NULL);
  if (strcmp(how, "exit") == 0) {
    exit(3);
  } else if (strcmp(how, "quick_exit") == 0) {
    quick_exit(3);
  } else if (strcmp(how, "_exit") == 0) {
    _exit(3);
  }
  return 3;
}
