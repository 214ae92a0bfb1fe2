// forgery_test.cpp: each forged package is refused by its own rules, by nothing else, and never
// configured.
#include "device/emulator/emulated_board.hpp"
#include "device/package/detail/validator_seam.hpp"
#include "device/package/package_files.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/forgery_case.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>

namespace duet::device::test {
namespace {

namespace fs = std::filesystem;

std::set<Code> codes_of(const std::set<std::string>& texts) {
  std::set<Code> out;
  for (const CodeInfo& info : code_table()) {
    if (texts.count(code_text(info.code)) != 0) out.insert(info.code);
  }
  return out;
}

/// An emulated board that is asked to load and configure what it is given.
class Loader {
 public:
  Loader() {
    emulator::ThreadedBoardOptions options;
    options.lock_directory = scratch_.path();
    options.open_package = [](const fs::path& directory) {
      return emulator::open_package_directory(directory);
    };
    board_ = emulator::make_emulated_board(std::move(options));
    BOOST_REQUIRE(board_->open().has_value());
  }
  /// True if the board took it and is configured with it.
  bool configures(const std::string& directory) {
    const bool loaded = board_->load_package(directory).has_value();
    const bool configured = board_->configure().has_value();
    BOOST_TEST(loaded == configured);
    return configured;
  }
  [[nodiscard]] std::uint64_t configure_count() const { return board_->counters().configures; }

