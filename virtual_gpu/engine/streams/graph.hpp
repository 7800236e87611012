// Graphs: what a capture has recorded, and its launches.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/streams/operation.hpp"

namespace vgpu {

class Runtime;

struct GraphNode {
  std::shared_ptr<const Operation> work;  // never runs itself: each launch runs what its again() gives
  unsigned branch;
  std::size_t place;            // in the branch, from 0
  std::vector<unsigned> after;  // nodes of other branches that come before it, besides those of its own
};

/// What one stream has captured: a chain.
struct GraphBranch {
  int device;
  std::vector<unsigned> nodes;
};

/// A captured graph: nodes in the order of their capture, which is one in which they can run.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphBranch> branches;
};

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
class GraphLaunch final : public Operation {
 public:
  GraphLaunch(Runtime& runtime, std::shared_ptr<GraphExec> exec);
  void begin(double now) override;
  std::string describe() const override;
  std::string progress() const override;
  bool only_waits() const override { return true; }  // in a timeline its nodes show
  bool touches(const void* memory, std::size_t bytes) const override;
  bool completes(const Token& token) const override;

  /// The node of that branch that was running has completed at modelled time `end`, ns.
  void node_finished(unsigned branch, double end);
  /// The stream in whose lane of a timeline the branch is drawn.
  const Stream& lane(unsigned branch) const;

 private:
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
