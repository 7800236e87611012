#error "cuSPARSE is not supported on virtual GPUs"
