// What programs ask for and virtual GPUs do not have: refused by name, with a way round it, where the
// compiler would only say that a name is unknown. Calls are refused when code is generated for them.
#pragma once

#include "types.h"

#define VGPU_UNSUPPORTED(name, instead)                                                         \
  template <class... Arguments>                                                                 \
  __attribute__((error(#name " is not supported on virtual GPUs: " instead))) cudaError_t name( \
      Arguments&&...);

VGPU_UNSUPPORTED(cudaMallocManaged, "use cudaMalloc, and copy")
VGPU_UNSUPPORTED(cudaMemPrefetchAsync, "there is no managed memory")
VGPU_UNSUPPORTED(cudaMemAdvise, "there is no managed memory")
VGPU_UNSUPPORTED(cudaMallocAsync, "use cudaMalloc before the streams begin")
VGPU_UNSUPPORTED(cudaFreeAsync, "use cudaFree once the streams are done")
VGPU_UNSUPPORTED(cudaMallocPitch, "use cudaMalloc with a pitch of your own")
VGPU_UNSUPPORTED(cudaMalloc3D, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED(cudaMallocArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaCreateTextureObject, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaCreateSurfaceObject, "there are no surfaces; write the memory")
VGPU_UNSUPPORTED(cudaHostGetDevicePointer, "pinned memory has one address for the host and the GPUs")
VGPU_UNSUPPORTED(cudaMemcpy3D, "use cudaMemcpy2D for each layer")
VGPU_UNSUPPORTED(cudaMemcpy3DAsync, "use cudaMemcpy2DAsync for each layer")
VGPU_UNSUPPORTED(cudaMemcpyToSymbol, "pass the values as a kernel argument")
VGPU_UNSUPPORTED(cudaMemcpyFromSymbol, "pass the memory as a kernel argument")
VGPU_UNSUPPORTED(cudaMemset2D, "use cudaMemset for each row")
VGPU_UNSUPPORTED(cudaLaunchKernel, "launch with <<<...>>>")
VGPU_UNSUPPORTED(cudaLaunchKernelEx, "launch with <<<...>>>")
VGPU_UNSUPPORTED(cudaLaunchCooperativeKernel, "end the kernel where the grid has to meet")
VGPU_UNSUPPORTED(cudaOccupancyMaxPotentialBlockSize, "choose the size of a block yourself")
VGPU_UNSUPPORTED(cudaStreamAddCallback, "use cudaLaunchHostFunc")
VGPU_UNSUPPORTED(cudaStreamAttachMemAsync, "there is no managed memory")
VGPU_UNSUPPORTED(cudaIpcGetMemHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(cudaIpcOpenMemHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(cudaGraphCreate, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddKernelNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddMemcpyNode, "capture a stream: cudaStreamBeginCapture")
#undef VGPU_UNSUPPORTED

__attribute__((
    error("__activemask is not supported on virtual GPUs: name the lanes that you mean"))) unsigned int
__activemask();
