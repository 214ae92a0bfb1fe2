// flow.hpp: follows what a graph's operations read and write, to rule out races and reads of old
// data.
#pragma once

#include "device/kernels/executor.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

struct FlowError {
  std::uint32_t core = 0;
  std::size_t op = 0;
  std::string text;
};

/// A set of numbers as ascending, disjoint, non-adjacent half-open ranges.
class Ranges {
 public:
  void add(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool covers(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<Range> ranges_;
};

/// One pass over programs whose operations are valid by themselves and equal but for their shares.
class Flow {
 public:
  Flow(std::span<const Program> cores, const KvLayout& kv, std::uint32_t last_token);

  /// The first conflict between cores, read of something unwritten, or gap in the logits.
  [[nodiscard]] std::optional<FlowError> run();
  /// By buffer, after run(): no operation before last_token touches it.
  [[nodiscard]] std::vector<bool> one_row() const;

 private:
  /// `place` is a buffer, or behind the buffers a layer's keys (even) and values (odd), counted in
  /// heads.
  struct Access {
    std::uint32_t core;
    std::size_t op;
    std::size_t place;
    std::uint64_t begin;
    std::uint64_t end;
    bool write;
  };

  void list(std::uint32_t core, std::size_t number, std::vector<Access>& out) const;
  /// Operations [begin, end), then the meeting that ends them.
  [[nodiscard]] std::optional<FlowError> segment(std::size_t begin, std::size_t end);
  [[nodiscard]] std::optional<FlowError> follow(const Access& access);
  [[nodiscard]] std::optional<FlowError> conflict(const std::vector<Access>& accesses) const;
  [[nodiscard]] bool shared(std::size_t place) const;
  [[nodiscard]] std::string describe(std::size_t place) const;
  void meet(const std::vector<Access>& accesses);

  const std::span<const Program> cores_;
  const std::uint32_t last_token_;
  const std::size_t buffers_;
  std::vector<Ranges> written_[2];   ///< by place: what this core may read.
  std::vector<bool> early_;          ///< by buffer: used before last_token.
};

}   // namespace duet::device
