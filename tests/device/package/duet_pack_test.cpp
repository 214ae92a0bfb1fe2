// duet_pack_test.cpp: the command line of duet-pack: exit codes and messages.
#include "device/package/sha256.hpp"
#include "tests/device/package/duet_pack_run.hpp"
#include "tests/device/package/package_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>

namespace duet::device::test {
namespace {

namespace json = boost::json;

Ended run(const ScratchDirectory& scratch, const std::string& arguments) {
  return run_duet_pack(scratch, arguments);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(duet_pack)

BOOST_AUTO_TEST_CASE(wrong_use_ends_with_2_and_one_line) {
  const ScratchDirectory scratch;
  for (const char* arguments : {"",
                                "frob",
                                "build",
                                "build --model a",
                                "build --model a=x.gguf",
                                "build --model a=x --model a=y -o z",
                                "build --frob",
                                "build --model a=x.gguf --golden b=y -o z",
                                "build --model a=x.gguf --chip a=2 -o z",
                                "build --model a=x.gguf --context nine -o z",
                                "validate",
                                "validate a b",
                                "inspect",
                                "keygen",
                                "sign x",
                                "verify x",
                                "budget",
                                "budget x --reserved 0=1GiB",
                                "budget --reserved 2=1GiB",
                                "budget --reserved 0=much",
                                "budget x --dram 0",
                                "budget x --dram 16GB",
                                "budget x --dram nan",
                                "budget x --context nine",
                                "budget x --context 0",
                                "budget x --sequences 0",
                                "diff",
                                "diff a",
                                "diff a b c",
                                "audit",
                                "schema x"}) {
    const Ended ended = run(scratch, arguments);
    BOOST_TEST_CONTEXT("duet-pack " << arguments << ": " << ended.err) {
      BOOST_TEST(ended.code == 2);
      BOOST_TEST(ended.out.empty());
      BOOST_TEST(ended.err.rfind("duet-pack: ", 0) == 0U);
      BOOST_TEST(ended.err.find('\n') == ended.err.size() - 1);
    }
  }
}

//
BOOST_AUTO_TEST_CASE(a_package_goes_from_key_to_verified) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const std::string dir = scratch.at("p");
  BOOST_TEST(run(scratch, "keygen " + scratch.at("key.pem") + " " + scratch.at("key.pub")).code ==
             0);
  BOOST_TEST(run(scratch, "keygen " + scratch.at("key.pem") + " " + scratch.at("key.pub")).code ==
             1);   // never overwrites
  const Ended built =
      run(scratch, "build --model model-a=" + scratch.at("a.gguf") +
                       " --alias model-a=alpha --model model-b=" + scratch.at("b.gguf") +
                       " --sign-key " + scratch.at("key.pem") + " --json -o " + dir);
  BOOST_TEST_REQUIRE(built.code == 0, built.err);
  const std::string hash = json::parse(built.out).at("hash").as_string().c_str();
  const Ended valid = run(scratch, "validate " + dir + " --json --trust " + scratch.at("key.pub"));
  BOOST_TEST(valid.code == 0);
  BOOST_TEST(json::parse(valid.out).at("valid").as_bool());
  BOOST_TEST(json::parse(valid.out).at("hash").as_string() == hash);
  BOOST_TEST(run(scratch, "verify " + dir + " --trust " + scratch.at("key.pub")).code == 0);
  BOOST_TEST(run(scratch, "validate " + dir).code == 1);
  BOOST_TEST(run(scratch, "validate " + dir + " --allow-unsigned").code == 0);
  const Ended shown = run(scratch, "inspect " + dir);
  BOOST_TEST(shown.out.find("model model-a (alias alpha) on chip 0: qwen3") != std::string::npos);
  BOOST_TEST(
      json::parse(run(scratch, "inspect --json " + dir).out).at("models").as_array().size() == 2U);
  // Another key: re-signing is what changes the verdict.
  BOOST_TEST(run(scratch, "keygen " + scratch.at("other.pem")).code == 0);
  const std::string trust_other = " --trust " + scratch.at("other.pem.pub");
  BOOST_TEST(run(scratch, "verify " + dir + trust_other).code == 1);
  BOOST_TEST(run(scratch, "sign " + dir + " --sign-key " + scratch.at("other.pem")).code == 0);
  BOOST_TEST(run(scratch, "verify " + dir + trust_other).code == 0);
}

//
BOOST_AUTO_TEST_CASE(a_budget_is_told_as_text_as_json_and_as_a_picture) {
  const ScratchDirectory scratch;
  const Ended small = run(scratch, "budget " + tiny_package());   // made for 64 MiB a chip
  BOOST_TEST(small.code == 1, small.err);
  BOOST_TEST(small.out.find("must (the larger of 1 GiB and 15 %)") != std::string::npos, small.out);
  const Ended roomy = run(scratch, "budget " + tiny_package() + " --dram 2GiB");
  BOOST_TEST_REQUIRE(roomy.code == 0, roomy.err);
  BOOST_TEST(roomy.out.find("chip 0: go\n") != std::string::npos, roomy.out);
  BOOST_TEST(roomy.out.find("chip 1: go\n") != std::string::npos, roomy.out);
  BOOST_TEST(roomy.out.find("by the formula") != std::string::npos, roomy.out);
  const Ended wide =
      run(scratch, "budget " + tiny_package() + " --sequences 4000 --dram 1040MiB --json --svg " +
                       scratch.at("x.svg"));
  BOOST_TEST_REQUIRE(wide.code == 1, wide.err);
  const auto answer = json::parse(wide.out).as_object();
  BOOST_TEST(!answer.at("fits").as_bool());
  BOOST_TEST(answer.at("sequences").as_int64() == 4000);
  BOOST_TEST(answer.at("chips").as_array().size() == 2U);
  const auto& chip = answer.at("chips").as_array()[0].as_object();
  BOOST_TEST(chip.at("verdict").as_string() == "no-go");
  BOOST_TEST(chip.at("over").as_int64() > 0);
  BOOST_TEST(chip.at("fits").at("sequences").as_int64() > 0);
  BOOST_TEST(chip.at("fits").at("sequences").as_int64() < 4000);
  BOOST_TEST(ScratchDirectory::read_file(scratch.at("x.svg")).rfind("<svg ", 0) == 0U);
  const Ended vendor =
      run(scratch, "budget --reserved 0=14.075GiB --reserved 1=14.075GiB --dram 16GiB");
  BOOST_TEST(vendor.code == 1);
  BOOST_TEST(vendor.out.find("chip 1: no-go: it takes 1.3 GiB more than 80 % of the chip's DRAM") !=
                 std::string::npos,
             vendor.out);
  const Ended missing = run(scratch, "budget " + scratch.at("none.gguf"));
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(missing.err.find("none.gguf: cannot be opened") != std::string::npos, missing.err);
  BOOST_TEST(missing.out.empty());
}

BOOST_AUTO_TEST_CASE(progress_is_one_line_a_step_and_none_when_quiet) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const std::string build = "build --model m=" + scratch.at("a.gguf") + " -o " + scratch.at("p");
  const Ended told = run(scratch, build);
  BOOST_TEST(told.code == 0);
  BOOST_TEST(told.err == "m: read\nm: weights\nm: golden\nm: golden check\ncheck\n");
  const Ended quiet = run(scratch, build + " --quiet --replace");
  BOOST_TEST(quiet.code == 0);
  BOOST_TEST(quiet.err.empty());
  BOOST_TEST(quiet.out == told.out);   // the same build
}

BOOST_AUTO_TEST_CASE(findings_end_with_1_and_what_is_damaged_is_not_signed) {
  const ScratchDirectory scratch;
  const Forgery forgery;
  forgery.patch("model-a/params/parameters.bin", 40, "\x55");
  ScratchDirectory::write_file(scratch.at("key"), hex_text(test_key().seed()));
  const Ended found = run(scratch, "validate --json --allow-unsigned " + forgery.directory());
  BOOST_TEST(found.code == 1);
  const auto report = json::parse(found.out).as_object();
  BOOST_TEST(!report.at("valid").as_bool());
  BOOST_TEST(report.at("findings").as_array()[0].at("code").as_string() == "P402");
  const Ended sign =
      run(scratch, "sign " + forgery.directory() + " --sign-key " + scratch.at("key"));
  BOOST_TEST(sign.code == 1);
  BOOST_TEST(sign.err.find("P402") != std::string::npos);
  const Ended missing =
      run(scratch, "build --model a=" + scratch.at("none.gguf") + " -o " + scratch.at("p"));
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(missing.err.find("none.gguf: cannot be opened") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists(scratch.at("p")));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
