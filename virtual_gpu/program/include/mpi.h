// Refused where it is used.
#pragma once

#include <vgpu/unsupported_libraries.h>

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Op = int;
using MPI_Request = int;
using MPI_Info = int;
struct MPI_Status {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
};
// Not an unnamed enumeration: a template that takes one of its constants is an error that hides the
// sentences.
enum VgpuMpiConstant {
  MPI_SUCCESS,
  MPI_COMM_WORLD,
  MPI_COMM_NULL,
  MPI_COMM_TYPE_SHARED,
  MPI_INFO_NULL,
  MPI_REQUEST_NULL,
  MPI_PROC_NULL,
  MPI_ANY_SOURCE,
  MPI_ANY_TAG,
  MPI_THREAD_SINGLE,
  MPI_THREAD_MULTIPLE,
  MPI_MAX_PROCESSOR_NAME = 256,
  MPI_INT,
  MPI_UNSIGNED,
  MPI_LONG,
  MPI_LONG_LONG,
  MPI_UNSIGNED_LONG,
  MPI_FLOAT,
  MPI_DOUBLE,
  MPI_CHAR,
  MPI_UNSIGNED_CHAR,
  MPI_BYTE,
  MPI_SUM,
  MPI_MAX,
  MPI_MIN
};
inline MPI_Status* const MPI_STATUS_IGNORE = nullptr;
inline MPI_Status* const MPI_STATUSES_IGNORE = nullptr;
inline void* const MPI_IN_PLACE = nullptr;
VGPU_NO_FUNCTIONS(
    int, "MPI is not supported in programs of one file: use one host thread for each GPU, as with OpenMP",
    MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Comm_rank, MPI_Comm_size, MPI_Send, MPI_Recv, MPI_Isend,
    MPI_Irecv, MPI_Sendrecv, MPI_Wait, MPI_Waitall, MPI_Bcast, MPI_Reduce, MPI_Allreduce, MPI_Allgather,
    MPI_Gather, MPI_Scatter, MPI_Barrier, MPI_Abort, MPI_Wtime, MPI_Comm_split, MPI_Comm_split_type,
    MPI_Comm_free, MPI_Get_processor_name, MPI_Ssend, MPI_Alltoall, MPI_Allgatherv, MPI_Gatherv, MPI_Scatterv)
