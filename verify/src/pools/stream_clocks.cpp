#include "pools/stream_clocks.hpp"

#include <algorithm>

namespace kvwitness::verify {

StreamClocks::Clock& StreamClocks::clock(std::uint32_t stream) {
  if (stream >= clocks_.size()) clocks_.resize(stream + 1);
  Clock& of = clocks_[stream];
  if (of.size() <= stream) of.resize(stream + 1);
  return of;
}

std::optional<Race> StreamClocks::access(std::uint32_t stream, std::uint32_t id, Access how, std::uint64_t number) {
  const bool is_followed = stream < kStreamsMax && (follows_all() || blocks_.contains(id));
  if (!is_followed) return std::nullopt;
  Clock& now = clock(stream);
  Block& block = blocks_[id];
  std::optional<Race> race;
  if (!is_before(block.write, block.writer, now)) race = Race{block.writer, Access::write, block.write.number};
  for (std::uint32_t other = 0; how == Access::write && !race && other < block.reads.size(); ++other) {
    if (!is_before(block.reads[other], other, now)) race = Race{other, Access::read, block.reads[other].number};
  }
  const Done done{++now[stream], number};
  if (how == Access::write) {
    block.writer = stream;
    block.write = done;
    block.reads.clear();
  } else {
    if (block.reads.size() <= stream) block.reads.resize(stream + 1);
    block.reads[stream] = done;
  }
  return race;
}

void StreamClocks::signal(std::uint32_t stream, std::uint64_t signal) {
  if (stream >= kStreamsMax) return;
  signals_[signal] = clock(stream);
  given_.push_back(signal);
  if (given_.size() <= kSignalsKept) return;
  signals_.erase(given_.front());
  given_.pop_front();
}

bool StreamClocks::wait(std::uint32_t stream, std::uint64_t signal) {
  const auto given = signals_.find(signal);
  if (given == signals_.end() || stream >= kStreamsMax) return given != signals_.end();
  Clock& now = clock(stream);
  if (now.size() < given->second.size()) now.resize(given->second.size());
  for (std::size_t i = 0; i < given->second.size(); ++i) now[i] = std::max(now[i], given->second[i]);
  return true;
}

}  // namespace kvwitness::verify
