// validator_test.cpp: flipped bytes, missing and foreign files, signatures.
#include "device/package/validator.hpp"
#include "device/package/detail/validator_seam.hpp"
#include "device/package/package_files.hpp"
#include "tests/device/package/package_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace duet::device::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), directory).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_codes(const ValidationReport& report, const std::set<std::string>& wanted) {
  std::string all;
  for (const Finding& finding : report.findings.list()) all += finding_text(finding) + "\n";
  const auto found = error_codes(report);
  BOOST_TEST_CONTEXT("findings:\n" << all) {
    BOOST_TEST(found == wanted, boost::test_tools::per_element());
    BOOST_TEST((report.package == nullptr) == !wanted.empty());
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(validator)

// a flipped byte in any file is found. The signature names the list, the list names every
// file.
BOOST_AUTO_TEST_CASE(one_flipped_byte_in_any_file_is_found) {
  const Forgery forgery;
  std::size_t flips = 0;
  for (const std::string& path : files_of(forgery.directory())) {
    const std::string whole = forgery.read(path);
    BOOST_REQUIRE(!whole.empty());
    const std::size_t size = whole.size();
    for (const std::size_t at : {std::size_t{0}, size / 3, size / 2, size - 1}) {
      std::string broken = whole;
      broken[at] = static_cast<char>(broken[at] ^ (flips % 2 == 0 ? 0x01 : 0x40));
      forgery.write(path, broken);
      const auto codes = error_codes(forgery.validate());
      BOOST_TEST_CONTEXT(path << " byte " << at) {
        BOOST_TEST((codes.count("P402") + codes.count("P401") + codes.count("P407") > 0));
      }
      ++flips;
    }
    forgery.write(path, whole);
  }
  BOOST_TEST(flips > 150U);
  check_codes(forgery.validate(), {});
}

BOOST_AUTO_TEST_CASE(missing_extra_and_cut_files_are_found) {
  for (const std::string& path : files_of(tiny_package())) {
    const Forgery forgery;
    fs::remove(forgery.at(path));
    const auto report = forgery.validate();
    BOOST_TEST_CONTEXT("without " << path) {
      BOOST_TEST((report.package == nullptr));
      BOOST_TEST((report.findings.has(Code::listed_file_missing) ||
                  report.findings.has(Code::file_missing) ||
                  report.findings.has(Code::signature_missing)));
    }
  }
  const Forgery extra;
  extra.write("model-a/extra.bin", "x");
  check_codes(extra.validate(), {"P116", "P404"});
  const Forgery cut;
  cut.write("model-a/params/parameters.bin",
            cut.read("model-a/params/parameters.bin").substr(0, 1000));
  const auto codes = error_codes(cut.validate());
  BOOST_TEST(codes.count("P402") == 1U);
  BOOST_TEST(codes.count("P304") == 1U);
  BOOST_TEST(codes.count("P505") == 1U);
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_none_is_one_finding) {
  check_codes(validate_package("/nonexistent/package", trusting()), {"P101"});
  const ScratchDirectory scratch;
  scratch.write("file", "x");
  check_codes(validate_package(scratch.at("file"), trusting()), {"P101"});
  fs::create_directory(scratch.at("empty"));
  check_codes(validate_package(scratch.at("empty"), trusting()), {"P102", "P406"});
}

//
BOOST_AUTO_TEST_CASE(the_signature_decides_who_is_trusted) {
  Forgery forgery;
  ValidateOptions none;
  check_codes(validate_package(forgery.directory(), none), {"P409"});
  none.allow_unsigned = true;
  const auto unverified = validate_package(forgery.directory(), none);
  check_codes(unverified, {});
  BOOST_TEST((unverified.package->trust() == Trust::unverified));
  BOOST_TEST(unverified.findings.warnings() == 1U);
  // A stranger's key, even if unsigned packages are allowed.
  ValidateOptions stranger;
  stranger.trusted_keys.push_back(public_key(generate_key().value()).value());
  stranger.allow_unsigned = true;
  check_codes(validate_package(forgery.directory(), stranger), {"P407"});
  // One of several keys is enough.
  stranger.trusted_keys.push_back(public_key(test_key()).value());
  check_codes(validate_package(forgery.directory(), stranger), {});
  seal_package(forgery.directory(), nullptr).value();
  check_codes(forgery.validate(), {"P406"});
  forgery.seal_files();
  forgery.write(signature_file, forgery.read(signature_file).substr(1));
  check_codes(forgery.validate(), {"P408"});
  // A list that was made to fit a changed file no longer fits its signature.
  forgery.seal_files();
  const std::string signature = forgery.read(signature_file);
  forgery.write("tokenizer/alpha/tokenizer.json", forgery.read("tokenizer/beta/tokenizer.json"));
  forgery.seal();
  forgery.write(signature_file, signature);
  check_codes(forgery.validate(), {"P407"});
}

// A sparse terabyte in the package costs neither time nor memory.
BOOST_AUTO_TEST_CASE(a_sparse_terabyte_in_the_package_is_refused_unread) {
  const Forgery forgery;
  BOOST_REQUIRE(::truncate(forgery.at("model-a/params/parameters.bin").c_str(), off_t{1} << 40) ==
                0);
  rusage before = {};
  ::getrusage(RUSAGE_SELF, &before);
  const auto report = forgery.validate();
  rusage after = {};
  ::getrusage(RUSAGE_SELF, &after);
  BOOST_TEST((report.package == nullptr));
  BOOST_TEST(report.findings.has(Code::size_mismatch));
  BOOST_TEST(after.ru_maxrss - before.ru_maxrss < 256 * 1024);
  const Forgery manifest;
  BOOST_REQUIRE(::truncate(manifest.at("manifest.yaml").c_str(), off_t{1} << 40) == 0);
  BOOST_TEST(manifest.validate().findings.has(Code::manifest_malformed));
}

// A manifest of 100 MB is refused by its size: it is neither parsed nor hashed.
BOOST_AUTO_TEST_CASE(a_manifest_of_100_MB_is_refused_by_its_size) {
  const Forgery forgery;
  const std::string manifest = forgery.read("manifest.yaml");
  BOOST_REQUIRE(::truncate(forgery.at("manifest.yaml").c_str(), off_t{100} << 20) == 0);
  rusage before = {};
  ::getrusage(RUSAGE_SELF, &before);
  const auto report = forgery.validate();
  rusage after = {};
  ::getrusage(RUSAGE_SELF, &after);
  check_codes(report, {"P103", "P304"});
  BOOST_TEST(after.ru_maxrss - before.ru_maxrss < 64 * 1024);   // KiB: less than the file
  forgery.write("manifest.yaml", manifest);
  check_codes(forgery.validate(), {});
}

// what was judged is what is loaded: a package that changes meanwhile is refused.
BOOST_AUTO_TEST_CASE(a_package_that_changes_while_it_is_read_is_refused) {
  const std::string path = "tokenizer/alpha/tokenizer.json";
  using Change = std::function<void(const Forgery&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"appended to",
       [&](const Forgery& f) {
         std::ofstream(f.at(path), std::ios::binary | std::ios::app) << ' ';
       }},
      {"replaced by the same bytes",
       [&](const Forgery& f) {
         f.write("new", f.read(path));
         fs::rename(f.at("new"), f.at(path));
       }},
      {"removed", [&](const Forgery& f) { fs::remove(f.at(path)); }},
      {"another file added", [](const Forgery& f) { f.write("model-a/more.bin", "x"); }},
      {"a link added", [](const Forgery& f) { fs::create_symlink("manifest.yaml", f.at("link")); }},
      {"moved away", [](const Forgery& f) { fs::rename(f.at("model-b"), f.at("model-c")); }},
  };
  for (const auto& [name, change] : changes) {
    const Forgery forgery;
    const auto report =
        detail::validate_with_seam(forgery.directory(), trusting(), {{}, [&] { change(forgery); }});
    BOOST_TEST_CONTEXT(name) {
      check_codes(report, {"P411"});
    }
  }
  const Forgery untouched;
  check_codes(detail::validate_with_seam(untouched.directory(), trusting(), {{}, [] {}}), {});
}

