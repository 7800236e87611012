// thrust::counting_iterator: the numbers from a first one on, as input of an algorithm that stores none.
// (CUB's own iterator of this kind is gone since CUDA 13.)
#pragma once

#include <cstddef>
#include <iterator>

namespace thrust {

template <class Number>
class counting_iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Number;
  using difference_type = std::ptrdiff_t;
  using pointer = const Number*;
  using reference = Number;

  counting_iterator() = default;
  explicit counting_iterator(Number first) : number_(first) {}

  Number operator*() const { return number_; }
  Number operator[](difference_type offset) const { return *(*this + offset); }
  counting_iterator& operator+=(difference_type offset) {
    number_ = static_cast<Number>(number_ + static_cast<Number>(offset));
    return *this;
  }
  counting_iterator& operator-=(difference_type offset) { return *this += -offset; }
  counting_iterator& operator++() { return *this += 1; }
  counting_iterator operator++(int) {
    const counting_iterator old = *this;
    ++*this;
    return old;
  }
  counting_iterator& operator--() { return *this -= 1; }
  counting_iterator operator--(int) {
    const counting_iterator old = *this;
    --*this;
    return old;
  }
  friend counting_iterator operator+(counting_iterator i, difference_type offset) { return i += offset; }
  friend counting_iterator operator+(difference_type offset, counting_iterator i) { return i += offset; }
  friend counting_iterator operator-(counting_iterator i, difference_type offset) { return i -= offset; }
  friend difference_type operator-(const counting_iterator& a, const counting_iterator& b) {
    return static_cast<difference_type>(a.number_) - static_cast<difference_type>(b.number_);
  }
  friend auto operator<=>(const counting_iterator&, const counting_iterator&) = default;

 private:
  Number number_{};
};

template <class Number>
counting_iterator<Number> make_counting_iterator(Number first) {
  return counting_iterator<Number>(first);
}

}  // namespace thrust
