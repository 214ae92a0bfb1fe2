// duet_pack_look_test.cpp: schema, inspect, diff and audit, and who signed, from the command line.
#include "device/package/manifest_schema.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "tests/device/package/duet_pack_run.hpp"
#include "tests/device/package/package_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>

namespace duet::device::test {
namespace {

namespace json = boost::json;

std::string text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string().c_str()) : std::string();
}

/// Status by id.
std::map<std::string, std::string> statuses(const json::value& audit) {
  std::map<std::string, std::string> out;
  for (const json::value& item : audit.at("items").as_array())
    out[text(item.at("id"))] = text(item.at("status"));
  return out;
}

const json::object& item(const json::value& audit, const char* id) {
  for (const json::value& one : audit.at("items").as_array()) {
    if (one.at("id").as_string() == id) return one.as_object();
  }
  throw std::logic_error("no item " + std::string(id));
}

std::set<std::string> changed(const json::value& diff, const char* group) {
  std::set<std::string> out;
  for (const json::value& one : diff.at("differences").as_array()) {
    if (one.at("group").as_string() == group) out.insert(text(one.at("key")));
  }
  return out;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(duet_pack_look)

BOOST_AUTO_TEST_CASE(schema_prints_the_schema) {
  const ScratchDirectory scratch;
  const Ended ended = run_duet_pack(scratch, "schema");
  BOOST_TEST(ended.code == 0);
  BOOST_TEST(ended.out == manifest_json_schema());
}

BOOST_AUTO_TEST_CASE(inspect_fits_one_screen_and_shows_a_refused_package_too) {
  const ScratchDirectory scratch;
  const Ended shown = run_duet_pack(scratch, "inspect " + tiny_package());
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(std::count(shown.out.begin(), shown.out.end(), '\n') <= 24);
  for (const char* part : {"dual package", "model model-a (alias alpha) on chip 0",
                           "chip 1: ", "graph model_b_decode", "golden: 4 prompts", ", signed"}) {
    BOOST_TEST_CONTEXT(shown.out << "\nwanted: " << part) {
      BOOST_TEST(shown.out.find(part) != std::string::npos);
    }
  }
  BOOST_TEST(shown.out.find("section chip mask") == std::string::npos);
  Forgery forgery;
  forgery.section("model-a.kv").chip_mask = 3;
  forgery.seal();
  const Ended forged = run_duet_pack(scratch, "inspect --sections " + forgery.directory());
  BOOST_TEST(forged.code == 0);
  BOOST_TEST(forged.out.find("section chip mask 3 at ") != std::string::npos);
  const auto whole = json::parse(run_duet_pack(scratch, "inspect --json " + tiny_package()).out);
  BOOST_TEST(whole.at("models").at(0).at("golden_prompts") == 4);
  BOOST_TEST(whole.at("signed").as_bool());
  forgery.write("manifest.yaml", "a: 1\n");
  const Ended broken = run_duet_pack(scratch, "inspect " + forgery.directory());
  BOOST_TEST(broken.code == 1);
  BOOST_TEST(broken.err.find("manifest.yaml") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(diff_names_every_change_and_nothing_else) {
  const ScratchDirectory scratch;
  const std::string same = "diff " + tiny_package() + " ";
  BOOST_TEST(run_duet_pack(scratch, same + tiny_package()).code == 0);
  Forgery forgery;
  forgery.seal();
  // The same content, written and signed anew.
  BOOST_TEST(run_duet_pack(scratch, same + forgery.directory()).code == 0);
  forgery.graph("model_a_decode").batch = 2;
  forgery.section("model-b.workspace").bytes += 4096;
  forgery.manifest.dma_routes[0].name = "renamed";
  std::string golden = forgery.read("model-a/golden/golden.json");
  const std::size_t at = golden.find("\"tokens\": [") + 11;
  golden.insert(at, "1,");
  forgery.write("model-a/golden/golden.json", golden);
  forgery.write("notes.txt", "x");
  forgery.seal();
  const Ended ended = run_duet_pack(scratch, same + forgery.directory() + " --json");
  BOOST_TEST(ended.code == 1);
  const json::value diff = json::parse(ended.out);
  BOOST_TEST(!diff.at("equal").as_bool());
  using Keys = std::set<std::string>;
  BOOST_TEST((changed(diff, "graphs") == Keys{"graphs.model_a_decode.batch"}));
  BOOST_TEST((changed(diff, "sections") == Keys{"sections.model-b.workspace.bytes"}));
  BOOST_TEST(changed(diff, "dma_routes").count("dma_routes.renamed.window") == 1U);
  BOOST_TEST(changed(diff, "dma_routes").count("dma_routes.model-a.in.window") == 1U);
  BOOST_TEST((changed(diff, "models") == Keys{"models.model-a.golden_sha256"}));
  BOOST_TEST((changed(diff, "goldens") == Keys{"model-a.prompts[0].tokens"}));
  BOOST_TEST(changed(diff, "memory").count("memory.chip1.workspace.bytes") == 1U);
  BOOST_TEST(changed(diff, "provenance").empty());
  BOOST_TEST((changed(diff, "files") == Keys{"manifest.yaml", "model-a/golden/golden.json",
                                             "model_memory_reserved_info.txt", "notes.txt"}));
  const Ended shown = run_duet_pack(scratch, same + forgery.directory());
  BOOST_TEST(shown.out.find("  ~ graphs.model_a_decode.batch: 1 -> 2\n") != std::string::npos);
  BOOST_TEST(shown.out.find("  + notes.txt: 1 bytes") != std::string::npos);
  BOOST_TEST(run_duet_pack(scratch, same + scratch.at("none")).code == 1);
}

//
BOOST_AUTO_TEST_CASE(audit_says_what_is_there_with_evidence_and_what_is_not) {
  const ScratchDirectory scratch;
  const Ended ended = run_duet_pack(scratch, "audit --json " + tiny_package());
  BOOST_TEST(ended.code == 1);   // a tiny model is none of 1B
  const json::value audit = json::parse(ended.out);
  const auto status = statuses(audit);
  for (const char* id : {"15.1.1.prefill",
                         "15.1.1.decode",
                         "15.1.1.parameters",
                         "15.1.1.kv",
                         "15.1.1.workspace",
                         "15.1.1.golden",
                         "15.1.1.tokenizer",
                         "15.1.4",
                         "15.1.5.source",
                         "15.1.5.quantization",
                         "15.1.5.compiler",
                         "15.1.5.compatibility",
                         "15.1.6",
                         "15.1.7.weights",
                         "15.1.7.kv",
                         "15.1.7.workspace",
                         "15.1.7.code",
                         "15.1.7.command",
                         "15.1.7.io",
                         "15.1.7.guard",
                         "15.1.8"}) {
    BOOST_TEST_CONTEXT(id) {
      BOOST_TEST(status.at(id) == "present");
      BOOST_TEST(!item(audit, id).at("evidence").as_array().empty());
    }
  }
  for (const char* id :
       {"15.1.1.model", "15.1.2", "15.1.3", "15.1.5.commit", "15.1.5.command", "20.4"}) {
    BOOST_TEST_CONTEXT(id) {
      BOOST_TEST(status.at(id) == "missing");
      BOOST_TEST(!item(audit, id).at("note").as_string().empty());
    }
  }
  for (const char* id : {"15.1.7.peak", "20.1", "20.2", "20.3", "20.5"})
    BOOST_TEST(status.at(id) == "unverifiable");
  const json::value& first = item(audit, "15.1.1.kv").at("evidence").at(0);
  BOOST_TEST(first.at("file").as_string() == "manifest.yaml");
  BOOST_TEST(first.at("key").as_string() == "models.model-a.kv.section");
  BOOST_TEST(text(first.at("value")).find("model-a.kv, ") == 0U);
  const Ended markdown = run_duet_pack(scratch, "audit " + tiny_package());
  BOOST_TEST(markdown.out.find("# Audit\n") == 0U);
  BOOST_TEST(markdown.out.find("\n| 15.1.8 | no cross-chip D2D, gather or reduce | present | ") !=
             std::string::npos);
}

// an item whose own rule is broken is not there; the others stay.
BOOST_AUTO_TEST_CASE(audit_believes_no_item_that_validation_refuses) {
  const ScratchDirectory scratch;
  Forgery forgery;
  forgery.write("tokenizer/alpha/tokenizer.json", "{}");
  forgery.seal();
  const auto first = json::parse(run_duet_pack(scratch, "audit --json " + forgery.directory()).out);
  BOOST_TEST(statuses(first).at("15.1.1.tokenizer") == "missing");
  BOOST_TEST(text(item(first, "15.1.1.tokenizer").at("note")).find("P510") == 0U);
  BOOST_TEST(statuses(first).at("15.1.1.kv") == "present");
  BOOST_TEST(statuses(first).at("15.1.8") == "missing");   // not all of it could be judged
  Forgery routes;
  routes.manifest.dma_routes[0].from = "chip1";
  routes.seal();
  const auto second = json::parse(run_duet_pack(scratch, "audit --json " + routes.directory()).out);
  BOOST_TEST(text(item(second, "15.1.8").at("note")).find("P211") == 0U);
}

// the same model for both chips may come as two packages or as one.
BOOST_AUTO_TEST_CASE(audit_finds_the_twin_of_a_model_in_another_package) {
  const ScratchDirectory scratch;
  write_models(scratch);
  auto options = dual_options(scratch, "twins");
  options.models[1].gguf = options.models[0].gguf;
  (void)build_package(options).value();
  const std::string twins = "audit --json " + scratch.at("twins");
  const auto both = statuses(json::parse(run_duet_pack(scratch, twins).out));
  BOOST_TEST(both.at("15.1.2") == "present");
  BOOST_TEST(both.at("15.1.3") == "present");
  BOOST_TEST(both.at("15.1.4") == "missing");
  auto single = dual_options(scratch, "single");
  single.models.erase(single.models.begin());   // b on chip 1
  single.models[0].gguf = options.models[0].gguf;
  (void)build_package(single).value();
  const auto alone = "audit --json " + scratch.at("single");
  BOOST_TEST(statuses(json::parse(run_duet_pack(scratch, alone).out)).at("15.1.2") == "missing");
  const auto with = json::parse(run_duet_pack(scratch, alone + " --with " + tiny_package()).out);
  BOOST_TEST(statuses(with).at("15.1.2") == "present");
  BOOST_TEST(statuses(with).at("15.1.1.prefill") == "present");
  BOOST_TEST(with.at("packages").as_array().size() == 2U);
}

//
BOOST_AUTO_TEST_CASE(a_revoked_key_is_refused_whoever_trusts_it) {
  const ScratchDirectory scratch;
  const std::string key = hex_text(public_key(test_key()).value());
  scratch.write("key.pub", key);
  scratch.write("revoked",
                "# lost in March\n\n" + std::string(64, '1') + "\n" + key + " # laptop\n");
  scratch.write("others", std::string(64, '1') + "\n");
  const std::string trusted = tiny_package() + " --json --trust " + scratch.at("key.pub");
  const auto good =
      run_duet_pack(scratch, "verify " + trusted + " --revoked " + scratch.at("others"));
  BOOST_TEST(good.code == 0);
  BOOST_TEST(text(json::parse(good.out).at("signature")) == "verified");
  BOOST_TEST(text(json::parse(good.out).at("signer")) == key);
  for (const std::string& command : {"verify " + trusted, "validate " + trusted,
                                     "validate --json --allow-unsigned " + tiny_package()}) {
    const auto ended = run_duet_pack(scratch, command + " --revoked " + scratch.at("revoked"));
    BOOST_TEST_CONTEXT(command << "\n" << ended.out << ended.err) {
      BOOST_TEST(ended.code == 1);
      const json::value report = json::parse(ended.out);
      BOOST_TEST(text(report.at("signature")) == "revoked");
      BOOST_TEST(report.at("findings").as_array().size() == 1U);
      BOOST_TEST(text(report.at("findings").at(0).at("code")) == "P410");
    }
  }
  for (const char* bad : {"", "# nothing\n", "xyz\n", "00\n"}) {
    scratch.write("bad", bad);
    const auto ended =
        run_duet_pack(scratch, "verify " + trusted + " --revoked " + scratch.at("bad"));
    BOOST_TEST(ended.code == 1);
    BOOST_TEST(ended.out.empty());   // a list that cannot be read is no empty list
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
