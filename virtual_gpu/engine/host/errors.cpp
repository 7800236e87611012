#include "engine/host/errors.hpp"

#include <cstdio>

#include "engine/host/settings.hpp"

namespace vgpu {

void Errors::fault(cudaError_t code, const std::string& sentence) {
  if (!fault_) fault_.emplace(code, sentence);
}

void Errors::throw_if_faulted() const {
  if (fault_) throw *fault_;
}

void Errors::print_if_untold() const {
  if (fault_ && !fault_told_) std::fprintf(stderr, "virtual GPUs: %s\n", fault_->what());
}

void Errors::note(const char* call, const std::string& sentence, bool error) {
  last_detail_ = std::string(call) + ": " + sentence;
  fault_told_ = faulted();
  if (error && settings().prints_errors()) std::fprintf(stderr, "virtual GPUs: %s\n", last_detail_.c_str());
}

}  // namespace vgpu
