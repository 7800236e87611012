// What libraries keep with the runtime, or with a host thread, so that the engine need not know them.
#pragma once

#include <map>
#include <memory>
#include <typeindex>

namespace vgpu {

/// One object of each type that was asked for.
class LibraryStates {
 public:
  /// The object of that type; made when it is first asked for.
  template <class T>
  T& of() {
    std::shared_ptr<void>& state = states_[typeid(T)];
    if (state == nullptr) state = std::make_shared<T>();
    return *static_cast<T*>(state.get());
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> states_;
};

}  // namespace vgpu
