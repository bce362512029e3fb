import array

from mpi4py import MPI

c = MPI.COMM_WORLD
r, n = c.rank, c.size
a = array.array("d", [r] * 1000)
b = array.array("d", [0] * 1000)
c.Allreduce(a, b)
c.allreduce(3)
c.Barrier()
q = [c.Isend(a, (r + 1) % n, 4), c.Irecv(b, MPI.ANY_SOURCE, 4)]
MPI.Request.Waitall(q)
c.bcast({"a": 7})
d = c.Dup()
d.Barrier()
d.Free()
f = MPI.File.Open(c, "m.bin", MPI.MODE_CREATE | MPI.MODE_RDWR)
f.Write_at_all(r * 8000, a)
f.Read_at(0, b)
f.Close()
if r == 0:
    print(
        MPI.Get_library_version().splitlines()[0][:70],
        MPI.Get_abi_version() if hasattr(MPI, "Get_abi_version") else "",
    )
