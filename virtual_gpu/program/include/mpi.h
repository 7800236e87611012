// Refused where it is used.
#pragma once

#include <vgpu/unsupported_libraries.h>

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Request = int;
struct MPI_Status {};
enum {
  MPI_SUCCESS,
  MPI_COMM_WORLD,
  MPI_INT,
  MPI_FLOAT,
  MPI_DOUBLE,
  MPI_CHAR,
  MPI_BYTE,
  MPI_SUM,
  MPI_MAX,
  MPI_MIN
};
VGPU_NO_FUNCTIONS(
    int, "MPI is not supported in programs of one file: use one host thread for each GPU, as with OpenMP",
    MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Comm_rank, MPI_Comm_size, MPI_Send, MPI_Recv, MPI_Isend,
    MPI_Irecv, MPI_Sendrecv, MPI_Wait, MPI_Waitall, MPI_Bcast, MPI_Reduce, MPI_Allreduce, MPI_Allgather,
    MPI_Gather, MPI_Scatter, MPI_Barrier, MPI_Abort)