 private:
  ScratchDirectory scratch_;
  std::unique_ptr<emulator::ThreadedBoard> board_;
};

/// Signature and trust are not the emulated board's question: it takes unsigned packages.
bool is_about_trust(const std::set<std::string>& codes) {
  return std::all_of(codes.begin(), codes.end(),
                     [](const std::string& code) { return code == "P406" || code == "P407"; });
}

void run_cases(const std::vector<Case>& cases) {
  Loader loader;
  for (const Case& c : cases) {
    Forgery forgery;
    c.change(forgery);
    if (!c.seals_itself) forgery.seal();
    const auto report = forgery.validate();
    std::string all;
    for (const Finding& finding : report.findings.list()) all += finding_text(finding) + "\n";
    BOOST_TEST_CONTEXT(c.name << "; findings:\n" << all) {
      BOOST_TEST((report.package == nullptr));
      BOOST_TEST(error_codes(report) == c.codes, boost::test_tools::per_element());
      if (!is_about_trust(c.codes)) BOOST_TEST(!loader.configures(forgery.directory()));
      // With its rules switched off it gets through: nothing else stood in its way.
      const auto through =
          detail::validate_with_seam(forgery.directory(), trusting(), {codes_of(c.codes), {}});
      BOOST_TEST((through.package != nullptr));
      // And each of the rules is needed.
      for (const std::string& kept : c.codes) {
        auto others = codes_of(c.codes);
        others.erase(*codes_of({kept}).begin());
        const auto refused =
            detail::validate_with_seam(forgery.directory(), trusting(), {others, {}});
        BOOST_TEST_CONTEXT(kept << " alone") {
          BOOST_TEST((refused.package == nullptr));
        }
      }
    }
  }
  BOOST_TEST(loader.configure_count() == 0U);
  // The board refuses forgeries, not everything.
  BOOST_TEST(loader.configures(tiny_package()));
  BOOST_TEST(loader.configure_count() == 1U);
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (auto* list : {structure_cases, target_cases, address_cases, tensor_cases, origin_cases,
                     signature_cases, multi_chip_cases, clause_cases}) {
    const auto cases = list();
    out.insert(out.end(), cases.begin(), cases.end());
  }
  return out;
}

/// Puts `id` into every part of a model, as a forger does who wants to hide where it comes from.
void forge_build_id(Forgery& f, const std::string& model, const BuildId& id) {
  for (const Section& section : f.manifest.sections) {
    if (section.model != model || section.path.empty()) continue;
    if (section.kind == SectionKind::program) {
      edit_program(f, section.path, [&](ElfFile& e) { e.build_id = id; });
    } else if (section.kind == SectionKind::command) {
      edit_commands(f, section.path, [&](CommandList& l) { l.build_id = id; });
    } else if (section.kind == SectionKind::csr) {
      edit_registers(f, section.path, [&](CsrList& l) { l.build_id = id; });
    } else if (section.kind == SectionKind::parameter_map) {
      f.patch(section.path, 8, std::string(as_text(id)));
    }
  }
}

/// Puts model B of the single package in `directory` beside model A of the forgery's.
void glue_model_b(Forgery& forgery, const std::string& directory) {
  const auto other = validate_package(directory, trusting());
  BOOST_REQUIRE(other.package != nullptr);
  const Manifest& from = other.package->manifest();
  Manifest& to = forgery.manifest;
  const auto of_b = [](const auto& item) { return item.model == "model-b"; };
  std::erase_if(to.sections, of_b);
  std::erase_if(to.dma_routes, of_b);
  std::erase_if(to.graphs, [](const Graph& g) { return g.name.rfind("model_b", 0) == 0; });
  to.models[1] = from.models[0];
  to.sections.insert(to.sections.end(), from.sections.begin(), from.sections.end());
  to.graphs.insert(to.graphs.end(), from.graphs.begin(), from.graphs.end());
  to.dma_routes.insert(to.dma_routes.end(), from.dma_routes.begin(), from.dma_routes.end());
  fs::remove_all(forgery.at("model-b"));
  fs::copy(directory + "/model-b", forgery.at("model-b"), fs::copy_options::recursive);
  forge_build_id(forgery, "model-b", parse_build_id(to.build_id).value());
}

std::string single_b(const ScratchDirectory& scratch, std::uint32_t chip) {
  write_models(scratch);
  auto options = dual_options(scratch, "single");
  options.models.erase(options.models.begin());
  options.models[0].chip = chip;
  (void)build_package(options).value();
  return options.directory;
}

void check_refused(const Forgery& forgery, const std::set<std::string>& codes) {
  const auto report = forgery.validate();
  std::string all;
  for (const Finding& finding : report.findings.list()) all += finding_text(finding) + "\n";
  BOOST_TEST_CONTEXT("findings:\n" << all) {
    BOOST_TEST(error_codes(report) == codes, boost::test_tools::per_element());
    BOOST_TEST((report.package == nullptr));
    Loader loader;
    BOOST_TEST(!loader.configures(forgery.directory()));
    BOOST_TEST(loader.configure_count() == 0U);
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(forgery)

// The forger's tools change nothing by themselves.
BOOST_AUTO_TEST_CASE(a_resealed_package_is_still_valid) {
  Forgery forgery;
  forgery.seal();
  BOOST_TEST((forgery.validate().package != nullptr));
  edit_program(forgery, "model-a/prefill/ccu0_chip0.elf", [](ElfFile&) {});
  edit_commands(forgery, "model-a/prefill/cpu_ping.cmd", [](CommandList&) {});
  forgery.seal();
  BOOST_TEST((forgery.validate().package != nullptr));
}

//
BOOST_AUTO_TEST_CASE(structure_is_judged) {
  run_cases(structure_cases());
}

//
BOOST_AUTO_TEST_CASE(masks_and_targets_are_judged) {
  run_cases(target_cases());
}

//
BOOST_AUTO_TEST_CASE(addresses_are_judged) {
  run_cases(address_cases());
}

//
BOOST_AUTO_TEST_CASE(tensors_and_profiles_are_judged) {
  run_cases(tensor_cases());
}

// R-3.1 (glued packages), R-6.2
BOOST_AUTO_TEST_CASE(compatibility_and_origin_are_judged) {
  run_cases(origin_cases());
}

//
BOOST_AUTO_TEST_CASE(hashes_and_signature_are_judged) {
  run_cases(signature_cases());
}

//
BOOST_AUTO_TEST_CASE(multi_chip_packages_do_not_pass_as_single_chip_ones) {
  run_cases(multi_chip_cases());
}

//
BOOST_AUTO_TEST_CASE(every_clause_has_its_rule) {
  run_cases(clause_cases());
}

// what the reader of the manifest refuses, hashed and signed again as well. There is no
// package to load without these rules.
BOOST_AUTO_TEST_CASE(a_manifest_that_cannot_be_read_is_refused_with_one_code) {
  struct Edit {
    const char* from;
    const char* to;
    const char* code;
  };
  Loader loader;
  for (const Edit& edit :
       std::vector<Edit>{{"numerics: 1\n", "numerics: 1\nextra: 1\n", "P104"},
                         {"numerics: 1\n", "numerics: 1\nnumerics: 1\n", "P105"},
                         {"numerics: 1\n", "", "P107"},
                         {"numerics: 1\n", "numerics: \"1\"\n", "P106"},
                         {"numerics: 1\n", "numerics: -1\n", "P106"},
                         {"numerics: 1\n", "numerics: 4294967297\n", "P106"},
                         {"numerics: 1\n", "numerics: [1]\n", "P106"},
                         {"norm_epsilon: 1e-0", "norm_epsilon: .nan # ", "P106"},
                         {"norm_epsilon: 1e-0", "norm_epsilon: inf # ", "P106"},
                         {"numerics: 1\n", "numerics:\t1\n", "P103"},
                         {"numerics: 1\n", "numerics: &one 1\n", "P103"},
                         {"numerics: 1\n", "numerics: !!int 1\n", "P103"},
                         {"numerics: 1\n", "numerics: 1\n---\n", "P103"},
                         {"numerics: 1\n", "numerics: [[[[[[[[[[[[[[1]]]]]]]]]]]]]]\n", "P103"}}) {
    Forgery forgery;
    forgery.seal();
    replace_in(forgery, "manifest.yaml", edit.from, edit.to);
    forgery.seal_files();
    const auto report = forgery.validate();
    BOOST_TEST_CONTEXT("manifest with " << edit.to) {
      BOOST_TEST(error_codes(report) == std::set<std::string>{edit.code},
                 boost::test_tools::per_element());
      BOOST_TEST(!loader.configures(forgery.directory()));
    }
  }
  BOOST_TEST(loader.configure_count() == 0U);
}

// Which rules have forgeries: all but those that there is no package to load without.
BOOST_AUTO_TEST_CASE(every_rule_has_a_forgery_of_its_own) {
  const auto cases = all_cases();
  BOOST_TEST(cases.size() >= 150U);
  std::set<std::string> names;
  std::set<std::string> codes;
  std::size_t alone = 0;
  for (const Case& c : cases) {
    BOOST_TEST(names.insert(c.name).second, c.name);
    codes.insert(c.codes.begin(), c.codes.end());
    alone += c.codes.size() == 1 ? 1 : 0;
  }
  BOOST_TEST(alone >= 100U);
  // Directory and reader of the manifest, what depends on the keys that one trusts, and a change
  // during the validation: judged in validator_test, manifest_test, duet_pack_look_test.
  const std::set<std::string> elsewhere = {"P101", "P103", "P104", "P105",
                                           "P107", "P409", "P410", "P411"};
  for (const CodeInfo& info : code_table()) {
    const std::string code = code_text(info.code);
    BOOST_TEST_CONTEXT(code) {
      BOOST_TEST(codes.count(code) + elsewhere.count(code) == 1U);
    }
  }
}

// what is allowed stays allowed: equal addresses on two chips, and one workspace for both
// graphs of a model.
BOOST_AUTO_TEST_CASE(equal_addresses_on_two_chips_and_a_models_own_workspace_are_no_forgery) {
  Forgery forgery;
  std::set<std::uint64_t> chip0;
  std::size_t equal = 0;
  for (const Section& s : forgery.manifest.sections) {
    if (s.chip_mask == 1) chip0.insert(s.address);
  }
  for (const Section& s : forgery.manifest.sections)
    equal += s.chip_mask == 2 ? chip0.count(s.address) : 0;
  BOOST_TEST(equal > 0U);
  BOOST_TEST(forgery.graph("model_a_prefill").workspace ==
             forgery.graph("model_a_decode").workspace);
  BOOST_TEST((forgery.validate().package != nullptr));
}

// model B of another dual package put in place of this one's, names and masks as they should
// be.
BOOST_AUTO_TEST_CASE(two_packages_glued_together_are_refused_by_their_build_ids) {
  const ScratchDirectory scratch;
  write_models(scratch);
  auto options = dual_options(scratch, "other");
  options.kv_slots = 3;
  (void)build_package(options).value();
  const auto other = validate_package(options.directory, trusting());
  Forgery forgery;
  for (const char* folder : {"model-b"}) {
    fs::remove_all(forgery.at(folder));
    fs::copy(options.directory + "/" + folder, forgery.at(folder), fs::copy_options::recursive);
  }
  const Manifest& from = other.package->manifest();
  forgery.manifest.models[1] = from.models[1];
  std::erase_if(forgery.manifest.sections, [](const Section& s) { return s.model == "model-b"; });
  for (const Section& section : from.sections) {
    if (section.model == "model-b") forgery.manifest.sections.push_back(section);
  }
  forgery.seal();
  const auto report = forgery.validate();
  BOOST_TEST(error_codes(report) == std::set<std::string>{"P604"},
             boost::test_tools::per_element());
}

// the same with every build id and the provenance forged: sequence ids, sync units and
// routes were given out twice, because each package was planned alone.
BOOST_AUTO_TEST_CASE(glued_packages_with_forged_build_ids_are_refused_by_their_plans) {
  const ScratchDirectory scratch;
  Forgery forgery;
  glue_model_b(forgery, single_b(scratch, 1));
  forgery.seal();
  check_refused(forgery, {"P210", "P212", "P214"});
}

// two packages for the same chip, glued: their addresses overlap there.
BOOST_AUTO_TEST_CASE(glued_packages_for_one_chip_are_refused_by_their_address_plan) {
  const ScratchDirectory scratch;
  Forgery forgery;
  glue_model_b(forgery, single_b(scratch, 0));
  forgery.seal();
  check_refused(forgery, {"P206", "P210", "P212", "P214", "P302"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
