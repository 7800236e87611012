#error "cuFFT is not supported on virtual GPUs"
