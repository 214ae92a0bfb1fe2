// configuration.cpp: what the linker looks for; see the header.
#include "runtime/detail/configuration.hpp"

namespace duet::runtime::detail {

void library_is_built_with(const ThisBuild*) noexcept {}

}   // namespace duet::runtime::detail
