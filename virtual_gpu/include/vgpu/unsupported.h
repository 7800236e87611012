// Functions that programs use and virtual GPUs do not support: refused by name, with an alternative, instead
// of the compiler's unknown name. Calls are refused when code is generated for them.
#pragma once

#include "types.h"

#define VGPU_UNSUPPORTED(name, instead)                                                         \
  template <class... Arguments>                                                                 \
  __attribute__((error(#name " is not supported on virtual GPUs: " instead))) cudaError_t name( \
      Arguments&&...);

VGPU_UNSUPPORTED(cudaMalloc3D, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED(cudaMallocFromPoolAsync, "use cudaMallocAsync")
VGPU_UNSUPPORTED(cudaMemPoolCreate, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED(cudaDeviceGetDefaultMemPool, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED(cudaDeviceGetMemPool, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED(cudaMallocArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaCreateTextureObject, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaCreateSurfaceObject, "there are no surfaces; write the memory")
VGPU_UNSUPPORTED(cudaMemcpy3D, "use cudaMemcpy2D for each layer")
VGPU_UNSUPPORTED(cudaMemcpy3DAsync, "use cudaMemcpy2DAsync for each layer")
VGPU_UNSUPPORTED(cudaBindTexture, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaBindTextureToArray, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaMemcpyToArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaLaunchCooperativeKernelMultiDevice, "launch a kernel on each GPU")
VGPU_UNSUPPORTED(cudaGraphicsGLRegisterBuffer, "there is no display")
VGPU_UNSUPPORTED(cudaStreamAttachMemAsync, "managed memory is everybody's")
VGPU_UNSUPPORTED(cudaIpcGetMemHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(cudaIpcOpenMemHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(cudaGraphCreate, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddKernelNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddMemcpyNode, "capture a stream: cudaStreamBeginCapture")
#undef VGPU_UNSUPPORTED

__attribute__((
    error("__activemask is not supported on virtual GPUs: name the lanes that you mean"))) unsigned int
__activemask();
