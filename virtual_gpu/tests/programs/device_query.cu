// The output of device queries, as cuda-samples' helper makes them.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef __DRIVER_TYPES_H__
#error "a header of CUDA's samples would declare no checks"
#endif

template <typename T>
void check(T result, char const* const func, const char* const file, int const line) {
  if (result) {
    fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line,
            static_cast<unsigned int>(result), cudaGetErrorName(result), func);
    exit(EXIT_FAILURE);
  }
}
#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)

inline int gpuGetMaxGflopsDeviceId() {
  int best = 0, best_performance = -1, count = 0;
  checkCudaErrors(cudaGetDeviceCount(&count));
  for (int device = 0; device < count; ++device) {
    int mode = -1, integrated = -1, sms = 0, clock = 0, major = 0, minor = 0;
    checkCudaErrors(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device));
    checkCudaErrors(cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, device));
    checkCudaErrors(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    checkCudaErrors(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    checkCudaErrors(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    checkCudaErrors(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
    if (mode == cudaComputeModeProhibited) continue;
    int performance = sms * (clock / 1000) * (integrated ? 1 : 2);
    if (performance > best_performance) best_performance = performance, best = device;
  }
  return best;
}

int main(int argc, char** argv) {
  int driver = 0, runtime = 0, devices = 0;
  checkCudaErrors(cudaSetDevice(gpuGetMaxGflopsDeviceId()));
  checkCudaErrors(cudaGetDeviceCount(&devices));
  checkCudaErrors(cudaDriverGetVersion(&driver));
  checkCudaErrors(cudaRuntimeGetVersion(&runtime));
  bool ok = devices > 0 && driver / 1000 >= 12 && runtime / 1000 >= 12;
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp p;
    checkCudaErrors(cudaGetDeviceProperties(&p, device));
    printf(
        "Device %d: \"%s\", %d.%d, %.0f MBytes, %d SMs, %zu bytes constant, %zu shared, %d registers, warp "
        "%d\n",
        device, p.name, p.major, p.minor, p.totalGlobalMem / 1048576.0f, p.multiProcessorCount,
        p.totalConstMem, p.sharedMemPerBlock, p.regsPerBlock, p.warpSize);
    printf(
        "  bus %d bits, L2 %d, dims (%d, %d, %d), grid (%d, %d, %d), pitch %zu, ECC %d, unified %d, PCI "
        "%d:%d:%d\n",
        p.memoryBusWidth, p.l2CacheSize, p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2],
        p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2], p.memPitch, p.ECCEnabled, p.unifiedAddressing,
        p.pciDomainID, p.pciBusID, p.pciDeviceID);
    printf("  maps %d, managed %d, concurrent %d, copies %d, integrated %d, cooperative %d, texture %zu\n",
           p.canMapHostMemory, p.managedMemory, p.concurrentKernels, p.asyncEngineCount, p.integrated,
           p.cooperativeLaunch, p.textureAlignment);
    ok = ok && p.major >= 5 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.totalConstMem == 65536 &&
         p.regsPerBlock >= 32768 && p.memoryBusWidth > 0 && p.maxThreadsPerMultiProcessor >= 1024;
    size_t free_bytes = 0, total_bytes = 0;
    checkCudaErrors(cudaSetDevice(device));
    checkCudaErrors(cudaMemGetInfo(&free_bytes, &total_bytes));
    ok = ok && free_bytes <= total_bytes && total_bytes > 0;
  }
  puts(ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}
