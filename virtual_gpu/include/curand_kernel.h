#error "cuRAND is not supported on virtual GPUs: make the numbers on the host"
