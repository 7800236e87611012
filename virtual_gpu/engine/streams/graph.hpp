// Instantiated graphs and their launches.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime.hpp"

namespace vgpu {

/// An instantiated graph. Each branch has a stream: the race detector and the model see branches as streams.
struct GraphExec {
  GraphExec(Runtime& runtime, std::shared_ptr<const Graph> graph);
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;
  ~GraphExec();

  std::shared_ptr<const Graph> graph;            // what the next launch runs
  std::vector<std::shared_ptr<Stream>> streams;  // by branch
  Token last_launch;
};

/// cudaGraphLaunch: puts one node of each branch at a time into the branch's stream.
class GraphLaunch final : public Operation, private RunningGraph {
 public:
  GraphLaunch(Runtime& runtime, std::shared_ptr<GraphExec> exec);
  void begin(double now) override;
  std::string describe() const override;
  std::string progress() const override;
  bool only_waits() const override { return true; }  // in a timeline its nodes show
  bool touches(const void* memory, std::size_t bytes) const override;
  bool completes(const Token& token) const override;

 private:
  void node_finished(unsigned branch, double end) override;
  const Stream& lane(unsigned branch) const override;
  void queue_pulls();
  void enqueue_next(unsigned branch);

  Runtime& runtime_;
  std::shared_ptr<GraphExec> exec_;       // may be destroyed for the program meanwhile
  std::shared_ptr<const Graph> graph_;    // the executable may be updated meanwhile
  std::vector<std::size_t> next_;         // of each branch, the next node's place
  std::map<unsigned, Token> awaited_;     // completions of nodes that others wait for, beside their branch
  std::map<unsigned, PullQueue*> pulls_;  // of nodes that are pulls: queued at the launch
  Token started_ = std::make_shared<Completion>();
  std::size_t finished_ = 0;
  double end_ = 0;
};

}  // namespace vgpu
