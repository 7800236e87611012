#include "overlap/bench/gate.hpp"

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/run_state.hpp"

namespace overlap {

Gate::Gate(Rank& rank) : rank_(rank) {
  if (rank.id() == rank.local_begin()) {
    own_.emplace(1);
    *own_->data() = 0;
  }
  word_ = rank.exchange_here(own_ ? own_->data() : nullptr).front();
  // Every rank registers the word, so that a report names each waiting rank. Opening it several times is
  // harmless.
  rank.run_state().add({rank.id(), SignalWords::kPinned, word_, 1, "the gate's word", &awaited_});
}

Gate::~Gate() {
  detail::before_release();
  try {
    rank_.barrier();  // from here on no rank reads the word
  } catch (...) {
    // The run is being stopped; the streams that waited here have gone on.
  }
  rank_.run_state().remove(&awaited_);
}

void Gate::close(cudaStream_t stream) {
  if (rank_.stopping()) throw RunStopped();
  awaited_ = round_;
  backend::hold(stream, word_, round_, rank_.abort_flag());
}

void Gate::open() {
  rank_.barrier();
  if (own_) __atomic_store_n(word_, round_, __ATOMIC_RELEASE);
  ++round_;
}

}  // namespace overlap
