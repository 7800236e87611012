// What a handle of the program stands for.
#pragma once

#include <map>
#include <memory>
#include <utility>

namespace vgpu {

/// The objects of one kind that the program has handles of. A handle is the object's address.
template <class T>
class HandleTable {
 public:
  /// Keeps the object until remove(). Returns its handle.
  T* add(std::shared_ptr<T> object) {
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  /// The object behind a handle; nullptr if it was never made or has been removed.
  std::shared_ptr<T> find(const void* handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// The handle becomes invalid. The object lives on as long as something else uses it.
  void remove(const T* handle) { objects_.erase(handle); }

 private:
  std::map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace vgpu
