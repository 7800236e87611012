#error \
    "cooperative groups are not supported on virtual GPUs: use __syncthreads, __syncwarp and the warp functions"
