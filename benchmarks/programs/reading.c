// Makes a trace to read: N calls on 20 files, of four kinds, with sizes and offsets that differ.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kFiles = 20, kBytes = 4096 };

static unsigned long next(unsigned long state) {
  return state * 6364136223846793005UL + 1442695040888963407UL;
}

int main(int argc, char** argv) {
  const long calls = argc > 1 ? atol(argv[1]) : 1000;
  static char buffer[kBytes];
  int files[kFiles];
  unsigned long state = 1;
  long moved = 0;
  for (int i = 0; i < kFiles; ++i) {
    char name[32];
    snprintf(name, sizeof name, "file_%02d.bin", i);
    files[i] = open(name, O_RDWR | O_CREAT, 0644);
    if (files[i] < 0) return 1;
    moved += write(files[i], buffer, kBytes);
  }
  for (long i = 0; i < calls; ++i) {
    state = next(state);
    const int fd = files[(state >> 33) % kFiles];
    const size_t size = (state >> 20) % 1024;
    const off_t offset = (off_t)((state >> 50) % 2048);
    switch ((state >> 40) % 4) {
      case 0:
        moved += pread(fd, buffer, size, offset);
        break;
      case 1:
        moved += pwrite(fd, buffer, size, offset);
        break;
      case 2:
        moved += lseek(fd, offset, SEEK_SET);
        break;
      default:
        moved += read(fd, buffer, size);
    }
  }
  return moved == 0;
}
