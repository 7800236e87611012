#include "schedule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "overlap/bench/waves.hpp"

namespace overlap::planner {
namespace {

constexpr double kElement = 2;  // bytes of f16 and bf16

/// Bytes of one of a call's messages.
double message(const Cost& cost) {
  return cost.messages > 0 ? static_cast<double>(cost.bytes_out) / static_cast<double>(cost.messages) : 0;
}

/// From the enqueueing of a copy until its receiver's streams see it, beside the bytes.
double hand_over(const Machine& machine) { return machine.push_us + machine.signal_us; }

/// The rest of the last wave, which nobody fills any more.
double rest_of_the_wave(const Machine& machine, Product part, double parts) {
  if (!machine.whole_waves) return 0;
  const double waves = parts * part.waves;
  return (std::ceil(waves - 1e-9) - waves) * part.wave_us;
}

/// A wave of such tiles.
double wave_us(const Machine& machine, Tile tile, int halvings, std::int64_t k) {
  const double rate =
      machine.product_rate / machine.multiprocessors * std::pow(machine.smaller_tile, halvings);
  return 2 * static_cast<double>(tile.rows) * static_cast<double>(tile.columns) * static_cast<double>(k) /
         rate;
}

/// A launch, then parts of a product that fill each other's last waves, `between` apart, none before `ready`
/// says.
template <typename Ready>
double filled_us(const Machine& machine, Product part, std::int64_t parts, double between,
                 const Ready& ready) {
  double now = machine.launch_us;
  for (std::int64_t i = 0; i < parts; ++i) {
    now = std::max(now + (i > 0 ? between : 0), ready(i)) + part.work_us;
  }
  return now + rest_of_the_wave(machine, part, static_cast<double>(parts));
}

/// The tile that is done first on the whole GPU, and how often it has been halved. The library does not ask
/// how many multiprocessors somebody else holds.
std::pair<Tile, int> fastest_tile(const Machine& machine, MatmulShape shape) {
  // The same tile may lie across, and a half of it may be cut either way.
  const Tile whole = machine.tile, turned = {whole.columns, whole.rows};
  const Tile half = {whole.rows, whole.columns / 2}, other_half = {turned.rows / 2, turned.columns};
  const std::vector<std::pair<Tile, int>> tiles = {
      {whole, 0},
      {turned, 0},
      {half, 1},
      {other_half, 1},
      {{half.rows, half.columns / 2}, 2},
      {{half.rows / 2, half.columns}, 2},
  };
  std::pair<Tile, int> best = tiles.front();
  double least = 0;
  for (const auto& [tile, halvings] : tiles) {
    if (tile.rows < 1 || tile.columns < 1) continue;
    const double waves_us = static_cast<double>(waves(shape, tile, machine.multiprocessors).waves) *
                            wave_us(machine, tile, halvings, shape.k);
    if (least == 0 || waves_us < least) {
      least = waves_us;
      best = {tile, halvings};
    }
  }
  return best;
}

}  // namespace

Product part_of(const Machine& machine, Cut cut, int multiprocessors) {
  const MatmulShape shape = cut.part();
  if (shape.multiply_adds() <= 0) return {};
  const auto [tile, halvings] = cut.tile == Tile{} ? fastest_tile(machine, shape) : std::pair{cut.tile, 0};
  const Waves count = waves(shape, tile, multiprocessors);
  Product product;
  product.wave_us = wave_us(machine, tile, halvings, shape.k);
  product.waves = static_cast<double>(count.tiles) / multiprocessors;
  product.work_us = product.waves * product.wave_us;
  product.us = static_cast<double>(count.waves) * product.wave_us;
  if (!machine.whole_waves) {  // nor edges of C
    const double area = static_cast<double>(tile.rows) * static_cast<double>(tile.columns);
    product.work_us =
        shape.multiply_adds() / (area * static_cast<double>(shape.k)) * product.wave_us / multiprocessors;
    product.us = product.work_us;
  }
  const auto size = [](std::int64_t one, std::int64_t other) {
    return static_cast<double>(one) * static_cast<double>(other);
  };
  const double bytes = kElement * (size(shape.m, shape.k) + size(shape.k, shape.n) + size(shape.m, shape.n));
  const double memory = bytes / machine.memory_rate;
  product.us = std::max(product.us, memory);
  product.work_us = std::max(product.work_us, memory);
  return product;
}

Product part_of(const Machine& machine, Cut cut) { return part_of(machine, cut, machine.multiprocessors); }

double slow_down(const Machine& machine, double product_us) {
  if (machine.sustained_us <= 0) return 1 / machine.sustained;
  const double part =
      product_us * product_us / (product_us * product_us + machine.sustained_us * machine.sustained_us);
  return 1 + (1 / machine.sustained - 1) * part;
}

double kernel_us(const Machine& machine, double bytes) {
  return machine.launch_us + bytes / machine.memory_rate;
}

double collective_us(const Machine& machine, int ranks, std::int64_t messages, double bytes_out,
                     Collective mode) {
  if (messages <= 0 || ranks < 2) return 0;
  const auto steps = static_cast<double>(messages);
  double latency = mode == Collective::kPlain        ? machine.collective_us
                   : mode == Collective::kRegistered ? machine.registered_us
                                                     : machine.copy_engine_us;
  double rate = machine.collective_rate;
  double message_us = machine.message_us;
  if (ranks > machine.gpus_per_node) {
    // One step in `gpus_per_node` is between nodes. Rings side by side leave a node by all its ways out.
    const double node = machine.gpus_per_node;
    message_us += machine.network_us / node;
    rate = std::min(rate, node * machine.network_rate);
  }
  return latency + steps * message_us + bytes_out / rate;
}

double products_us(const Machine& machine, Cut cut) {
  const Product part = part_of(machine, cut);
  return static_cast<double>(cut.parts) * (part.us + machine.launch_us);
}

double products_on_two_streams_us(const Machine& machine, Cut cut) {
  return filled_us(machine, part_of(machine, cut), cut.parts, machine.launch_us,
                   [](std::int64_t) { return 0.0; });
}

double nccl_ring_us(const Machine& machine, Cut cut, const Cost& cost, int ranks) {
  const bool leaves_the_node = ranks > machine.gpus_per_node;
  // A ring of ranks has one way out of a node: the slowest step holds up all.
  const double rate = leaves_the_node ? std::min(machine.send_rate, machine.network_rate) : machine.send_rate;
  const double transfer = machine.send_us + (leaves_the_node ? machine.network_us : 0) + message(cost) / rate;
  const Product alone = part_of(machine, cut);
  const Product beside = part_of(machine, cut, std::max(1, machine.multiprocessors - machine.nccl_blocks));
  double now = 0, here = 0;
  for (std::int64_t step = 0; step < cut.parts; ++step) {
    const bool passes_on = step < cost.messages;
    now = std::max(now, here) + machine.launch_us + (passes_on ? beside : alone).us;
    if (passes_on) here = (step == 0 ? machine.event_us : here) + transfer;
  }
  return now;
}

double copy_ring_us(const Machine& machine, Cut cut, const Cost& cost, bool two_streams) {
  const Product part = part_of(machine, cut);
  const double hop = hand_over(machine) + message(cost) / machine.link_rate;
  const auto here = [&](std::int64_t step) {
    if (step == 0) return 0.0;
    return machine.event_us + static_cast<double>(step) * hop + (two_streams ? machine.event_us : 0);
  };
  if (two_streams) return filled_us(machine, part, cut.parts, machine.launch_us, here);
  double now = 0;
  for (std::int64_t step = 0; step < cut.parts; ++step) {
    // Looking at a signal takes a stream as long as seeing it come.
    now = std::max(now + (step > 0 ? machine.signal_us : 0), here(step)) + machine.launch_us + part.us;
  }
  return now;
}

double pulls_us(const Machine& machine, Cut cut, const Cost& cost, double published) {
  if (cost.messages == 0) return products_us(machine, cut);
  const double opening = kernel_us(machine, 2 * published) + machine.signal_us;
  const double hop = machine.pull_us + message(cost) / machine.link_rate;
  const double products = filled_us(
      machine, part_of(machine, cut), cut.parts, machine.launch_us,
      [&](std::int64_t step) { return step == 0 ? 0 : machine.event_us + static_cast<double>(step) * hop; });
  return opening + products + machine.event_us + machine.signal_us;
}

double send_and_sum_us(const Machine& machine, Cut cut, const Cost& cost, double added) {
  if (cost.messages == 0) return products_us(machine, cut);
  const Product part = part_of(machine, cut);
  const double bytes = message(cost) / machine.link_rate;
  const double products = products_on_two_streams_us(machine, cut);
  double sent = 0;  // the last of a rank's sends is the last to come
  for (std::int64_t i = 0; i < cost.messages; ++i) {
    const double ready = machine.launch_us + static_cast<double>(i + 1) * part.work_us +
                         static_cast<double>(i) * machine.launch_us + machine.event_us;
    sent = std::max(sent, ready) + machine.push_us + bytes;
  }
  const double all_here = std::max(sent + machine.signal_us, products + machine.event_us);
  return all_here + (cost.launches > 0 ? kernel_us(machine, added) : 0) + machine.event_us;
}

double rotation_us(const Machine& machine, Cut cut, const Cost& cost, Rotation rotation) {
  if (cost.messages == 0) return products_us(machine, cut);
  const Product part = part_of(machine, cut);
  const double products = products_on_two_streams_us(machine, cut);
  const double over_the_link = rotation.accumulator / machine.link_rate;
  const double copy = machine.push_us + over_the_link + machine.signal_us;
  // A wave that runs is not interrupted.
  const auto next_wave = [&](double time) {
    if (time >= products || part.wave_us <= 0 || !machine.whole_waves) return time;
    return std::min(products, std::ceil(time / part.wave_us - 1e-9) * part.wave_us + machine.launch_us);
  };
  double here = rotation.zeros ? machine.event_us + copy : 0;  // the accumulator of this step
  for (std::int64_t step = 0; step < cut.parts; ++step) {
    const bool last = step == cut.parts - 1;
    const double multiplied = (last ? products
                                    : machine.launch_us + static_cast<double>(step + 1) * part.work_us +
                                          static_cast<double>(step) * machine.launch_us) +
                              machine.event_us;
    if (step == 0 && !rotation.zeros) {
      here = multiplied + copy;
      continue;
    }
    const double adds = next_wave(std::max(multiplied, here) + machine.signal_us);
    if (last) return adds + kernel_us(machine, 2 * rotation.accumulator + rotation.result) + machine.event_us;
    const double memory = kernel_us(machine, (rotation.stores ? 2 : 3) * rotation.accumulator);
    here = rotation.stores ? adds + std::max(memory, machine.launch_us + over_the_link) + machine.signal_us
                           : adds + memory + copy;
  }
  return here;
}

double persistent_us(const Machine& machine, Cut cut, const Cost& cost, int ranks, bool hops) {
  // A rank's messages go to all others, in pieces or whole: each gets all of a shard.
  const double shard = ranks > 1 ? static_cast<double>(cost.bytes_out) / (ranks - 1) / machine.link_rate : 0;
  const double before_each = machine.push_us + (hops ? machine.signal_us : 0);
  const auto here = [&](std::int64_t step) {
    if (step == 0) return 0.0;
    return machine.event_us + static_cast<double>(step) * (before_each + shard) +
           (hops ? 0 : machine.signal_us);
  };
  return filled_us(machine, part_of(machine, cut), cut.parts, 0, here);
}

double two_level_us(const Machine& machine, Cut cut, const Cost& rail, const Cost& cost, Nodes nodes,
                    int aside) {
  const int others = nodes.ranks - 1;
  // A rank pushes a shard of each node to all others of its own.
  const double pushed = static_cast<double>(cost.bytes_out - rail.bytes_out) / machine.link_rate;
  const double push = machine.push_us + (others > 0 ? pushed / (others * nodes.count) : 0);
  const double hop = machine.send_us + machine.network_us +
                     message(rail) / std::min(machine.send_rate, machine.network_rate);
  std::vector<double> here = {0};  // by arrival: the own node's, then the one along the rail and its node's
  double free = machine.event_us;  // from when on the copies of a node are done with what came before
  for (int node = 0; node < nodes.count; ++node) {
    const double along_the_rail = machine.event_us + node * hop + machine.signal_us;
    if (node > 0) {
      here.push_back(along_the_rail);
      free = std::max(free, along_the_rail);
    }
    for (int i = 0; i < others; ++i) here.push_back((free += push) + machine.signal_us);
  }
  const Product part = part_of(machine, cut, machine.multiprocessors - aside);
  return filled_us(machine, part, cut.parts, 0,
                   [&](std::int64_t arrival) { return here[static_cast<std::size_t>(arrival)]; });
}

double stepwise_us(const Machine& machine, Cut cut, const Cost& cost, int ranks) {
  const Product part = part_of(machine, cut);
  const double shard = ranks > 1 ? static_cast<double>(cost.bytes_out) / (ranks - 1) / machine.link_rate : 0;
  const auto steps = static_cast<double>(cut.parts);
  return machine.launch_us + (steps - 1) * (std::max(part.us, shard) + machine.signal_us) + part.us;
}

double scattered_us(const Machine& machine, Cut cut, const Cost& cost, double added) {
  const double products = part_of(machine, {cut.shape, 1, cut.tile}).us;
  if (cost.bytes_out == 0) return machine.launch_us + products;
  // The first tile of the first part is sent after a wave; the link is then busy until all has left.
  const double sent = part_of(machine, cut).wave_us + static_cast<double>(cost.bytes_out) / machine.link_rate;
  return machine.launch_us + std::max(products, sent) + machine.signal_us + added / machine.memory_rate;
}

}  // namespace overlap::planner
