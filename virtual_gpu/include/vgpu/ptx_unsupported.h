// Functions of cuda::ptx that virtual GPUs do not support: refused by name at the call, as in unsupported.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda::ptx {

#define VGPU_UNSUPPORTED_PTX(name, instead)                                                            \
  template <class... Arguments>                                                                        \
  __attribute__((error("cuda::ptx::" #name " is not supported on virtual GPUs: " instead))) void name( \
      Arguments&&...);

VGPU_UNSUPPORTED_PTX(st_async, "use mbarrier_arrive for words, cp_async_bulk_tensor with a mask for data")
VGPU_UNSUPPORTED_PTX(red_async, "use mbarrier_arrive, and add in one block")
VGPU_UNSUPPORTED_PTX(mbarrier_expect_tx, "use mbarrier_arrive_expect_tx")
VGPU_UNSUPPORTED_PTX(mbarrier_arrive_no_complete, "use mbarrier_arrive")
VGPU_UNSUPPORTED_PTX(cp_async_mbarrier_arrive, "use cuda::pipeline for copies of threads")
VGPU_UNSUPPORTED_PTX(cp_async_mbarrier_arrive_noinc, "use cuda::pipeline for copies of threads")
VGPU_UNSUPPORTED_PTX(cp_async_bulk_cp_mask, "copy whole rows")
VGPU_UNSUPPORTED_PTX(cp_reduce_async_bulk, "use cp_reduce_async_bulk_tensor, or copy, and add in a kernel")
VGPU_UNSUPPORTED_PTX(fence, "use __threadfence or cuda::atomic_ref")
VGPU_UNSUPPORTED_PTX(fence_proxy_alias, "no memory has two addresses")
VGPU_UNSUPPORTED_PTX(fence_proxy_async_generic_sync_restrict, "use fence_proxy_async")
VGPU_UNSUPPORTED_PTX(fence_proxy_tensormap_generic, "make tensor maps on the host")
VGPU_UNSUPPORTED_PTX(fence_sync_restrict, "let barrier_cluster_arrive release")
VGPU_UNSUPPORTED_PTX(tensormap_cp_fenceproxy, "make tensor maps on the host")
VGPU_UNSUPPORTED_PTX(tensormap_replace_global_address, "make tensor maps on the host")
VGPU_UNSUPPORTED_PTX(tensormap_replace_global_dim, "make tensor maps on the host")
VGPU_UNSUPPORTED_PTX(tensormap_replace_global_stride, "make tensor maps on the host")
VGPU_UNSUPPORTED_PTX(multimem_ld_reduce, "there is no memory of several GPUs at once")
VGPU_UNSUPPORTED_PTX(multimem_red, "there is no memory of several GPUs at once")
VGPU_UNSUPPORTED_PTX(multimem_st, "there is no memory of several GPUs at once")
VGPU_UNSUPPORTED_PTX(clusterlaunchcontrol_try_cancel, "it is Blackwell's")
VGPU_UNSUPPORTED_PTX(tcgen05_alloc, "it is Blackwell's")
VGPU_UNSUPPORTED_PTX(tcgen05_mma, "it is Blackwell's")
VGPU_UNSUPPORTED_PTX(st_bulk, "it is Blackwell's")
VGPU_UNSUPPORTED_PTX(elect_sync, "use elect_one of overlap/gpu/wgmma.hpp")
VGPU_UNSUPPORTED_PTX(setmaxnreg_inc, "use registers_up of overlap/gpu/wgmma.hpp")
VGPU_UNSUPPORTED_PTX(setmaxnreg_dec, "use registers_down of overlap/gpu/wgmma.hpp")
VGPU_UNSUPPORTED_PTX(get_sreg_clusterid_y, "clusters have one dimension: use get_sreg_clusterid_x")
VGPU_UNSUPPORTED_PTX(get_sreg_cluster_ctaid_x, "use get_sreg_cluster_ctarank")
VGPU_UNSUPPORTED_PTX(get_sreg_cluster_nctaid_x, "use get_sreg_cluster_nctarank")
VGPU_UNSUPPORTED_PTX(get_sreg_is_explicit_cluster, "use get_sreg_cluster_nctarank")
VGPU_UNSUPPORTED_PTX(ld, "use cuda::atomic_ref, or read the memory")
VGPU_UNSUPPORTED_PTX(st, "use cuda::atomic_ref, or write the memory")
#undef VGPU_UNSUPPORTED_PTX

// Unsupported overloads of supported functions.
#define VGPU_UNSUPPORTED_FORM(name, form) \
  __attribute__((error("cuda::ptx::" #name " " form " is not supported on virtual GPUs")))

// At an mbarrier of another block of the cluster.
template <class... Arguments>
VGPU_UNSUPPORTED_FORM(mbarrier_arrive, "with sem_relaxed")
void mbarrier_arrive(sem_relaxed_t, scope_cluster_t, space_cluster_t, Arguments&&...);
template <class Sem, class... Arguments>
VGPU_UNSUPPORTED_FORM(mbarrier_arrive_expect_tx, "in a cluster")
void mbarrier_arrive_expect_tx(Sem, scope_cluster_t, space_cluster_t, Arguments&&...);
// Without order.
template <dot_scope Scope, class... Arguments>
VGPU_UNSUPPORTED_FORM(mbarrier_arrive, "with sem_relaxed")::std::uint64_t
    mbarrier_arrive(sem_relaxed_t, scope_t<Scope>, space_shared_t, Arguments&&...);
template <dot_scope Scope, class... Arguments>
VGPU_UNSUPPORTED_FORM(mbarrier_arrive_expect_tx, "with sem_relaxed")::std::uint64_t
    mbarrier_arrive_expect_tx(sem_relaxed_t, scope_t<Scope>, space_shared_t, Arguments&&...);
// From one block's shared memory to another's; to several blocks; to shared memory by its narrower name,
// which needs CUDA 12.8.
template <class... Arguments>
VGPU_UNSUPPORTED_FORM(cp_async_bulk, "in a cluster")
void cp_async_bulk(space_cluster_t, space_shared_t, Arguments&&...);
template <class... Arguments>
VGPU_UNSUPPORTED_FORM(cp_async_bulk, "to several blocks (multicast)")
void cp_async_bulk(space_cluster_t, space_global_t, void*, const void*, const ::std::uint32_t&,
                   ::std::uint64_t*, const ::std::uint16_t&);
template <class... Arguments>
VGPU_UNSUPPORTED_FORM(cp_async_bulk, "with space_shared as its destination (use space_cluster)")
void cp_async_bulk(space_shared_t, space_global_t, Arguments&&...);
template <class... Arguments>
VGPU_UNSUPPORTED_FORM(cp_async_bulk_tensor, "with space_shared as its destination (use space_cluster)")
void cp_async_bulk_tensor(space_shared_t, space_global_t, Arguments&&...);
template <::std::size_t Rank>
requires(Rank > 3) VGPU_UNSUPPORTED_FORM(cp_async_bulk_tensor, "with more than three dimensions")
void cp_async_bulk_tensor(space_cluster_t, space_global_t, void*, const void*, const ::std::int32_t (&)[Rank],
                          ::std::uint64_t*);
template <::std::size_t Rank>
requires(Rank > 3) VGPU_UNSUPPORTED_FORM(cp_async_bulk_tensor, "with more than three dimensions")
void cp_async_bulk_tensor(space_global_t, space_shared_t, const void*, const ::std::int32_t (&)[Rank],
                          const void*);
template <dot_op Op, ::std::size_t Rank>
requires(Op != dot_op::add)
    VGPU_UNSUPPORTED_FORM(cp_reduce_async_bulk_tensor, "with another operation than op_add")
void cp_reduce_async_bulk_tensor(space_global_t, space_shared_t, op_t<Op>, const void*,
                                 const ::std::int32_t (&)[Rank], const void*);
template <dot_op Op, ::std::size_t Rank>
requires(Op == dot_op::add && Rank > 3)
    VGPU_UNSUPPORTED_FORM(cp_reduce_async_bulk_tensor, "with more than three dimensions")
void cp_reduce_async_bulk_tensor(space_global_t, space_shared_t, op_t<Op>, const void*,
                                 const ::std::int32_t (&)[Rank], const void*);
#undef VGPU_UNSUPPORTED_FORM

}  // namespace cuda::ptx