BOOST_AUTO_TEST_CASE(the_verdict_on_the_signature_is_a_value) {
  const Forgery forgery;
  const PublicKey key = public_key(test_key()).value();
  const auto verdict = [&](const std::vector<PublicKey>& trusted,
                           const std::vector<PublicKey>& revoked) {
    ValidateOptions options;
    options.trusted_keys = trusted;
    options.revoked_keys = revoked;
    return validate_package(forgery.directory(), options);
  };
  const PublicKey other = public_key(generate_key().value()).value();
  BOOST_TEST((verdict({other, key}, {other}).signature == SignatureVerdict::verified));
  BOOST_TEST((verdict({other, key}, {other}).signer == key));
  BOOST_TEST((verdict({}, {other}).signature == SignatureVerdict::unverifiable));
  BOOST_TEST((verdict({other}, {}).signature == SignatureVerdict::stranger));
  BOOST_TEST(!verdict({other}, {}).signer.has_value());
  const auto revoked = verdict({key}, {other, key});
  BOOST_TEST((revoked.signature == SignatureVerdict::revoked));
  check_codes(revoked, {"P410"});
  BOOST_TEST(signature_text(revoked).find("signature revoked, signed by ") == 0U);
  forgery.write(signature_file, "short");
  BOOST_TEST((verdict({key}, {}).signature == SignatureVerdict::malformed));
  fs::remove(forgery.at(signature_file));
  BOOST_TEST(signature_text(verdict({key}, {})) == "signature missing");
}

BOOST_AUTO_TEST_CASE(links_and_special_files_are_refused) {
  const Forgery forgery;
  const std::string golden = forgery.read("model-a/golden/golden.json");
  ScratchDirectory::write_file(forgery.directory() + "-outside.json", golden);
  fs::remove(forgery.at("model-a/golden/golden.json"));
  fs::create_symlink("../../../package-outside.json", forgery.at("model-a/golden/golden.json"));
  const auto codes = error_codes(forgery.validate());
  BOOST_TEST(codes.count("P112") == 1U);
  fs::remove(forgery.at("model-a/golden/golden.json"));
  forgery.write("model-a/golden/golden.json", golden);
  check_codes(forgery.validate(), {});
}

// All findings at once, sorted, each with something to do.
BOOST_AUTO_TEST_CASE(several_faults_are_reported_together) {
  Forgery forgery;
  forgery.section("model-a.kv").chip_mask = 0;
  forgery.graph("model_b_decode").calc_mchip = true;
  forgery.manifest.models[1].quantization = "W4A16";
  forgery.write("compatibility.json", "{}");
  forgery.seal();
  const auto report = forgery.validate();
  check_codes(report, {"P201", "P205", "P512", "P601"});
  for (const Finding& finding : report.findings.list())
    BOOST_TEST(!code_action(finding.code).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
