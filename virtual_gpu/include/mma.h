#error "wmma is not supported on virtual GPUs: use cuBLAS"
