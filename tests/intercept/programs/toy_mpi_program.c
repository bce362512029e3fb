/* Calls the functions of toy_mpi.c. Each word of the command line is one part. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept.h"

typedef uintptr_t word;
#define WORLD 0x101
#define BYTE 0x247
#define DOUBLE 0x241
#define IN_PLACE ((void*)1)
int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Abort(word, int);
int MPI_Send(const void*, int, word, int, int, word);
int MPI_Send_c(const void*, int64_t, word, int, int, word);
int MPI_Recv(void*, int, word, int, int, word, void*);
int MPI_Isend(const void*, int, word, int, int, word, word*);
int MPI_Irecv(void*, int, word, int, int, word, word*);
int MPI_Wait(word*, void*);
int MPI_Waitall(int, word*, void*);
int MPI_Test(word*, int*, void*);
int MPI_Type_free(word*);
int MPI_Comm_dup(word, word*);
int MPI_Comm_split(word, int, int, word*);
int MPI_Comm_free(word*);
int MPI_Barrier(word);
int PMPI_Barrier(word);
int MPI_Allreduce(const void*, void*, int, word, word, word);
int MPI_Allgather(const void*, int, word, void*, int, word, word);
int MPI_Alltoallv(const void*, const int*, const int*, word, void*, const int*, const int*, word,
                  word);
int MPI_File_open(word, const char*, int, word, word*);
int MPI_File_write_at_all(word, int64_t, const void*, int, word, void*);
int MPI_File_close(word*);

static char buffer[4096];

static void messages(void) {
  word derived = 0x5000;
  MPI_Send(buffer, 10, DOUBLE, 3, 7, WORLD);
  MPI_Send_c(buffer, (int64_t)1 << 33, BYTE, 2, 8, WORLD);
  MPI_Send(buffer, 2, derived, 0, 1, WORLD);
  MPI_Recv(buffer, 100, BYTE, -1, -1, WORLD, NULL);
  if (MPI_Send(buffer, 10, 0xbad, 99, 7, WORLD) != 6) exit(3);
}
static void requests(void) {
  word request[2], derived = 0x5000;
  char statuses[2][32];
  MPI_Isend(buffer, 2, derived, 3, 4, WORLD, &request[0]);
  MPI_Irecv(buffer, 100, BYTE, -1, -1, WORLD, &request[1]);
  MPI_Type_free(&derived);
  MPI_Waitall(2, request, statuses);
  MPI_Irecv(buffer, 50, BYTE, 2, 5, WORLD, &request[0]);
  for (int flag = 0; !flag;) MPI_Test(&request[0], &flag, NULL);
  MPI_Irecv(buffer, 60, BYTE, 2, 5, WORLD, &request[0]);
  MPI_Wait(&request[0], NULL);
}
static void collectives(void) {
  word made = 0, none = 0;
  int counts[4] = {1, 2, 3, 4}, at[4] = {0};
  MPI_Barrier(WORLD);
  MPI_Allreduce(buffer, buffer, 10, DOUBLE, 0, WORLD);
  MPI_Allgather(IN_PLACE, 77, 0xbad, buffer, 3, DOUBLE, WORLD);
  MPI_Alltoallv(buffer, counts, at, DOUBLE, buffer, counts, at, DOUBLE, WORLD);
  MPI_Comm_dup(WORLD, &made);
  MPI_Barrier(made);
  MPI_Send(buffer, 1, BYTE, 1, 0, made);
  MPI_Comm_free(&made);
  MPI_Comm_split(WORLD, -1, 0, &none);
  MPI_Comm_split(WORLD, 1, 0, &made);
  MPI_Barrier(made);
  PMPI_Barrier(WORLD);
}
static void files(void) {
  word file = 0;
  if (MPI_File_open(WORLD, "missing/file", 0, 0, &file) != 7) exit(4);
  MPI_File_open(WORLD, "file", 0, 0, &file);
  MPI_File_write_at_all(file, 100, buffer, 24, BYTE, NULL);
  MPI_File_close(&file);
}
static void* sends(void* number) {
  for (int i = 0; i < 1000; i++) MPI_Send(buffer, 1, BYTE, 2, (int)(intptr_t)number, WORLD);
  return NULL;
}
static void threads(void) {
  pthread_t all[4];
  for (intptr_t i = 0; i < 4; i++) pthread_create(&all[i], NULL, sends, (void*)i);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}
static void forks(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    FILE* out = fopen("child", "w");
    fclose(out);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  MPI_Barrier(WORLD);
}

int main(int argc, char** argv) {
  START();
  MPI_Init(&argc, &argv);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "messages") == 0) messages();
    if (strcmp(argv[i], "requests") == 0) requests();
    if (strcmp(argv[i], "collectives") == 0) collectives();
    if (strcmp(argv[i], "files") == 0) files();
    if (strcmp(argv[i], "threads") == 0) threads();
    if (strcmp(argv[i], "forks") == 0) forks();
    if (strcmp(argv[i], "kill") == 0) kill(getpid(), 9);
    if (strcmp(argv[i], "abort") == 0) MPI_Abort(WORLD, 3);
  }
  MPI_Finalize();
  return 0;
}
