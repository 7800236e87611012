#error "Thrust is not supported on virtual GPUs: use cudaMalloc and the algorithms of CUB"
