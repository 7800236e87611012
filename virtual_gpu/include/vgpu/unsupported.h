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
VGPU_UNSUPPORTED(cudaGraphAddMemsetNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddHostNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddEmptyNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddChildGraphNode, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaGraphAddDependencies, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED(cudaDestroyTextureObject, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaDestroySurfaceObject, "there are no surfaces; write the memory")
VGPU_UNSUPPORTED(cudaUnbindTexture, "there are no textures; read the memory")
VGPU_UNSUPPORTED(cudaFreeArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaMalloc3DArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaMemcpy2DToArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaMemcpyFromArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED(cudaMemset3D, "use cudaMemset2D for each layer")
VGPU_UNSUPPORTED(make_cudaExtent, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED(make_cudaPitchedPtr, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED(cudaMemPoolSetAttribute, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED(cudaIpcGetEventHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(cudaIpcOpenEventHandle, "all GPUs are in one process")
VGPU_UNSUPPORTED(__shfl, "it is gone since Volta; use __shfl_sync")
VGPU_UNSUPPORTED(__shfl_up, "it is gone since Volta; use __shfl_up_sync")
VGPU_UNSUPPORTED(__shfl_down, "it is gone since Volta; use __shfl_down_sync")
VGPU_UNSUPPORTED(__shfl_xor, "it is gone since Volta; use __shfl_xor_sync")
VGPU_UNSUPPORTED(__any, "it is gone since Volta; use __any_sync")
VGPU_UNSUPPORTED(__all, "it is gone since Volta; use __all_sync")
VGPU_UNSUPPORTED(__ballot, "it is gone since Volta; use __ballot_sync")
#undef VGPU_UNSUPPORTED

// Called with the type of an element: tex2D<float>(...).
#define VGPU_UNSUPPORTED_OF(name, instead) \
  template <class T, class... Arguments>   \
  __attribute__((error(#name " is not supported on virtual GPUs: " instead))) T name(Arguments&&...);
VGPU_UNSUPPORTED_OF(cudaCreateChannelDesc, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED_OF(tex1Dfetch, "there are no textures; read the memory")
VGPU_UNSUPPORTED_OF(tex1D, "there are no textures; read the memory")
VGPU_UNSUPPORTED_OF(tex2D, "there are no textures; read the memory")
VGPU_UNSUPPORTED_OF(tex3D, "there are no textures; read the memory")
VGPU_UNSUPPORTED_OF(surf2Dread, "there are no surfaces; read the memory")
VGPU_UNSUPPORTED_OF(surf2Dwrite, "there are no surfaces; write the memory")
#undef VGPU_UNSUPPORTED_OF

// Their types, refused where a program names them.
#define VGPU_UNSUPPORTED_TYPE(name, instead) \
  struct __attribute__((unavailable("not supported on virtual GPUs: " instead))) name {};
VGPU_UNSUPPORTED_TYPE(cudaTextureObject_t, "there are no textures; read the memory")
VGPU_UNSUPPORTED_TYPE(cudaSurfaceObject_t, "there are no surfaces; write the memory")
VGPU_UNSUPPORTED_TYPE(cudaArray_t, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED_TYPE(cudaArray, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED_TYPE(cudaChannelFormatDesc, "there are no textures; use cudaMalloc")
VGPU_UNSUPPORTED_TYPE(cudaResourceDesc, "there are no textures; read the memory")
VGPU_UNSUPPORTED_TYPE(cudaTextureDesc, "there are no textures; read the memory")
VGPU_UNSUPPORTED_TYPE(cudaExtent, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED_TYPE(cudaPitchedPtr, "use cudaMalloc with pitches of your own")
VGPU_UNSUPPORTED_TYPE(cudaMemcpy3DParms, "use cudaMemcpy2D for each layer")
VGPU_UNSUPPORTED_TYPE(cudaMemPool_t, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED_TYPE(cudaMemPoolProps, "use cudaMallocAsync, without pools")
VGPU_UNSUPPORTED_TYPE(cudaIpcMemHandle_t, "all GPUs are in one process")
VGPU_UNSUPPORTED_TYPE(cudaIpcEventHandle_t, "all GPUs are in one process")
VGPU_UNSUPPORTED_TYPE(cudaGraphicsResource, "there is no display")
VGPU_UNSUPPORTED_TYPE(cudaKernelNodeParams, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED_TYPE(cudaMemsetParams, "capture a stream: cudaStreamBeginCapture")
VGPU_UNSUPPORTED_TYPE(cudaHostNodeParams, "capture a stream: cudaStreamBeginCapture")
#undef VGPU_UNSUPPORTED_TYPE

__attribute__((
    error("__activemask is not supported on virtual GPUs: name the lanes that you mean"))) unsigned int
__activemask();
