// type_row.cpp: the names of message types.
#include "runtime/detail/type_row.hpp"

#include "runtime/short_lock.hpp"

#include <array>
#include <atomic>
#include <mutex>

namespace duet::runtime::detail {
namespace {

struct Rows {
  ShortLock lock;
  std::array<std::atomic<const char*>, TypeRow::rows_max> names{};
  std::atomic<std::uint32_t> count = 0;
};

constinit Rows rows;   // types register while static objects are constructed

}   // namespace

TypeRow::TypeRow(const char* name) noexcept {
  const std::lock_guard guard(rows.lock);
  std::uint32_t count = rows.count.load(std::memory_order_relaxed);
  if (count == 0) rows.names[count++].store("other", std::memory_order_relaxed);
  for (std::uint32_t i = 1; i < count; ++i) {
    if (std::string_view(rows.names[i].load(std::memory_order_relaxed)) == name) index_ = i;
  }
  if (index_ == 0 && count < rows_max) {
    index_ = count;
    rows.names[count++].store(name, std::memory_order_relaxed);
  }
  rows.count.store(count, std::memory_order_release);
}

std::uint32_t TypeRow::count() noexcept {
  return rows.count.load(std::memory_order_acquire);
}

const char* TypeRow::name(std::uint32_t index) noexcept {
  return rows.names[index].load(std::memory_order_relaxed);
}

}   // namespace duet::runtime::detail
