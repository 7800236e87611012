#error "Thrust is not supported on virtual GPUs: use cub::DeviceRadixSort"
