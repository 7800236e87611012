// Compiles the extension ping_pong, which is no variant of chapter 16's program, together with this program.
#include "16_tensor_core_gemm/main.cu"

template class overlap::tensor_core_gemm::TensorCoreGemm<__half, overlap::tensor_core_gemm::PingPong<>>;
