// NCCL's collectives, sends and receives, and groups.
#include "libraries/nccl/api.hpp"
#include "libraries/nccl/reduce.hpp"

namespace vgpu::nccl {
namespace {

/// What a program passes to a call.
struct Arguments {
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;  // ncclSum where there is none
  int peer;        // root or other rank; -1 where there is none
};

void check_numbers(const Arguments& arguments, int ranks) {
  const auto& [kind, send, receive, count, type, op, peer] = arguments;
  if (size_of(type) == 0) {
    throw Failure(ncclInvalidArgument, "virtual NCCL does not know the data type " + std::to_string(type));
  }
  if (op < ncclSum || op > ncclAvg) {
    throw Failure(ncclInvalidArgument, "virtual NCCL does not know the reduction " + std::to_string(op));
  }
  const bool has_peer =
      kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kSend || kind == Kind::kReceive;
  if (has_peer && (peer < 0 || peer >= ranks)) {
    throw Failure(ncclInvalidArgument,
                  "there is no rank " + std::to_string(peer) + " of " + std::to_string(ranks));
  }
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size_of(type) * ranks, &bytes)) {
    throw Failure(ncclInvalidArgument,
                  std::to_string(count) + " elements for each rank have more bytes than there are addresses");
  }
}

/// NCCL's pointer check (memory of the communicator's GPU, or pinned), and that it is large enough.
void check_buffer(Runtime& runtime, const char* name, const void* pointer, std::size_t bytes, int device) {
  if (bytes == 0) return;
  const auto refuse = [&](const std::string& why) {
    throw Failure(ncclInvalidArgument, std::string(name) + " " + why);
  };
  if (pointer == nullptr) refuse("is null");
  const Allocation* allocation = runtime.memory().find(pointer);
  if (allocation == nullptr) {
    refuse(runtime.memory().reserves(pointer) ? "is no memory: it lies " + runtime.memory().locate(pointer)
                                              : "is ordinary host memory");
  }
  if (allocation->kind == MemoryKind::kDevice && allocation->device != device) {
    refuse("lies on GPU " + std::to_string(allocation->device) + ", the communicator is on GPU " +
           std::to_string(device));
  }
  const auto* begin = static_cast<const std::byte*>(pointer);
  const std::size_t room = allocation->bytes - static_cast<std::size_t>(begin - allocation->begin);
  if (bytes > room) {
    refuse("has room for " + std::to_string(room) + " bytes, and the call needs " + std::to_string(bytes) +
           "; it lies " + runtime.memory().locate(pointer));
  }
}

/// Buffers may only meet as NCCL's in-place calls have it.
void check_in_place(const Call& call) {
  const std::byte *send = call.send, *receive = call.receive;
  if (send == nullptr || receive == nullptr) return;
  if (!(send < receive + call.receive_bytes() && receive < send + call.send_bytes())) return;
  const std::size_t own = call.rank * call.bytes();
  bool in_place = send == receive;
  if (call.kind == Kind::kAllGather) in_place = send == receive + own;
  if (call.kind == Kind::kReduceScatter) in_place = receive == send + own;
  if (!in_place) {
    throw Failure(
        ncclInvalidArgument,
        "sendbuff and recvbuff overlap, and not as in an in-place call (" +
            std::string(call.kind == Kind::kAllGather       ? "sendbuff == recvbuff + rank * sendcount"
                        : call.kind == Kind::kReduceScatter ? "recvbuff == sendbuff + rank * recvcount"
                                                            : "sendbuff == recvbuff") +
            ")");
  }
}

void make_call(Runtime& runtime, const Arguments& arguments, ncclComm_t handle, cudaStream_t stream) {
  const auto found = communicator(runtime, handle);
  if (found->finalized) throw Failure(ncclInvalidUsage, "the communicator is finalized");
  const int ranks = found->clique->ranks();
  check_numbers(arguments, ranks);
  const bool at_root = arguments.peer == found->rank;
  const bool sends = arguments.kind != Kind::kBroadcast || at_root;
  const bool receives = arguments.kind != Kind::kReduce || at_root;
  Call call{arguments.kind,
            sends ? static_cast<const std::byte*>(arguments.send) : nullptr,
            receives ? static_cast<std::byte*>(arguments.receive) : nullptr,
            arguments.count,
            arguments.type,
            arguments.op,
            arguments.peer,
            found->rank,
            ranks,
            hb::call_site(),
            runtime.host().number(),
            group(runtime).depth > 0};
  const std::size_t all = call.bytes() * ranks;
  if (sends && call.kind != Kind::kReceive) {
    check_buffer(runtime, "sendbuff", call.send, call.kind == Kind::kReduceScatter ? all : call.bytes(),
                 found->device);
  }
  if (receives && call.kind != Kind::kSend) {
    check_buffer(runtime, "recvbuff", call.receive, call.kind == Kind::kAllGather ? all : call.bytes(),
                 found->device);
  }
  check_in_place(call);
  Group& mine = group(runtime);
  if (mine.depth == 0) {
    enqueue(runtime, {{found, stream, call}});
  } else if (mine.setups.empty()) {
    mine.calls.push_back({found, stream, call});
  } else {
    throw Failure(ncclInvalidUsage, "a group that makes communicators cannot hold other calls");
  }
}

ncclResult_t call(const Arguments& arguments, ncclComm_t comm, cudaStream_t stream) {
  return nccl::api_call(name_of(arguments.kind),
                        [&](Runtime& runtime) { make_call(runtime, arguments, comm, stream); });
}

void end_group(Runtime& runtime) {
  Group& mine = group(runtime);
  if (mine.depth == 0) throw Failure(ncclInvalidUsage, "there is no group: ncclGroupStart() was not called");
  if (--mine.depth > 0) return;
  const Group ended = std::exchange(mine, {});
  if (ended.failure != ncclSuccess) {
    throw Failure(ended.failure,
                  "nothing of the group was done, since a call in it failed: " + ended.sentence);
  }
  set_up(runtime, ended.setups);
  enqueue(runtime, ended.calls);
}

}  // namespace
}  // namespace vgpu::nccl

using namespace vgpu;
using namespace vgpu::nccl;

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, std::size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::kAllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, -1}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, std::size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return call({Kind::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, -1}, comm, stream);
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::kAllReduce, sendbuff, recvbuff, count, datatype, op, -1}, comm, stream);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::kBroadcast, sendbuff, recvbuff, count, datatype, ncclSum, root}, comm, stream);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::kReduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

ncclResult_t ncclSend(const void* sendbuff, std::size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::kSend, sendbuff, nullptr, count, datatype, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* recvbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call({Kind::kReceive, nullptr, recvbuff, count, datatype, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclGroupStart() {
  return nccl::api_call("ncclGroupStart", [](Runtime& runtime) { ++group(runtime).depth; });
}

ncclResult_t ncclGroupEnd() {
  return nccl::api_call("ncclGroupEnd", [](Runtime& runtime) { end_group(runtime); });
}
