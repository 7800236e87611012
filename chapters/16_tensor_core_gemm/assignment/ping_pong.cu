// The extension ping_pong of chapter 16, which the chapter's program does not use, is compiled with it.
#include "16_tensor_core_gemm/main.cu"

template class overlap::tensor_core_gemm::TensorCoreGemm<__half, overlap::tensor_core_gemm::PingPong<>>;
