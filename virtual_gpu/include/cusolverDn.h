#error "cuSOLVER is not supported on virtual GPUs"
