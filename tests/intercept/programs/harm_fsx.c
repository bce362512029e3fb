/* A long random walk over one file, the same for the same seed, checked against memory at every
   step: whatever is read must be what was written, through descriptors, streams and mappings.

     harm_fsx SEED STEPS */
#include "harm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define LARGEST (256 * 1024)

static unsigned char model[LARGEST], scratch[LARGEST], want[LARGEST];
static long size;
static unsigned long state;
static unsigned long checksum = 14695981039346656037ul;

static long number(long below) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return below > 0 ? (long)((state >> 33) % (unsigned long)below) : 0;
}

static void add(long value) { checksum = (checksum ^ (unsigned long)value) * 1099511628211ul; }

static void check(int step, const char* what, long got, long wanted, const void* bytes,
                  const void* expected) {
  add(got);
  if (got != wanted || (wanted > 0 && bytes && memcmp(bytes, expected, (size_t)wanted) != 0)) {
    say("step %d, %s: %ld in place of %ld", step, what, got, wanted);
    exit(1);
  }
}

static void grow(long end) {
  if (end > size) {
    size = end;
  }
}

int main(int argc, char** argv) {
  NEED(argc > 2);
  state = strtoul(argv[1], NULL, 10);
  const int steps = atoi(argv[2]);
  int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int step = 0; step < steps; ++step) {
    const long at = number(LARGEST), most = number(20000) + 1;
    const long fits = at + most > LARGEST ? LARGEST - at : most;
    const long left = at >= size ? 0 : at + fits > size ? size - at : fits;
    for (long i = 0; i < fits; ++i) {
      scratch[i] = (unsigned char)(step + i);
    }
    struct iovec parts[3] = {{scratch, (size_t)fits / 3},
                             {scratch + fits / 3, (size_t)fits / 3},
                             {scratch + 2 * (fits / 3), (size_t)(fits - 2 * (fits / 3))}};
    switch (number(12)) {
      case 0:
        check(step, "pread", pread(fd, scratch, (size_t)fits, at), left, scratch, model + at);
        break;
      case 1:
        memcpy(model + at, scratch, (size_t)fits);
        grow(at + fits);
        check(step, "pwrite", pwrite(fd, scratch, (size_t)fits, at), fits, NULL, NULL);
        break;
      case 2:
        check(step, "lseek", lseek(fd, at, SEEK_SET), at, NULL, NULL);
        check(step, "read", read(fd, scratch, (size_t)fits), left, scratch, model + at);
        check(step, "where", lseek(fd, 0, SEEK_CUR), at + left, NULL, NULL);
        break;
      case 3:
        memcpy(model + at, scratch, (size_t)fits);
        grow(at + fits);
        lseek(fd, at, SEEK_SET);
        check(step, "write", write(fd, scratch, (size_t)fits), fits, NULL, NULL);
        check(step, "where", lseek(fd, 0, SEEK_CUR), at + fits, NULL, NULL);
        break;
      case 4:
        memcpy(model + at, scratch, (size_t)fits);
        grow(at + fits);
        check(step, "pwritev", pwritev(fd, parts, 3, at), fits, NULL, NULL);
        break;
      case 5:
        check(step, "preadv", preadv(fd, parts, 3, at), left, scratch, model + at);
        break;
      case 6: {
        const long length = number(LARGEST);
        check(step, "ftruncate", ftruncate(fd, length), 0, NULL, NULL);
        if (length < size) {
          memset(model + length, 0, (size_t)(size - length));
        }
        size = length;
        break;
      }
      case 7: {
        if (size == 0) {
          break;
        }
        unsigned char* map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        check(step, "mapped", size, size, map, model);
        const long where = number(size);
        map[where] = model[where] = (unsigned char)step;
        msync(map, (size_t)size, MS_ASYNC);
        munmap(map, (size_t)size);
        break;
      }
      case 8: {
        FILE* file = fopen("file", "r+");
        check(step, "fseek", fseek(file, at, SEEK_SET), 0, NULL, NULL);
        check(step, "fread", (long)fread(want, 1, (size_t)fits, file), left, want, model + at);
        memcpy(model + at, scratch, (size_t)fits);
        grow(at + fits);
        fseek(file, at, SEEK_SET);
        check(step, "fwrite", (long)fwrite(scratch, 1, (size_t)fits, file), fits, NULL, NULL);
        check(step, "ftell", ftell(file), at + fits, NULL, NULL);
        check(step, "fclose", fclose(file), 0, NULL, NULL);
        break;
      }
      case 9: {
        const int other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
        off_t from = at;
        check(step, "sendfile", sendfile(other, fd, &from, (size_t)fits), left, NULL, NULL);
        check(step, "offset", from, at + left, NULL, NULL);
        check(step, "copied", pread(other, want, (size_t)fits, 0), left, want, model + at);
        close(other);
        break;
      }
      case 10: {
        struct stat info;
        fstat(fd, &info);
        check(step, "fstat", info.st_size, size, NULL, NULL);
        const int copy = dup(fd);
        close(fd);
        fd = copy;
        add(fd);
        break;
      }
      default:
        close(fd);
        fd = open("file", O_RDWR);
        add(fd);
    }
  }
  check(steps, "all", pread(fd, scratch, LARGEST, 0), size, scratch, model);
  say("size %ld, checksum %lx", size, checksum);
  return 0;
}
