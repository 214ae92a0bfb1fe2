// validator_seam.hpp: what a test may change about a validation. No program and no configuration
// reaches it.
#pragma once

#include "device/package/validator.hpp"

#include <functional>
#include <set>
#include <string>

namespace duet::device::detail {

struct ValidatorSeam {
  /// Errors of these codes stay in the report but do not refuse the package, so that a test can
  /// show that nothing but their rule stood in its way. Such a package must not be loaded.
  std::set<Code> switched_off;
  /// Called between the hashing of the files and the rules that read them.
  std::function<void()> after_hashing;
};

[[nodiscard]] ValidationReport validate_with_seam(const std::string& directory,
                                                  const ValidateOptions& options,
                                                  const ValidatorSeam& seam);

}   // namespace duet::device::detail
