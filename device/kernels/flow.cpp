// flow.cpp: follows what a graph's operations read and write, to rule out races and reads of old
// data.
#include "device/kernels/flow.hpp"

#include "device/kernels/verify.hpp"

#include <algorithm>

namespace duet::device {

void Ranges::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  // The first range that touches [begin, end), and the first behind it.
  auto from =
      std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.end >= begin; });
  auto to = from;
  for (; to != ranges_.end() && to->begin <= end; ++to) {
    begin = std::min(begin, to->begin);
    end = std::max(end, to->end);
  }
  from = ranges_.erase(from, to);
  ranges_.insert(from, Range{begin, end});
}

bool Ranges::covers(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end) return true;
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) { return r.begin <= begin && end <= r.end; });
}

Flow::Flow(std::span<const Program> cores, const KvLayout& kv, std::uint32_t last_token)
    : cores_(cores),
      last_token_(last_token),
      buffers_(cores.front().buffers.size()),
      early_(buffers_, false) {
  for (auto& of_core : written_) of_core.resize(buffers_ + std::size_t{2} * kv.layers);
}

std::vector<bool> Flow::one_row() const {
  std::vector<bool> result(buffers_);
  for (std::size_t i = 0; i < buffers_; ++i) result[i] = !early_[i];
  return result;
}

bool Flow::shared(std::size_t place) const {
  return place >= buffers_ || cores_.front().buffers[place].scope == BufferScope::shared;
}

std::string Flow::describe(std::size_t place) const {
  if (place < buffers_) return "buffer " + std::to_string(place);
  const std::size_t kv = place - buffers_;
  return std::string(kv % 2 == 0 ? "the keys" : "the values") + " of layer " +
         std::to_string(kv / 2);
}

void Flow::list(std::uint32_t core, std::size_t number, std::vector<Access>& out) const {
  const Op& op = cores_[core].ops[number];
  const auto add = [&](std::size_t place, std::uint64_t begin, std::uint64_t end, bool write) {
    if (begin < end) out.push_back({core, number, place, begin, end, write});
  };
  const std::uint64_t first = op.first;
  const std::uint64_t last = first + op.count;
  const std::uint64_t dim = op.head_dim;
  const std::size_t keys = buffers_ + std::size_t{2} * op.layer;
  switch (op.opcode) {
    case Opcode::embed:
      return add(op.out, first, last, true);
    case Opcode::rms_norm:
    case Opcode::quantize:
      add(op.in, 0, op.width, false);
      return add(op.out, 0, op.width, true);
    case Opcode::matmul:
      if (op.count == 0) return;
      add(op.in, 0, op.width, false);
      if ((op.flags & op_accumulate) != 0) add(op.out, first, last, false);
      return add(op.out, first, last, true);
    case Opcode::head_norm:
    case Opcode::rope:
      add(op.out, first * dim, last * dim, false);
      return add(op.out, first * dim, last * dim, true);
    case Opcode::store_kv:
      add(op.in, first * dim, last * dim, false);
      add(op.in2, first * dim, last * dim, false);
      add(keys, first, last, true);
      return add(keys + 1, first, last, true);
    case Opcode::attention:
      if (op.count == 0) return;
      add(op.in, first * dim, last * dim, false);
      add(keys, first / op.group, (last - 1) / op.group + 1, false);
      add(keys + 1, first / op.group, (last - 1) / op.group + 1, false);
      return add(op.out, first * dim, last * dim, true);
    case Opcode::swiglu:
      add(op.in, first, last, false);
      add(op.in2, first, last, false);
      return add(op.out, first, last, true);
    case Opcode::sync:
    case Opcode::last_token:
    case Opcode::end:
      return;
  }
}

std::optional<FlowError> Flow::follow(const Access& access) {
  if (access.place < buffers_ && access.op < last_token_) early_[access.place] = true;
  Ranges& known = written_[access.core][access.place];
  if (access.write) {
    known.add(access.begin, access.end);
  } else if (!known.covers(access.begin, access.end)) {
    return FlowError{access.core, access.op,
                     "reads " + describe(access.place) + " [" + std::to_string(access.begin) +
                         ", " + std::to_string(access.end) + ") before all of it is written"};
  }
  return {};
}

std::optional<FlowError> Flow::conflict(const std::vector<Access>& accesses) const {
  for (const Access& a : accesses) {
    if (a.core != 0 || !shared(a.place)) continue;
    for (const Access& b : accesses) {
      if (b.core == 0 || b.place != a.place || (!a.write && !b.write)) continue;
      if (a.begin < b.end && b.begin < a.end)
        return FlowError{b.core, b.op,
                         std::string(b.write ? "writes " : "reads ") + describe(b.place) + " [" +
                             std::to_string(b.begin) + ", " + std::to_string(b.end) +
                             ") that core 0 uses in op " + std::to_string(a.op) +
                             " without a meeting between"};
    }
  }
  return {};
}

std::optional<FlowError> Flow::segment(std::size_t begin, std::size_t end) {
  if (end - begin > segment_ops_max)
    return FlowError{
        0, begin, "more than " + std::to_string(segment_ops_max) + " operations without a meeting"};
  std::vector<Access> accesses;
  for (std::uint32_t core = 0; core < cores_.size(); ++core)
    for (std::size_t i = begin; i < end; ++i) list(core, i, accesses);
  // A race first: it also shows as a read of something unwritten, which would mislead.
  if (std::optional<FlowError> bad = conflict(accesses)) return bad;
  for (const Access& access : accesses)
    if (std::optional<FlowError> bad = follow(access)) return bad;
  meet(accesses);
  return {};
}

void Flow::meet(const std::vector<Access>& accesses) {
  for (const Access& a : accesses)
    if (a.write && shared(a.place)) written_[1 - a.core][a.place].add(a.begin, a.end);
}

std::optional<FlowError> Flow::run() {
  const std::vector<Op>& ops = cores_.front().ops;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].opcode != Opcode::sync && ops[i].opcode != Opcode::end) continue;
    if (std::optional<FlowError> bad = segment(begin, i)) return bad;
    begin = i + 1;
  }
  const std::uint32_t logits = cores_.front().logits;
  if (!written_[0][logits].covers(0, cores_.front().buffers[logits].width))
    return FlowError{0, ops.size() - 1, "the logits are not all written"};
  return {};
}

}   // namespace duet::device
