// host_service.hpp: tells systems that the host's execution context is being destroyed.
#pragma once

#include "runtime/short_lock.hpp"

#include <boost/asio/execution_context.hpp>

#include <memory>
#include <vector>

namespace duet::runtime::detail {

class Core;

/// Lies in the host's execution context. Its shutdown() finishes the systems that still live, while
/// the context's other services can be used.
class HostService final : public boost::asio::execution_context::service {
 public:
  using key_type = HostService;
  static boost::asio::execution_context::id id;

  explicit HostService(boost::asio::execution_context& context);

  void add(const std::shared_ptr<Core>& core);
  void remove(const Core& core) noexcept;

 private:
  void shutdown() noexcept override;

  struct Entry {
    const Core* key;
    std::weak_ptr<Core> core;
  };

  ShortLock lock_;
  std::vector<Entry> cores_;
};

}   // namespace duet::runtime::detail
