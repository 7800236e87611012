#error "Thrust is not supported on virtual GPUs: use std::vector"
