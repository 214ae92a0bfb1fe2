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
