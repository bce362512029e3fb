/* A little of everything that programs do with files, with every result printed: for running it
   beside other libraries, under sanitizers, as a static program. Threads share nothing.

     harm_io [THREADS] */
#include "harm.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void* work(void* given) {
  const int number = (int)(long)given;
  char name[64], other[64];
  snprintf(name, sizeof name, "file%d", number);
  snprintf(other, sizeof other, "other%d", number);
  long sum = 0;
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0640);
  sum += fd >= 0;
  for (int i = 0; i < 500; ++i) {
    char text[32];
    const int size = snprintf(text, sizeof text, "%d %d\n", number, i);
    sum += write(fd, text, (size_t)size);
    sum += pread(fd, text, sizeof text, i);
  }
  struct stat info;
  sum += fstat(fd, &info) == 0 ? info.st_size : -1;
  sum += lseek(fd, 0, SEEK_SET);
  char first[10], second[20];
  struct iovec parts[2] = {{first, sizeof first}, {second, sizeof second}};
  sum += readv(fd, parts, 2);
  const int copy = dup(fd);
  sum += fsync(copy) + close(copy) + close(fd);
  sum += rename(name, other) + (stat(name, &info) == -1);
  FILE* file = fopen(other, "r+");
  char line[100];
  while (fgets(line, sizeof line, file)) {
    sum += (long)strlen(line);
  }
  sum += fprintf(file, "%s %f %d\n", "end", 1.5, number);
  sum += fseek(file, 0, SEEK_SET) + (long)fread(line, 1, sizeof line, file) + fclose(file);
  fd = open(other, O_RDONLY);
  char* memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  sum += memory[2];
  munmap(memory, 4096);
  close(fd);
  char* allocated = NULL;
  size_t room = 0;
  file = fopen(other, "r");
  sum += getline(&allocated, &room, file);
  fclose(file);
  free(allocated);
  sum += unlink(other);
  return (void*)sum;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  pthread_t running[64];
  for (int i = 0; i < threads; ++i) {
    NEED(pthread_create(&running[i], NULL, work, (void*)(long)i) == 0);
  }
  for (int i = 0; i < threads; ++i) {
    void* sum = NULL;
    pthread_join(running[i], &sum);
    say("thread %d: %ld", i, (long)sum);
  }
  say("main: %ld", (long)work((void*)99));
  SHOW(mkdir("made", 0755));
  DIR* directory = opendir(".");
  int entries = 0;
  while (readdir(directory)) {
    ++entries;
  }
  SHOW(closedir(directory));
  say("entries %d", entries);
  const pid_t child = fork();
  if (child == 0) {
    say("child: %ld", (long)work((void*)50));
    exit(3);
  }
  int status = -1;
  SHOW(waitpid(child, &status, 0) == child);
  say("status %d", status);
  FILE* shell = popen("cat data | wc -c", "r");
  char line[100] = "";
  SHOW(fgets(line, sizeof line, shell) == line);
  say("%s", line);
  SHOW(pclose(shell));
  SHOW(system("exit 7"));
  const int fd = open("data", O_RDONLY);
  marks(fd, 1000, 0, 1000);
  SHOW(close(fd));
  return 0;
}
