/* Calls the C API as it is told, one line of standard input at a time: see tests/support/api_driver.py.
 * Words are separated by blanks; %XX is a byte, % alone the empty string, NULL the null pointer. */
#define _GNU_SOURCE
#include <dftracer/dftracer.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORDS 64
#define SLOTS 64
#define WORKERS 8

struct word {
  const char* text; /* NULL when NULL was said */
  size_t size;
};

static dftracer_region slots[SLOTS];
static char** arguments;

static int hex(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static struct word decode(char* token) {
  struct word out = {token, 0};
  char* to = token;
  if (strcmp(token, "NULL") == 0) {
    out.text = NULL;
    return out;
  }
  for (const char* p = token; *p != '\0'; ++p) {
    if (*p != '%') {
      *to++ = *p;
    } else if (p[1] != '\0') {
      *to++ = (char)(hex(p[1]) << 4 | hex(p[2]));
      p += 2;
    }
  }
  *to = '\0';
  out.size = (size_t)(to - token);
  return out;
}

static int count_directory(const char* path) {
  DIR* directory = opendir(path);
  int count = 0;
  struct dirent* entry;
  if (directory == NULL) return -1;
  while ((entry = readdir(directory)) != NULL) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static size_t read_args(const struct word* w, int count, dftracer_arg* out) {
  size_t n = 0;
  for (int i = 0; i + 2 < count; i += 3, ++n) {
    const char* value = w[i + 2].text;
    out[n].key = w[i].text;
    switch (w[i + 1].text[0]) {
      case 'i':
        out[n].type = DFTRACER_INT, out[n].value.i = atoll(value);
        break;
      case 'u':
        out[n].type = DFTRACER_UINT, out[n].value.u = strtoull(value, NULL, 0);
        break;
      case 'f':
        out[n].type = DFTRACER_FLOAT, out[n].value.f = atof(value);
        break;
      case 'b':
        out[n].type = DFTRACER_BOOL, out[n].value.u = value[0] == '1';
        break;
      case 's':
        out[n].type = DFTRACER_STRING;
        out[n].value.s.text = value, out[n].value.s.size = w[i + 2].size;
        break;
      default:
        out[n].type = (dftracer_type)99;
        break;
    }
  }
  return n;
}

static int is(const char* verb, const char* name) { return strcmp(verb, name) == 0; }

static void obey(struct word* w, int count) {
  const char* verb = w[0].text;
  dftracer_region* slot = count > 1 && w[1].text != NULL ? &slots[atoi(w[1].text) % SLOTS] : NULL;
  const char* second = count > 2 ? w[2].text : NULL;
  const char* third = count > 3 ? w[3].text : NULL;
  dftracer_arg args[MOST_WORDS / 3];
  if (is(verb, "init") || is(verb, "init_no_bind")) {
    const int rank = third != NULL ? atoi(third) : 0;
    int (*start)(const char*, const char*, const int*) =
        is(verb, "init") ? dftracer_initialize : dftracer_initialize_no_bind;
    printf("%d\n", start(w[1].text, second, third != NULL ? &rank : NULL));
  } else if (is(verb, "fini")) {
    dftracer_finalize();
  } else if (is(verb, "flush")) {
    dftracer_flush();
  } else if (is(verb, "begin")) {
    dftracer_region_begin(slot, NULL, second, third);
  } else if (is(verb, "int")) {
    dftracer_region_int(slot, NULL, second, atoll(third));
  } else if (is(verb, "float")) {
    dftracer_region_float(slot, NULL, second, atof(third));
  } else if (is(verb, "string")) {
    dftracer_region_string(slot, NULL, second, third);
  } else if (is(verb, "bytes")) {
    dftracer_region_bytes(slot, NULL, second, third, w[3].size);
  } else if (is(verb, "end")) {
    dftracer_region_end(slot);
  } else if (is(verb, "drop")) {
    dftracer_region_drop(slot);
  } else if (is(verb, "spans")) { /* spans COUNT NAME */
    for (int i = 0; i < atoi(w[1].text); ++i) {
      dftracer_region region;
      dftracer_region_begin(&region, NULL, second, "C_APP");
      dftracer_region_int(&region, NULL, "i", i);
      dftracer_region_end(&region);
    }
  } else if (is(verb, "instant")) {
    dftracer_instant(w[1].text, second, args, read_args(w + 3, count - 3, args));
  } else if (is(verb, "counter")) {
    dftracer_counter(w[1].text, second, atof(third));
  } else if (is(verb, "metadata")) {
    dftracer_metadata(w[1].text, second);
  } else if (is(verb, "complete")) {
    dftracer_complete(w[1].text, second, strtoull(third, NULL, 0), strtoull(w[4].text, NULL, 0),
                      args, read_args(w + 5, count - 5, args));
  } else if (is(verb, "null_args")) { /* a count without a list */
    dftracer_instant("null_args", "C_APP", NULL, 3);
  } else if (is(verb, "active")) {
    printf("%d\n", dftracer_active());
  } else if (is(verb, "time")) {
    printf("%llu\n", (unsigned long long)dftracer_time());
  } else if (is(verb, "recover")) {
    printf("%d\n", dftracer_recover(w[1].text, 0, NULL));
  } else if (is(verb, "threads")) {
    printf("%d\n", count_directory("/proc/self/task"));
  } else if (is(verb, "files")) {
    printf("%d\n", count_directory("/proc/self/fd"));
  } else if (is(verb, "pid")) {
    printf("%d\n", (int)getpid());
  } else if (is(verb, "say")) {
    printf("%s\n", w[1].text);
  } else if (is(verb, "chdir")) {
    if (chdir(w[1].text) != 0) abort();
  } else if (is(verb, "setenv")) {
    setenv(w[1].text, second, 1);
  } else if (is(verb, "fork")) { /* fork NAME: a child that records one span and exits */
    const pid_t child = fork();
    if (child == 0) {
      dftracer_region_begin(&slots[0], NULL, w[1].text, "C_APP");
      dftracer_region_end(&slots[0]);
      exit(0);
    }
    waitpid(child, NULL, 0);
  } else if (is(verb, "exec")) {
    fflush(NULL);
    execv("/proc/self/exe", arguments);
    abort();
  } else if (is(verb, "kill")) {
    fflush(NULL);
    kill(getpid(), SIGKILL);
  } else if (is(verb, "leave")) {
    fflush(NULL);
    _exit(atoi(w[1].text));
  } else {
    fprintf(stderr, "driver: what is %s?\n", verb);
    exit(99);
  }
}

/* Threads that do what the main thread hands them. */
static struct worker {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t change;
  struct word* words;
  int count;
  int running;
} workers[WORKERS];

static void* work(void* argument) {
  struct worker* me = argument;
  pthread_mutex_lock(&me->lock);
  while (me->running) {
    while (me->running && me->words == NULL) pthread_cond_wait(&me->change, &me->lock);
    if (me->words != NULL) obey(me->words, me->count);
    me->words = NULL;
    pthread_cond_broadcast(&me->change);
  }
  pthread_mutex_unlock(&me->lock);
  return NULL;
}

static void hand_over(struct worker* worker, struct word* words, int count) {
  if (!worker->running) {
    char name[16];
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->change, NULL);
    worker->running = 1;
    pthread_create(&worker->thread, NULL, work, worker);
    snprintf(name, sizeof name, "worker %d", (int)(worker - workers));
    pthread_setname_np(worker->thread, name);
  }
  pthread_mutex_lock(&worker->lock);
  if (words == NULL) worker->running = 0;
  worker->words = words, worker->count = count;
  pthread_cond_broadcast(&worker->change);
  while (worker->words != NULL) pthread_cond_wait(&worker->change, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
  if (words == NULL) pthread_join(worker->thread, NULL);
}

int main(int argc, char** argv) {
  char* line = NULL;
  size_t room = 0;
  ssize_t size;
  (void)argc;
  arguments = argv;
  setvbuf(stdout, NULL, _IOLBF, 0);
  /* What comes after an exec must still be there to be read. */
  if (getenv("DRIVER_UNBUFFERED") != NULL) setvbuf(stdin, NULL, _IONBF, 0);
  while ((size = getline(&line, &room, stdin)) > 0) {
    struct word words[MOST_WORDS];
    int count = 0;
    line[size - 1] = '\0';
    for (char* token = strtok(line, " "); token != NULL && count < MOST_WORDS;
         token = strtok(NULL, " ")) {
      words[count++] = decode(token);
    }
    if (count == 0) continue;
    if (is(words[0].text, "return")) return atoi(words[1].text);
    if (is(words[0].text, "on") && is(words[2].text, "exit")) {
      hand_over(&workers[atoi(words[1].text)], NULL, 0);
    } else if (is(words[0].text, "on")) { /* on WORKER VERB ... */
      hand_over(&workers[atoi(words[1].text)], words + 2, count - 2);
    } else {
      obey(words, count);
    }
  }
  return 0;
}
