// targets.hpp: runs a check on every SIMD target that is compiled in and supported here.
#pragma once

#include "device/kernels/executor.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace duet::device::test {

/// Once a target and program.
inline void say_not_run(const std::string& target) {
  static std::set<std::string> said;
  if (said.insert(target).second)
    std::cout << "SIMD target " << target << ": not run, this CPU does not have it\n";
}

/// Calls body(name) with dispatch restricted to each target; prints which ones this CPU lacks.
template <typename Body>
void on_every_target(Body body) {
  const std::vector<std::string> here = simd_targets();
  for (const std::string& target : simd_targets_compiled()) {
    if (std::find(here.begin(), here.end(), target) == here.end()) {
      say_not_run(target);
      continue;
    }
    BOOST_REQUIRE(force_simd_target(target));
    BOOST_TEST_CONTEXT("SIMD target " << target) {
      body(target);
    }
  }
  force_simd_target("");
}

}   // namespace duet::device::test
