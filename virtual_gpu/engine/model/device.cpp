#include "engine/model/device.hpp"

#include <algorithm>
#include <tuple>

namespace vgpu {

int Multiprocessors::capacity(const Footprint& block) const {
  int blocks = std::min(machine_.max_blocks, machine_.max_threads / block.threads);
  if (block.shared_bytes > 0) {
    blocks = std::min(blocks, static_cast<int>(machine_.shared_per_multiprocessor / block.shared_bytes));
  }
  return blocks;
}

bool Multiprocessors::find_on(const Multiprocessor& multiprocessor, const Footprint& block, double not_before,
                              double& time) const {
  // Residents are sorted by their end, so the latest ones form the load that remains at any time.
  const auto& residents = multiprocessor.residents;
  int threads = block.threads;
  int blocks = 1;
  std::size_t shared = block.shared_bytes;
  time = std::max(not_before, multiprocessor.forgotten);
  for (auto resident = residents.rbegin(); resident != residents.rend(); ++resident) {
    if (resident->end <= time) break;
    threads += resident->block.threads;
    shared += resident->block.shared_bytes;
    ++blocks;
    if (threads > machine_.max_threads || shared > machine_.shared_per_multiprocessor ||
        blocks > machine_.max_blocks) {
      time = resident->end;
      return time < kRunning;
    }
  }
  return true;
}

bool Multiprocessors::find(const Footprint& block, double not_before, bool any_time, Place& place) const {
  const std::vector<Place> places = find_several(block, 1, not_before, any_time);
  if (!places.empty()) place = places.front();
  return !places.empty();
}

std::vector<Multiprocessors::Place> Multiprocessors::find_several(const Footprint& block, int count,
                                                                  double not_before, bool any_time) const {
  struct Candidate {
    Load load;
    Place place;
  };
  std::vector<Candidate> candidates;
  for (int i = 0; i < static_cast<int>(multiprocessors_.size()); ++i) {
    double time;
    if (!find_on(multiprocessors_[i], block, not_before, time)) continue;
    const double when = any_time ? std::numeric_limits<double>::max() : time;
    candidates.push_back({load_after(multiprocessors_[i], when), {i, time}});
  }
  if (static_cast<int>(candidates.size()) < count) return {};
  // Ties go to the multiprocessor with the fewest blocks, as on real GPUs: blocks spread out before they pile
  // up; then to the first one.
  const auto is_better = [any_time](const Candidate& a, const Candidate& b) {
    const Place &at = a.place, &bt = b.place;
    return any_time
               ? std::tie(a.load, at.time, at.multiprocessor) < std::tie(b.load, bt.time, bt.multiprocessor)
               : std::tie(at.time, a.load, at.multiprocessor) < std::tie(bt.time, b.load, bt.multiprocessor);
  };
  std::partial_sort(candidates.begin(), candidates.begin() + count, candidates.end(), is_better);
  std::vector<Place> places;
  double latest = 0;
  for (int i = 0; i < count; ++i) {
    places.push_back(candidates[i].place);
    latest = std::max(latest, places.back().time);
  }
  for (Place& place : places) place.time = latest;
  return places;
}

Multiprocessors::Load Multiprocessors::load_after(const Multiprocessor& multiprocessor, double time) {
  Load load;
  for (const Resident& resident : multiprocessor.residents) {
    if (resident.end <= time) continue;
    ++load.blocks;
    load.threads += resident.block.threads;
    load.shared_bytes += resident.block.shared_bytes;
  }
  return load;
}

int Multiprocessors::occupy(const Footprint& block, const Place& place) {
  auto& [residents, forgotten] = multiprocessors_[place.multiprocessor];
  std::erase_if(residents, [&](const Resident& resident) { return resident.end <= place.time; });
  forgotten = std::max(forgotten, place.time);
  residents.push_back({next_id_, block, kRunning});
  ++version_;
  return next_id_++;
}

void Multiprocessors::release(int id, int multiprocessor, double end) {
  auto& residents = multiprocessors_[multiprocessor].residents;
  const auto resident =
      std::find_if(residents.begin(), residents.end(), [id](const Resident& r) { return r.id == id; });
  Resident ended = *resident;
  ended.end = end;
  residents.erase(resident);
  residents.insert(std::upper_bound(residents.begin(), residents.end(), end,
                                    [](double value, const Resident& r) { return value < r.end; }),
                   ended);
  ++version_;
}

void Multiprocessors::clear() {
  for (Multiprocessor& multiprocessor : multiprocessors_) multiprocessor.residents.clear();
  ++version_;
}

std::uint64_t Multiprocessors::fill(const Footprint& block, double not_before, double not_after,
                                    double duration, std::uint64_t count, double& end) {
  std::uint64_t placed = 0;
  for (int i = 0; i < static_cast<int>(multiprocessors_.size()) && placed < count; ++i) {
    double time;
    if (!find_on(multiprocessors_[i], block, not_before, time) || time > not_after) continue;
    release(occupy(block, {i, time}), i, time + duration);
    end = std::max(end, time + duration);
    ++placed;
  }
  return placed;
}

double CopyEngines::book(double ready, double duration) {
  const double end = free_from(ready) + duration;
  occupy_until(end);
  return end;
}

double CopyEngines::free_from(double ready) const {
  return std::max(ready, *std::min_element(free_at_.begin(), free_at_.end()));
}

void Port::occupy_until(double end, double duration) {
  free_at_ = end;
  add(end - duration, end);
}

double Port::book(double ready, double duration) {
  occupy_until(std::max(free_at_, ready) + duration, duration);
  return free_at_;
}

double Port::fill(double ready, double duration) {
  double at = ready;
  while (duration > 0) {
    auto next = busy_.upper_bound(at);
    if (next != busy_.begin() && std::prev(next)->second > at) {
      at = std::prev(next)->second;
      continue;
    }
    const double piece = next == busy_.end() ? duration : std::min(duration, next->first - at);
    add(at, at + piece);
    at += piece;
    duration -= piece;
  }
  return at;
}

void Port::add(double begin, double end) {
  if (begin >= end) return;
  auto next = busy_.lower_bound(begin);
  if (next != busy_.begin() && std::prev(next)->second >= begin) {
    --next;
    next->second = std::max(next->second, end);
  } else {
    next = busy_.emplace_hint(next, begin, end);
  }
  for (auto behind = std::next(next); behind != busy_.end() && behind->first <= next->second;) {
    next->second = std::max(next->second, behind->second);
    behind = busy_.erase(behind);
  }
  constexpr std::size_t kMax = 1024;  // what is long over is asked for no more
  while (busy_.size() > kMax) busy_.erase(busy_.begin());
}

void CopyEngines::occupy_until(double end) { *std::min_element(free_at_.begin(), free_at_.end()) = end; }

Device::Device(int id, const Machine& machine, std::vector<TimelineEntry>& timeline)
    : group_{id, timeline},
      multiprocessors_(machine),
      from_host_(1),
      to_host_(1),
      between_gpus_(machine.copy_engines),
      local_(1) {
  streams_.push_back(std::make_unique<Stream>(group_, 0, true));
}

Stream& Device::add_stream(bool blocking) {
  collect_streams();
  streams_.push_back(std::make_unique<Stream>(group_, next_stream_++, blocking));
  return *streams_.back();
}

std::shared_ptr<Stream> Device::add_branch(const std::string& what) {
  collect_streams();
  streams_.push_back(std::make_shared<Stream>(group_, next_stream_++, false, what));
  return streams_.back();
}

void Device::discard_work(double now, const void* order) {
  for (const auto& stream : streams_) stream->discard(now, order);
  pulls_.clear();
  multiprocessors_.clear();
}

void Device::collect_streams() {
  std::erase_if(streams_,
                [](const auto& stream) { return stream->destroyed() && stream->head() == nullptr; });
}

}  // namespace vgpu
