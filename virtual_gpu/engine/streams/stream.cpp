#include "engine/streams/stream.hpp"

#include <algorithm>

#include "engine/host/settings.hpp"
#include "engine/streams/pull_queue.hpp"

namespace vgpu {

void Operation::finish(double end) {
  hb::release(stream->contexts().own(), done.get());
  done->complete_at(end);
  if (settings().records_timeline()) record(end);
  RunningGraph* const launch = graph;
  const unsigned node_branch = branch;
  stream->pop(end);
  if (launch != nullptr) launch->node_finished(node_branch, end);
}

void Operation::record(double end) const {
  if (only_waits()) return;
  const Stream& shown = graph == nullptr ? *stream : graph->lane(branch);
  std::vector<Span> occupied = spans;
  if (occupied.empty()) occupied.push_back({shown.device(), "", occupied_from, end});
  for (Span& span : occupied) {
    shown.timeline().push_back({work(), span.device, std::move(span.engine), shown.device(), shown.number(),
                                labels, span.begin, span.end});
  }
}

void Operation::enqueued_at(const hb::CallSite& where, double time, std::vector<std::string> labels_of_host) {
  site = where;
  enqueued = time;
  labels = std::move(labels_of_host);
}

void Operation::enqueued_by(RunningGraph& launch, unsigned its_branch, const Operation& captured, double time,
                            std::vector<std::string> labels_of_launch) {
  enqueued_at(captured.site, time, std::move(labels_of_launch));
  programmatic = captured.programmatic;
  graph = &launch;
  branch = its_branch;
}

std::string Operation::enqueued_at() const {
  const std::string line = hb::describe(site);
  if (line.empty()) return {};
  return (graph == nullptr ? ", enqueued at " : ", captured at ") + line;
}

std::string Operation::origin() const { return stream->name() + enqueued_at(); }

void Operation::joined(Stream& its_stream) {
  stream = &its_stream;
  contexts_ = &its_stream.contexts();
}

void Stream::push(std::unique_ptr<Operation> operation) {
  operation->joined(*this);
  if (operation->programmatic && last_kernel_ != nullptr) {
    auto& beside = dependents_[last_kernel_->contexts == dependents_[0].get()];
    if (beside == nullptr) beside = std::make_unique<StreamContexts>(contexts_);
    operation->depends_on(last_kernel_, *beside);
  }
  last_kernel_ = operation->as_primary();
  last_ = operation->done;
  auto& busy = group_.busy;
  if (queue_.empty()) busy.insert(std::ranges::upper_bound(busy, number_, {}, &Stream::number), this);
  queue_.push_back(std::move(operation));
}

void Stream::pop(double end) {
  free_at_ = std::max(free_at_, end);
  queue_.pop_front();
  if (queue_.empty()) std::erase(group_.busy, this);
}

void Stream::discard(double now, const void* order) {
  contexts_.end_kernel();
  for (const auto& beside : dependents_) {
    if (beside != nullptr) beside->end_kernel();
  }
  hb::release(contexts_.own(), order);
  for (const auto& operation : queue_) operation->discarded(now);
  queue_.clear();
  std::erase(group_.busy, this);
}

bool Stream::can_begin(const Operation& operation, double& time) const {
  if (operation.primary != nullptr && !operation.primary->triggered) return false;
  time =
      std::max(operation.primary != nullptr ? operation.primary->triggered_at : free_at_, operation.enqueued);
  for (const Token& token : operation.waits_for) {
    if (!token->complete) return false;
    time = std::max(time, token->time);
  }
  return operation.pulls == nullptr || operation.pulls->is_first(operation.done, time);
}

std::string Stream::name() const { return is_default() ? contexts_.name() + " (default)" : contexts_.name(); }

}  // namespace vgpu
