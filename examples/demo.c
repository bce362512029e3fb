/* A small training-like job: two workers prepare batches in files, the parent reads them and
 * computes. What it shows: regions with arguments, a counter, and children that leave by _exit and
 * still appear.
 *
 *   cc demo.c $(pkg-config --cflags --libs dftracer) -lm -o demo && DFTRACER_ENABLE=1 ./demo */
#define _POSIX_C_SOURCE 200809L
#include <dftracer/dftracer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, BATCHES = 12, VALUES = 50000 };

static void batch_name(char* to, size_t room, int batch) {
  snprintf(to, room, "batch-%02d.bin", batch);
}

static void prepare_batch(int batch) {
  DFTRACER_C_FUNCTION_START();
  DFTRACER_C_FUNCTION_UPDATE_INT("batch", batch);
  char name[32];
  batch_name(name, sizeof name, batch);
  FILE* file = fopen(name, "wb");
  if (file == NULL) return; /* the region ends here too */
  for (int i = 0; i < VALUES; ++i) {
    const float value = (float)((i * 31 + batch * 17) % 1000) / 1000.0f;
    fwrite(&value, sizeof value, 1, file);
  }
  fclose(file);
  DFTRACER_C_FUNCTION_UPDATE_STR("file", name);
  DFTRACER_C_FUNCTION_END();
}

static size_t read_batch(int batch, float* values) {
  DFTRACER_C_FUNCTION_START();
  char name[32];
  batch_name(name, sizeof name, batch);
  FILE* file = fopen(name, "rb");
  const size_t count = file != NULL ? fread(values, sizeof *values, VALUES, file) : 0;
  if (file != NULL) fclose(file);
  remove(name);
  DFTRACER_C_FUNCTION_UPDATE_INT("bytes", (long)(count * sizeof *values));
  DFTRACER_C_FUNCTION_END();
  return count;
}

static double compute(const float* values, size_t count) {
  DFTRACER_C_FUNCTION_START();
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += sqrt((double)values[i]);
  DFTRACER_C_FUNCTION_UPDATE_FLOAT("sum", sum);
  DFTRACER_C_FUNCTION_END();
  return sum;
}

int main(void) {
  static float values[VALUES];
  DFTRACER_C_INIT("demo.pfw", NULL, NULL);
  DFTRACER_C_METADATA(meta, "model", "square roots");
  DFTRACER_C_REGION_START(epoch);
  for (int worker = 0; worker < WORKERS; ++worker) {
    if (fork() == 0) {
      for (int batch = worker; batch < BATCHES; batch += WORKERS) prepare_batch(batch);
      _exit(0); /* no finalize, no exit handlers: nothing is lost */
    }
  }
  while (wait(NULL) > 0) {
  }
  double total = 0;
  for (int step = 0; step < BATCHES; ++step) {
    DFTRACER_C_REGION_START(step);
    DFTRACER_C_REGION_UPDATE_INT(step, "step", step);
    total += compute(values, read_batch(step, values));
    DFTRACER_C_COUNTER("total", total);
    DFTRACER_C_REGION_END(step);
  }
  DFTRACER_C_REGION_END(epoch);
  DFTRACER_C_FINI();
  printf("total %.1f\n", total);
  return 0;
}
