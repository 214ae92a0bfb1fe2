// system.cpp: a system's handle.
#include "runtime/system.hpp"

namespace duet::runtime {

System::System(boost::asio::any_io_executor executor, SystemOptions options)
    : core_(std::make_shared<detail::Core>(std::move(executor), std::move(options))) {
  core_->attach();
}

System::~System() {
  core_->finish();
}

}   // namespace duet::runtime
