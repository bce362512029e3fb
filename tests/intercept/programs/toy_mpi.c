/* A library that looks like MPI to a tracer, in one process that believes to be rank 1 of 4: handles and status as the
   standard ABI has them. It aborts if it is asked anything while it is not initialized, or about a handle that is not one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uintptr_t word;
#define WORLD 0x101
#define NO_COMM 0x100
#define BYTE 0x247
#define NO_REQUEST 0x180
#define DERIVED 0x5000 /* of 24 bytes, until it is freed */

struct status {
  int source, tag, error, internal[5];
};
static int initialized, finalized, derived_is_freed;
static int files[8];
static word comms = 0x9000;

static void must(int fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "toy_mpi: %s\n", what);
  abort();
}
static int is_comm(word comm) { return comm == WORLD || (comm >= 0x9000 && comm < comms); }
#define EXPORT(name, parameters, ...)                                                           \
  __attribute__((visibility("default"))) int PMPI_##name parameters __VA_ARGS__ __attribute__(( \
      visibility("default"), weak, alias("PMPI_" #name))) int MPI_##name parameters;

EXPORT(Abi_get_version, (int* major, int* minor), {
  *major = 1, *minor = 0;
  return 0;
})
EXPORT(Init, (int* argc, char*** argv), {
  (void)argc, (void)argv;
  initialized = 1;
  return 0;
})
EXPORT(Initialized, (int* flag), {
  *flag = initialized;
  return 0;
})
EXPORT(Finalized, (int* flag), {
  *flag = finalized;
  return 0;
})
EXPORT(Finalize, (void), {
  finalized = 1;
  return 0;
})
EXPORT(Type_size, (word type, int* size), {
  must(initialized && !finalized, "asked for a size while not initialized");
  must(type == BYTE || type == 0x241 || (type == DERIVED && !derived_is_freed),
       "asked for the size of no type");
  *size = type == BYTE ? 1 : type == DERIVED ? 24 : 8;
  return 0;
})
EXPORT(Type_free, (word * type), {
  derived_is_freed = 1;
  *type = 0x200;
  return 0;
})
EXPORT(Comm_rank, (word comm, int* rank), {
  must(initialized && !finalized && is_comm(comm), "asked for the rank in no communicator");
  *rank = 1;
  return 0;
})
EXPORT(Comm_size, (word comm, int* size), {
  must(initialized && !finalized && is_comm(comm), "asked for the size of no communicator");
  *size = comm == WORLD ? 4 : 2;
  return 0;
})
EXPORT(Comm_test_inter, (word comm, int* flag), {
  must(is_comm(comm), "test_inter");
  *flag = 0;
  return 0;
})
EXPORT(Comm_group, (word comm, word* group), {
  must(is_comm(comm), "group");
  *group = comm;
  return 0;
})
EXPORT(Group_free, (word * group), {
  *group = 0;
  return 0;
})
/* The communicators beside MPI_COMM_WORLD have its ranks 1 and 3. */
EXPORT(Group_translate_ranks, (word from, int n, const int* ranks, word to, int* out), {
  must(to == WORLD, "translate");
  for (int i = 0; i < n; i++) out[i] = from == WORLD ? ranks[i] : 1 + 2 * ranks[i];
  return 0;
})
EXPORT(Get_count, (const struct status* status, word type, int* count), {
  must(type == BYTE, "get_count");
  *count = status->internal[0];
  return 0;
})
EXPORT(Comm_dup, (word comm, word* made), {
  must(is_comm(comm), "dup");
  *made = comms++;
  return 0;
})
EXPORT(Comm_split, (word comm, int color, int key, word* made), {
  (void)key;
  must(is_comm(comm), "split");
  *made = color < 0 ? NO_COMM : comms++;
  return 0;
})
EXPORT(Comm_free, (word * comm), {
  *comm = NO_COMM;
  return 0;
})
/* The peer 3 does not exist. */
EXPORT(Send, (const void* buffer, int count, word type, int peer, int tag, word comm), {
  (void)buffer, (void)count, (void)type, (void)tag, (void)comm;
  return peer == 99 ? 6 : 0;
})
EXPORT(Send_c, (const void* buffer, int64_t count, word type, int peer, int tag, word comm), {
  (void)buffer, (void)count, (void)type, (void)peer, (void)tag, (void)comm;
  return 0;
})
/* Always 16 bytes from rank 2 with tag 5. */
static void arrived(struct status* status) {
  if (status == NULL) return;
  memset(status, 0, sizeof *status);
  status->source = 2, status->tag = 5, status->internal[0] = 16;
}
EXPORT(Recv,
       (void* buffer, int count, word type, int peer, int tag, word comm, struct status* status), {
         (void)buffer, (void)count, (void)type, (void)peer, (void)tag, (void)comm;
         arrived(status);
         return 0;
       })
/* All requests have the same handle, as those that are complete at once. */
EXPORT(Isend,
       (const void* buffer, int count, word type, int peer, int tag, word comm, word* request), {
         (void)buffer, (void)count, (void)type, (void)peer, (void)tag, (void)comm;
         *request = 0x7000;
         return 0;
       })
EXPORT(Irecv, (void* buffer, int count, word type, int peer, int tag, word comm, word* request), {
  (void)buffer, (void)count, (void)type, (void)peer, (void)tag, (void)comm;
  *request = 0x7000;
  return 0;
})
EXPORT(Wait, (word * request, struct status* status), {
  arrived(status);
  *request = NO_REQUEST;
  return 0;
})
EXPORT(Waitall, (int n, word* requests, struct status* statuses), {
  for (int i = 0; i < n; i++) {
    requests[i] = NO_REQUEST;
    if (statuses != NULL) arrived(&statuses[i]);
  }
  return 0;
})
static int tests;
EXPORT(Test, (word * request, int* flag, struct status* status), {
  *flag = ++tests % 4 == 0;
  if (*flag) arrived(status), *request = NO_REQUEST;
  return 0;
})
EXPORT(Barrier, (word comm), {
  must(is_comm(comm), "barrier");
  return 0;
})
EXPORT(Allreduce, (const void* from, void* to, int count, word type, word op, word comm), {
  (void)from, (void)to, (void)count, (void)type, (void)op, (void)comm;
  return 0;
})
EXPORT(Allgather,
       (const void* from, int count, word type, void* to, int count2, word type2, word comm), {
         (void)from, (void)count, (void)type, (void)to, (void)count2, (void)type2, (void)comm;
         return 0;
       })
EXPORT(Alltoallv,
       (const void* from, const int* counts, const int* at, word type, void* to, const int* counts2,
        const int* at2, word type2, word comm),
       {
         (void)from, (void)counts, (void)at, (void)type, (void)to, (void)counts2, (void)at2,
             (void)type2, (void)comm;
         return 0;
       })
EXPORT(File_open, (word comm, const char* name, int mode, word info, word* file), {
  (void)comm, (void)mode, (void)info;
  FILE* made = fopen(name, "w+");
  if (made == NULL) return 7;
  files[1] = dup(fileno(made));
  fclose(made);
  *file = (word)&files[1];
  return 0;
})
EXPORT(File_write_at_all,
       (word file, int64_t offset, const void* buffer, int count, word type, struct status* status),
       {
         (void)type, (void)status;
         MPI_Barrier(WORLD); /* as a library does: not a call of the program */
         return pwrite(*(int*)file, buffer, (size_t)count, offset) == count ? 0 : 9;
       })
EXPORT(File_close, (word * file), {
  close(*(int*)*file);
  *file = 0x118;
  return 0;
})
EXPORT(Abort, (word comm, int code), {
  (void)comm;
  _exit(code);
})
