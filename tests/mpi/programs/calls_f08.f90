program f
  use mpi_f08
  implicit none
  integer :: rank, size, ierr
  type(MPI_Request) :: req(2)
  type(MPI_File) :: fh
  type(MPI_Status) :: st, sts(2)
  double precision :: a(100), b(100)
  integer(kind=MPI_OFFSET_KIND) :: off
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  a = rank
  call MPI_Allreduce(a, b, 100, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, b, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 2, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  call MPI_Irecv(b, 50, MPI_DOUBLE_PRECISION, mod(rank+size-1,size), 5, MPI_COMM_WORLD, req(1))
  call MPI_Isend(a, 20, MPI_DOUBLE_PRECISION, mod(rank+1,size), 5, MPI_COMM_WORLD, req(2))
  call MPI_Waitall(2, req, sts)
  call MPI_Sendrecv(a, 3, MPI_DOUBLE_PRECISION, mod(rank+1,size), 6, b, 9, MPI_DOUBLE_PRECISION, mod(rank+size-1,size), 6, MPI_COMM_WORLD, st)
  call MPI_File_open(MPI_COMM_WORLD, 'fort.bin   ', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, fh)
  off = rank * 800
  call MPI_File_write_at_all(fh, off, a, 100, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
  call MPI_File_read_at(fh, off, b, 50, MPI_DOUBLE_PRECISION, st)
  call MPI_File_close(fh)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize()
end program
