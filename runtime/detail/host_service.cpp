// host_service.cpp: the list of systems over one execution context.
#include "runtime/detail/host_service.hpp"

#include "runtime/detail/core.hpp"

#include <mutex>
#include <utility>

namespace duet::runtime::detail {

boost::asio::execution_context::id HostService::id;

HostService::HostService(boost::asio::execution_context& context)
    : boost::asio::execution_context::service(context) {}

void HostService::add(const std::shared_ptr<Core>& core) {
  const std::lock_guard guard(lock_);
  cores_.push_back(Entry{core.get(), core});
}

void HostService::remove(const Core& core) noexcept {
  const std::lock_guard guard(lock_);
  std::erase_if(cores_, [&core](const Entry& entry) { return entry.key == &core; });
}

void HostService::shutdown() noexcept {
  std::vector<Entry> cores;
  {
    const std::lock_guard guard(lock_);
    cores.swap(cores_);
  }
  for (const Entry& entry : cores) {
    if (const auto core = entry.core.lock()) core->finish();
  }
}

}   // namespace duet::runtime::detail
