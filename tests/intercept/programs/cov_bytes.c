/* I11, I13: known numbers of bytes in each way that there is. main(way): reads READS bytes from
 * `in` or writes as many to `out`; `unseen` writes them past every library. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

#include "cov.h"

#define BYTES (8L << 20)
#define PIECE 65536L

static char data[PIECE + 1];

static void need(int condition) {
  if (!condition) {
    perror("cov_bytes");
    exit(1);
  }
}

static int input(void) {
  int fd = open("in", O_RDONLY);
  need(fd >= 0);
  return fd;
}
static int output(void) {
  int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
  need(fd >= 0);
  return fd;
}

int main(int argc, char** argv) {
  START();
  need(access("seen", F_OK) != 0); /* the one call that is recorded when the others are not */
  const char* way = argc > 1 ? argv[1] : "";
  struct iovec two[2] = {{data, PIECE / 2}, {data + PIECE / 2, PIECE / 2}};
  long done = 0;
  if (strcmp(way, "read") == 0) {
    for (int fd = input(); done < BYTES; done += PIECE) need(read(fd, data, PIECE) == PIECE);
  } else if (strcmp(way, "pread") == 0) {
    for (int fd = input(); done < BYTES; done += PIECE) need(pread(fd, data, PIECE, done) == PIECE);
  } else if (strcmp(way, "readv") == 0) {
    for (int fd = input(); done < BYTES; done += PIECE) need(readv(fd, two, 2) == PIECE);
  } else if (strcmp(way, "preadv") == 0) {
    for (int fd = input(); done < BYTES; done += PIECE) need(preadv(fd, two, 2, done) == PIECE);
  } else if (strcmp(way, "write") == 0) {
    for (int fd = output(); done < BYTES; done += PIECE) need(write(fd, data, PIECE) == PIECE);
  } else if (strcmp(way, "pwrite") == 0) {
    for (int fd = output(); done < BYTES; done += PIECE)
      need(pwrite(fd, data, PIECE, done) == PIECE);
  } else if (strcmp(way, "writev") == 0) {
    for (int fd = output(); done < BYTES; done += PIECE) need(writev(fd, two, 2) == PIECE);
  } else if (strcmp(way, "pwritev") == 0) {
    for (int fd = output(); done < BYTES; done += PIECE) need(pwritev(fd, two, 2, done) == PIECE);
  } else if (strcmp(way, "sendfile") == 0) {
    int out = output();
    for (int fd = input(); done < BYTES; done += PIECE)
      need(sendfile(out, fd, NULL, PIECE) == PIECE);
  } else if (strcmp(way, "copy_file_range") == 0) {
    int out = output();
    for (int fd = input(); done < BYTES;) {
      ssize_t n = copy_file_range(fd, NULL, out, NULL, (size_t)(BYTES - done), 0);
      need(n > 0);
      done += n;
    }
  } else if (strcmp(way, "fread") == 0) {
    for (FILE* f = fopen("in", "r"); done < BYTES; done += 1024)
      need(fread(data, 1, 1024, f) == 1024);
  } else if (strcmp(way, "fgetc") == 0) {
    for (FILE* f = fopen("in", "r"); done < BYTES / 16; ++done) need(fgetc(f) != EOF);
  } else if (strcmp(way, "fgets") == 0) {
    for (FILE* f = fopen("in", "r"); done < BYTES; done += 64) need(fgets(data, 200, f) != NULL);
  } else if (strcmp(way, "getline") == 0) {
    char* line = NULL;
    size_t room = 0;
    for (FILE* f = fopen("in", "r"); done < BYTES; done += 64) need(getline(&line, &room, f) == 64);
    free(line);
  } else if (strcmp(way, "fwrite") == 0) {
    for (FILE* f = fopen("out", "w"); done < BYTES; done += 1024)
      need(fwrite(data, 4, 256, f) == 256);
  } else if (strcmp(way, "fputs") == 0) {
    memset(data, 'x', 128);
    for (FILE* f = fopen("out", "w"); done < BYTES; done += 128) need(fputs(data, f) >= 0);
  } else if (strcmp(way, "fprintf") == 0) {
    for (FILE* f = fopen("out", "w"); done < BYTES; done += 128)
      need(fprintf(f, "%128d", 5) == 128);
  } else if (strcmp(way, "putc") == 0) {
    for (FILE* f = fopen("out", "w"); done < BYTES / 16; ++done) need(putc('x', f) == 'x');
  } else if (strcmp(way, "inlined getc") == 0) {
    /* What the header makes of getc_unlocked: libc is called when the buffer is empty. */
    for (FILE* f = fopen("in", "r"); done < BYTES; ++done) need(__getc_unlocked_body(f) != EOF);
  } else if (strcmp(way, "inlined putc") == 0) {
    for (FILE* f = fopen("out", "w"); done < BYTES; ++done)
      need(__putc_unlocked_body('x', f) == 'x');
  } else if (strcmp(way, "mixed putc") == 0) {
    /* As od does it: neither is counted twice. */
    for (FILE* f = fopen("out", "w"); done < BYTES; done += 33) {
      need(__putc_unlocked_body('x', f) == 'x' && fwrite(data, 1, 32, f) == 32);
    }
  } else if (strcmp(way, "fgetws") == 0) {
    wchar_t line[200];
    for (FILE* f = fopen("in", "r"); done < BYTES; done += 64) need(fgetws(line, 200, f) != NULL);
  } else if (strcmp(way, "fputws") == 0) {
    const wchar_t* line = L"1234567890123456789012345678901234567890123456789012345678901234";
    for (FILE* f = fopen("out", "w"); done < BYTES; done += 64) need(fputws(line, f) >= 0);
  } else if (strcmp(way, "dprintf") == 0) {
    for (int fd = output(); done < BYTES; done += 4096) need(dprintf(fd, "%4096d", 5) == 4096);
  } else if (strcmp(way, "unseen") == 0) {
    for (int fd = output(); done < BYTES; done += PIECE)
      need(unseen(SYS_write, fd, (long)data, PIECE, 0) == PIECE);
  } else if (strcmp(way, "map") == 0) {
    int fd = input();
    char* map = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    need(map != MAP_FAILED);
    for (; done < BYTES; done += 4096) data[0] ^= map[done];
  } else {
    return 2;
  }
  return 0; /* streams are left to exit(), descriptors to the kernel */
}
