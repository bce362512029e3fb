/* Prints the wall time of an MPI_Allreduce of 8 KiB on rank 0 in microseconds, and the processor time of an MPI_Send to
   nobody in nanoseconds: the fastest of several bursts. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double processor(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  enum { kBursts = 40, kCalls = 2000 };
  double from[1024] = {0}, to[1024], best = 1e12;
  int rank, rounds = argc > 1 ? atoi(argv[1]) : 2000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < rounds / 10; i++)
    MPI_Allreduce(from, to, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  for (int i = 0; i < rounds; i++)
    MPI_Allreduce(from, to, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double wall = (MPI_Wtime() - begin) / rounds * 1e6;
  for (int i = 0; i < kBursts; i++) {
    double used = processor();
    for (int k = 0; k < kCalls; k++)
      MPI_Send(from, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    used = (processor() - used) / kCalls;
    if (used < best) best = used;
  }
  if (rank == 0) printf("%.3f %.1f\n", wall, best);
  MPI_Finalize();
  return 0;
}
