/* I7: files in memory. A mapping of no file is no I/O and is not seen. */
#include "cov.h"

#define CLOSE(fd, path) POSIX("close", path, close(fd), "")
#define PAGE 4096L
#define BOTH (PROT_READ | PROT_WRITE)

int main(int argc, char** argv) {
  (void)argc;
  BEGIN(argv);
  const char* a = P("a");
  int fd = POSIX(N("open"), a, open("a", O_RDWR | O_CREAT, 0600), "flags=%d mode=%d",
                 O_RDWR | O_CREAT, 0600);
  MUST(POSIX(N("ftruncate"), a, ftruncate(fd, 8 * PAGE), "length=%ld", 8 * PAGE) == 0);
  char* map = POSIX_POINTER(N("mmap"), a, mmap(NULL, 4 * PAGE, BOTH, MAP_SHARED, fd, 0),
                            "length=%ld prot=%d flags=%d offset=%d", 4 * PAGE, BOTH, MAP_SHARED, 0);
  MUST(map != MAP_FAILED);
  char* part =
      POSIX_POINTER("mmap64", a, mmap64(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 2 * PAGE),
                    "length=%d prot=%d flags=%d offset=%ld", 100, PROT_READ, MAP_PRIVATE, 2 * PAGE);
  MUST(part != MAP_FAILED);
  CLOSE(fd, a); /* the mappings stay */
  map[0] = 1;
  MUST(POSIX("msync", a, msync(map, 2 * PAGE, MS_SYNC), "length=%ld flags=%d", 2 * PAGE, MS_SYNC) ==
       0);
  MUST(POSIX("madvise", a, madvise(map, PAGE, MADV_WILLNEED), "length=%ld advice=%d", PAGE,
             MADV_WILLNEED) == 0);
  MUST(POSIX_ERROR("posix_madvise", a, posix_madvise(map, PAGE, POSIX_MADV_WILLNEED),
                   "length=%ld advice=%d", PAGE, POSIX_MADV_WILLNEED) == 0);
  map = POSIX_POINTER("mremap", a, mremap(map, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE),
                      "old_size=%ld new_size=%ld flags=%d", 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
  MUST(map != MAP_FAILED);
  MUST(POSIX("munmap", a, munmap(map, 8 * PAGE), "length=%ld", 8 * PAGE) == 0);
  MUST(POSIX("munmap", a, munmap(part, 100), "length=%d", 100) == 0);
  /* Memory without a file: not I/O. */
  map = mmap(NULL, 4 * PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(map != MAP_FAILED && madvise(map, PAGE, MADV_DONTNEED) == 0 && munmap(map, 4 * PAGE) == 0);
  return finish();
}
