// one_fault.hpp: a fault at one visit of one point, and the check of a refusal.
#pragma once

#include "device/emulator/fault_hook.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

namespace duet::device::emulator::fixture {

/// Answers one fault at one point, the given visit of it.
class OneFault final : public FaultHook {
 public:
  OneFault(FaultPoint point, Fault fault, std::uint64_t visit = 0)
      : point_(point), fault_(fault), visit_(visit) {}
  Fault consult(const FaultSite& site) noexcept override {
    seen.push_back(site);
    return site.point == point_ && site.visit == visit_ ? fault_ : Fault{};
  }
  std::vector<FaultSite> seen;

 private:
  FaultPoint point_;
  Fault fault_;
  std::uint64_t visit_;
};

}   // namespace duet::device::emulator::fixture

#define REFUSED(expression, value)                                         \
  do {                                                                     \
    const auto answer_ = (expression);                                     \
    BOOST_REQUIRE_MESSAGE(answer_.has_error(), #expression);               \
    BOOST_TEST((answer_.error().code == (value)), answer_.error().detail); \
    BOOST_TEST(!answer_.error().detail.empty());                           \
  } while (false)
