/* spawn REPEATS -- [NAME=VALUE ...] PROGRAM [ARGUMENT ...] [-- ...]
 * Starts each of the given commands in turn, REPEATS times, each time in an empty directory of its
 * own, and prints the median wall and CPU time between start and end of each, one line of JSON a
 * command. A driver in C, because starting a process from an interpreter costs more than what is
 * measured. */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

enum { kMostCommands = 16, kMostVariables = 64 };

typedef struct {
  char** argv;
  char* environment[kMostVariables];
  double* wall_us;
  double* cpu_us;
  long failed;
  long files;
} Command;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double at_share(double* values, long count, double share) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[(long)((double)(count - 1) * share)];
}

static long empty_and_remove(const char* directory) {
  long files = 0;
  DIR* entries = opendir(directory);
  if (entries == NULL) return 0;
  for (struct dirent* entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    unlinkat(dirfd(entries), entry->d_name, 0);
    ++files;
  }
  closedir(entries);
  rmdir(directory);
  return files;
}

static void run(Command* command, long index) {
  char directory[64];
  snprintf(directory, sizeof directory, "spawned-%ld", (long)getpid());
  mkdir(directory, 0700);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory);
  pid_t child = 0;
  int status = 0;
  struct rusage usage;
  memset(&usage, 0, sizeof usage);
  const double before = now_us();
  if (posix_spawn(&child, command->argv[0], &actions, NULL, command->argv, command->environment) !=
          0 ||
      wait4(child, &status, 0, &usage) != child || status != 0) {
    ++command->failed;
  }
  command->wall_us[index] = now_us() - before;
  command->cpu_us[index] = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  posix_spawn_file_actions_destroy(&actions);
  command->files += empty_and_remove(directory);
}

/* NAME=VALUE words go in front of the inherited environment; the rest is the command. */
static char** parse(Command* command, char** word) {
  int variables = 0;
  for (; *word != NULL && strchr(*word, '=') != NULL && variables < kMostVariables / 2; ++word) {
    command->environment[variables++] = *word;
  }
  for (char** old = environ; *old != NULL && variables < kMostVariables - 1; ++old) {
    command->environment[variables++] = *old;
  }
  command->argv = word;
  while (*word != NULL && strcmp(*word, "--") != 0) ++word;
  return word;
}

int main(int argc, char** argv) {
  static Command commands[kMostCommands];
  long repeats = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  int count = 0;
  char** word = argv + (argc > 1 ? 2 : 1);
  while (*word != NULL && strcmp(*word, "--") == 0 && count < kMostCommands) {
    *word++ = NULL;
    word = parse(&commands[count++], word);
  }
  if (repeats < 1 || count == 0 || *word != NULL) {
    fprintf(stderr, "usage: spawn REPEATS -- [NAME=VALUE ...] PROGRAM [ARGUMENT ...] [-- ...]\n");
    return 2;
  }
  for (int c = 0; c < count; ++c) {
    commands[c].wall_us = calloc((size_t)repeats, sizeof(double));
    commands[c].cpu_us = calloc((size_t)repeats, sizeof(double));
  }
  for (long i = 0; i < repeats; ++i) {
    for (int c = 0; c < count; ++c) run(&commands[c], i);
  }
  for (int c = 0; c < count; ++c) {
    printf("{\"wall_us\":%.1f,\"cpu_us\":%.1f,\"quarter_us\":%.1f,\"failed\":%ld,\"files\":%ld}\n",
           at_share(commands[c].wall_us, repeats, 0.5), at_share(commands[c].cpu_us, repeats, 0.5),
           at_share(commands[c].wall_us, repeats, 0.25), commands[c].failed,
           commands[c].files / repeats);
  }
  return 0;
}
