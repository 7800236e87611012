#include "engine/streams/graph.hpp"

#include <algorithm>

namespace vgpu {

GraphExec::GraphExec(Runtime& runtime, std::shared_ptr<const Graph> captured) : graph(std::move(captured)) {
  const int number = runtime.number_graph_exec();
  for (std::size_t branch = 0; branch < graph->branches.size(); ++branch) {
    streams.push_back(runtime.device(graph->branches[branch].device)
                          .add_branch("graph" + std::to_string(number) + ".branch" + std::to_string(branch)));
  }
}

GraphExec::~GraphExec() {
  for (const auto& stream : streams) stream->destroy();
}

GraphLaunch::GraphLaunch(Runtime& runtime, std::shared_ptr<GraphExec> exec)
    : runtime_(runtime), exec_(std::move(exec)), graph_(exec_->graph), next_(graph_->branches.size(), 0) {
  for (const GraphNode& node : graph_->nodes) {
    for (const unsigned earlier : node.after) awaited_.try_emplace(earlier, std::make_shared<Completion>());
  }
  queue_pulls();
  if (exec_->last_launch) waits_for.push_back(exec_->last_launch);
  exec_->last_launch = done;
}

void GraphLaunch::queue_pulls() {
  for (unsigned number = 0; number < graph_->nodes.size(); ++number) {
    const GraphNode& node = graph_->nodes[number];
    const auto awaited = awaited_.find(number);
    const Token own = awaited != awaited_.end() ? awaited->second : std::make_shared<Completion>();
    PullQueue* queue = runtime_.queues().queue_pull(*node.work, graph_->branches[node.branch].device, own);
    if (queue == nullptr) continue;
    pulls_[number] = queue;
    awaited_[number] = own;
  }
}

void GraphLaunch::begin(double now) {
  end_ = now + runtime_.machine().graph_launch_ns;
  if (graph_->nodes.empty()) return finish(end_);
  started_->complete_at(end_);
  hb::release(stream->contexts().own(), started_.get());
  for (unsigned branch = 0; branch < next_.size(); ++branch) enqueue_next(branch);
}

void GraphLaunch::enqueue_next(unsigned branch) {
  const std::vector<unsigned>& nodes = graph_->branches[branch].nodes;
  if (next_[branch] == nodes.size()) return;
  const unsigned number = nodes[next_[branch]];
  const GraphNode& node = graph_->nodes[number];
  std::unique_ptr<Operation> work = node.work->again();
  work->enqueued_by(*this, branch, *node.work, started_->time, labels);
  if (next_[branch] == 0) work->wait_for(started_);
  for (const unsigned earlier : node.after) work->wait_for(awaited_.at(earlier));
  if (const auto awaited = awaited_.find(number); awaited != awaited_.end()) work->tell_by(awaited->second);
  if (const auto queue = pulls_.find(number); queue != pulls_.end()) work->take_turns_in(queue->second);
  ++next_[branch];
  runtime_.queues().enqueue_node(*exec_->streams[branch], std::move(work));
  // A kernel that may run beside this one has to be there before this one ends.
  if (next_[branch] < nodes.size() && graph_->nodes[nodes[next_[branch]]].work->programmatic)
    enqueue_next(branch);
}

void GraphLaunch::node_finished(unsigned branch, double end) {
  ++finished_;
  end_ = std::max(end_, end);
  enqueue_next(branch);
  if (finished_ < graph_->nodes.size()) return;
  // Each branch's stream comes after all of its nodes.
  for (const auto& nodes_of : exec_->streams) hb::release(nodes_of->contexts().own(), started_.get());
  hb::acquire(stream->contexts().own(), started_.get());
  finish(end_);
}

const Stream& GraphLaunch::lane(unsigned branch) const {
  const Stream& own = *exec_->streams[branch];
  return branch == 0 && own.device() == stream->device() ? *stream : own;
}

std::string GraphLaunch::describe() const {
  return "graph of " + std::to_string(graph_->nodes.size()) + " nodes";
}

std::string GraphLaunch::progress() const {
  if (!begun) return Operation::progress();
  return std::to_string(finished_) + " of " + std::to_string(graph_->nodes.size()) + " nodes done";
}

bool GraphLaunch::completes(const Token& token) const {
  if (Operation::completes(token)) return true;
  return std::any_of(awaited_.begin(), awaited_.end(), [&](const auto& awaited) {
    const GraphNode& node = graph_->nodes[awaited.first];
    const bool enqueued = node.place < next_[node.branch];  // then it tells so itself
    return !enqueued && awaited.second == token;
  });
}

bool GraphLaunch::touches(const void* memory, std::size_t bytes) const {
  return std::any_of(graph_->nodes.begin(), graph_->nodes.end(),
                     [&](const GraphNode& node) { return node.work->touches(memory, bytes); });
}

}  // namespace vgpu
