#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank, size, provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double out[100] = {0}, in[200], sum[100];
  if (rank % 2 == 0) {
    MPI_Send(out, 100, MPI_DOUBLE, right, 7, MPI_COMM_WORLD);
    MPI_Recv(in, 200, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, 200, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 50, MPI_DOUBLE, right, 8, MPI_COMM_WORLD);
  }
  MPI_Request r[2];
  MPI_Irecv(in, 100, MPI_INT, left, 9, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, 30, MPI_INT, right, 9, MPI_COMM_WORLD, &r[1]);
  MPI_Status st[2];
  MPI_Waitall(2, r, st);
  MPI_Allreduce(out, sum, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, sum, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Bcast(in, 25, MPI_INT, 0, half);
  int hr;
  MPI_Comm_rank(half, &hr);
  int hs;
  MPI_Comm_size(half, &hs);
  MPI_Sendrecv(out, 3, MPI_INT, (hr + 1) % hs, 1, in, 10, MPI_INT, (hr + hs - 1) % hs, 1, half,
               MPI_STATUS_IGNORE);
  MPI_Request b;
  MPI_Ibarrier(half, &b);
  MPI_Wait(&b, MPI_STATUS_IGNORE);
  MPI_Comm_free(&half);
  int *counts = malloc(sizeof(int) * size), *displs = malloc(sizeof(int) * size);
  for (int i = 0; i < size; i++) counts[i] = i + 1, displs[i] = i * 10;
  char cb[4000], cr[4000];
  int* rc = malloc(sizeof(int) * size);
  for (int i = 0; i < size; i++) rc[i] = rank + 1;
  MPI_Alltoallv(cb, counts, displs, MPI_CHAR, cr, rc, displs, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Alltoall(cb, 5, MPI_INT, cr, 5, MPI_INT, MPI_COMM_WORLD);
  MPI_Request p;
  MPI_Send_init(out, 4, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &p);
  for (int i = 0; i < 3; i++) {
    MPI_Request q;
    MPI_Irecv(in, 4, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &q);
    MPI_Start(&p);
    int flag = 0;
    while (!flag) MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&p, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&p);
  MPI_File f;
  char name[256];
  snprintf(name, sizeof name, "%s", argc > 1 ? argv[1] : "out.bin");
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  MPI_File_write_at_all(f, rank * 4000L, cb, 4000, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_seek(f, rank * 4000L, MPI_SEEK_SET);
  MPI_File_read(f, cr, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_read(f, cr, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_Request w;
  MPI_File_iwrite_at(f, rank * 4000L, cb, 100, MPI_INT, &w);
  MPI_Wait(&w, MPI_STATUS_IGNORE);
  MPI_File_set_view(f, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_read_at(f, 10, cr, 5, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_write_at_all_begin(f, rank * 100, cb, 7, MPI_INT);
  MPI_Status s;
  MPI_File_write_at_all_end(f, cb, &s);
  MPI_File_close(&f);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
