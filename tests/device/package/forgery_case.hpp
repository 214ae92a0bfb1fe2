// forgery_case.hpp: forged packages, hashed and signed again with a trusted key, so that only their
// own rules can refuse them.
#pragma once

#include "device/program/command.hpp"
#include "device/program/elf.hpp"
#include "tests/device/package/package_fixture.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace duet::device::test {

/// A change to a sound package and the codes that must refuse it: these and no others.
struct Case {
  const char* name;
  std::function<void(Forgery&)> change;
  std::set<std::string> codes;
  bool seals_itself = false;   ///< hashes or signature are what is forged: not sealed after it.
};

void edit_program(Forgery& f, const std::string& path, const std::function<void(ElfFile&)>& change);
void edit_commands(Forgery& f, const std::string& path,
                   const std::function<void(CommandList&)>& change);
void edit_registers(Forgery& f, const std::string& path,
                    const std::function<void(CsrList&)>& change);
void replace_in(Forgery& f, const std::string& path, const std::string& from,
                const std::string& to);
/// A tensor by the number of its model and its name.
[[nodiscard]] Tensor& tensor(Forgery& f, std::size_t model, const std::string& name);

[[nodiscard]] std::vector<Case> structure_cases();
[[nodiscard]] std::vector<Case> target_cases();
[[nodiscard]] std::vector<Case> address_cases();
[[nodiscard]] std::vector<Case> tensor_cases();
[[nodiscard]] std::vector<Case> origin_cases();
[[nodiscard]] std::vector<Case> signature_cases();
/// What names, and the clauses of.
[[nodiscard]] std::vector<Case> multi_chip_cases();
[[nodiscard]] std::vector<Case> clause_cases();

}   // namespace duet::device::test
