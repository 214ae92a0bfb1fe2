// forgery_clauses.cpp: forgeries by what the requirements name: hashes and signature, multi-chip
// packages made to look single-chip, and the clauses of validation.
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/forgery_case.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace duet::device::test {
namespace {

namespace fs = std::filesystem;

/// Signs whatever the checksum list says.
void sign_list(Forgery& f, const PrivateKey& key = test_key()) {
  const auto signature = sign(as_byte_span(f.read(checksums_file)), key).value();
  f.write(signature_file, std::string(as_text(signature)));
}

/// Changes the checksum list as text and signs it.
void edit_list(Forgery& f, const std::function<void(Checksums&)>& change) {
  f.seal();
  Checksums list = read_checksums(f.read(checksums_file)).value();
  change(list);
  f.write(checksums_file, write_checksums(list));
  sign_list(f);
}

void remove_sections(Forgery& f, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    fs::remove(f.at(f.section(name).path));
    std::erase_if(f.manifest.sections, [&](const Section& s) { return s.name == name; });
  }
}

/// Adds a program to model A's decode graph as the compiler of a multi-chip model would: the same
/// core, of chip 1; its mask is edited to chip 0.
void add_program_of_chip_1(Forgery& f) {
  Section extra = f.section("model-a.decode.ccu0");
  const std::string path = "model-a/decode/ccu0_chip1.elf";
  f.write(path, f.read(extra.path));
  edit_program(f, path, [](ElfFile& e) { e.program.chip = 1; });
  extra.name = "model-a.decode.ccu0.chip1";
  extra.path = path;
  extra.address = 48U << 20;   // free in the fixture's 64 MiB
  f.manifest.sections.push_back(extra);
  f.graph("model_a_decode").programs.push_back(extra.name);
}

void halve_rows(Forgery& f, std::size_t model, const std::string& name) {
  Tensor& t = tensor(f, model, name);
  t.shape[0] /= 2;
  t.bytes /= 2;
}

}   // namespace

// the forger holds a trusted key and still cannot sign what does not fit.
std::vector<Case> signature_cases() {
  return {
      {"a list out of order",
       [](Forgery& f) {
         f.seal();
         const std::string list = f.read(checksums_file);
         const std::size_t first = list.find('\n') + 1;
         f.write(checksums_file, list.substr(first) + list.substr(0, first));
         sign_list(f);
       },
       {"P401"},
       true},
      {"a list with a path upwards",
       [](Forgery& f) {
         f.seal();
         f.write(checksums_file, std::string(64, 'a') + "  ../outside\n" + f.read(checksums_file));
         sign_list(f);
       },
       {"P401"},
       true},
      {"a list that lists itself",
       [](Forgery& f) {
         edit_list(f, [](Checksums& list) { list[checksums_file] = std::string(64, 'a'); });
       },
       {"P401"},
       true},
      {"a wrong hash in the list",
       [](Forgery& f) {
         edit_list(f, [](Checksums& list) {
           list["model-a/params/parameters.bin"] = std::string(64, 'a');
         });
       },
       {"P402"},
       true},
      {"a listed file that is not there",
       [](Forgery& f) {
         edit_list(f, [](Checksums& list) { list["model-a/more.bin"] = std::string(64, 'a'); });
       },
       {"P403"},
       true},
      {"a file that the list leaves out",
       [](Forgery& f) {
         edit_list(f, [](Checksums& list) { list.erase("model-a/golden/golden.json"); });
       },
       {"P404"},
       true},
      {"a wrong hash in the manifest",
       [](Forgery& f) {
         f.seal();
         f.section("model-b.params").sha256 = std::string(64, 'a');
         f.write(manifest_file, write_manifest(f.manifest));
         f.seal_files();
       },
       {"P405"},
       true},
      {"a wrong hash of a golden in the manifest",
       [](Forgery& f) {
         f.seal();
         f.manifest.models[1].golden_sha256 = std::string(64, 'b');
         f.write(manifest_file, write_manifest(f.manifest));
         f.seal_files();
       },
       {"P405"},
       true},
      {"no signature",
       [](Forgery& f) {
         f.seal();
         fs::remove(f.at(signature_file));
       },
       {"P406"},
       true},
      {"a stranger's signature",
       [](Forgery& f) {
         f.seal();
         sign_list(f, generate_key().value());
       },
       {"P407"},
       true},
      {"a signature of other bytes",
       [](Forgery& f) {
         f.seal();
         const auto other = sign(as_byte_span("another list"), test_key()).value();
         f.write(signature_file, std::string(as_text(other)));
       },
       {"P407"},
       true},
      {"a signature with a line end",
       [](Forgery& f) {
         f.seal();
         f.write(signature_file, f.read(signature_file) + "\n");
       },
       {"P408"},
       true},
      {"a file of every package missing",
       [](Forgery& f) { fs::remove(f.at(compatibility_file)); },
       {"P102"}},
  };
}

//
std::vector<Case> multi_chip_cases() {
  return {
      {"the programs of a graph removed",
       [](Forgery& f) {
         f.graph("model_b_decode").programs.clear();
         remove_sections(f, {"model-b.decode.ccu0", "model-b.decode.ccu1"});
       },
       {"P208"}},
      {"one program removed with its file",
       [](Forgery& f) {
         f.graph("model_b_decode").programs.pop_back();
         remove_sections(f, {"model-b.decode.ccu1"});
       },
       {"P208"}},
      {"the command lists of a graph removed",
       [](Forgery& f) {
         f.graph("model_b_decode").commands.clear();
         remove_sections(f, {"model-b.decode.cpu.ping", "model-b.decode.cpu.pong",
                             "model-b.decode.pld.ping", "model-b.decode.pld.pong"});
       },
       {"P117"}},
      {"a mask edited from 3 to 1: the route to the other chip dangles",
       [](Forgery& f) {
         f.manifest.dma_routes.push_back(
             {"model-a.in.chip1", "model-a", "host", "chip1", f.manifest.dma_routes[0].window});
       },
       {"P211"}},
      {"a mask edited from 3 to 1: a way from chip to chip dangles",
       [](Forgery& f) {
         f.manifest.dma_routes.push_back(
             {"model-a.d2d", "model-a", "chip0", "chip1", f.manifest.dma_routes[0].window});
       },
       {"P211"}},
      {"a mask edited from 3 to 1: a section of the other chip dangles",
       [](Forgery& f) {
         Section half = f.section("model-a.kv");
         half.name = "model-a.kv.chip1";
         half.address = 48U << 20;
         half.bytes = 4096;
         f.manifest.sections.push_back(half);
       },
       {"P115"}},
      {"a mask edited from 3 to 1: the program of the other chip is bound",
       add_program_of_chip_1,
       {"P207", "P208"}},
      {"a mask edited from 3 to 1: the program of the other chip is not bound",
       [](Forgery& f) {
         add_program_of_chip_1(f);
         f.graph("model_a_decode").programs.pop_back();
       },
       {"P115", "P207"}},
      {"a mask edited from 3 to 2",
       [](Forgery& f) { f.section("model-a.output.pong").chip_mask = 2; },
       {"P203", "P302"}},
      {"two shards posing as two models: rows of the feed-forward",
       [](Forgery& f) {
         for (const std::size_t model : {0U, 1U}) {
           halve_rows(f, model, "blk.0.ffn_up.weight");
           halve_rows(f, model, "blk.0.ffn_gate.weight");
         }
       },
       {"P503"}},
      {"a shard: half of the query heads in the tensors",
       [](Forgery& f) { halve_rows(f, 0, "blk.0.attn_q.weight"); },
       {"P503"}},
      {"a shard: half of the key and value heads in the tensors",
       [](Forgery& f) {
         halve_rows(f, 0, "blk.0.attn_k.weight");
         halve_rows(f, 0, "blk.0.attn_v.weight");
       },
       {"P503"}},
      {"a shard: half of the vocabulary in the output matrix",
       [](Forgery& f) { halve_rows(f, 1, "output.weight"); },
       {"P503"}},
      {"a shard: half of the columns",
       [](Forgery& f) {
         Tensor& t = tensor(f, 0, "blk.0.ffn_down.weight");
         t.shape[1] /= 2;
         t.bytes /= 2;
       },
       {"P503"}},
      {"a shard: a layer left out",
       [](Forgery& f) {
         std::erase_if(f.manifest.models[0].tensors,
                       [](const Tensor& t) { return t.name.rfind("blk.0.", 0) == 0; });
       },
       {"P502"}},
      {"a shard: half of the feed-forward in the configuration",
       [](Forgery& f) { f.manifest.models[0].config.feed_forward -= 32; },
       {"P503"}},
  };
}

//
std::vector<Case> clause_cases() {
  return {
      {"A works in B's workspace",
       [](Forgery& f) { f.graph("model_a_decode").workspace = "model-b.workspace"; },
       {"P113", "P215"}},
      {"A keeps its sequences in B's KV",
       [](Forgery& f) { f.manifest.models[0].kv.section = "model-b.kv"; },
       {"P113", "P115", "P215"}},
      {"A's job comes through B's staging",
       [](Forgery& f) { f.section("model-b.input.ping").model = "model-a"; },
       {"P115", "P117", "P203"}},
      {"B's parameters with A's mask",
       [](Forgery& f) { f.section("model-b.params").chip_mask = 1; },
       {"P203", "P302"}},
      {"A's KV in the middle of A's parameters",
       [](Forgery& f) {
         f.section("model-a.workspace").address = f.section("model-a.params").address;
       },
       {"P215", "P302"}},
      {"one sync unit for start and end",
       [](Forgery& f) {
         auto& units = f.graph("model_a_decode").sync_units;
         units[1] = units[0];
       },
       {"P210", "P212"}},
      {"one meeting for both engines",
       [](Forgery& f) {
         const auto units = f.graph("model_a_decode").sync_units;
         for (const char* list : {"model-a/decode/cpu_pong.cmd", "model-a/decode/pld_pong.cmd"}) {
           edit_commands(f, list, [&](CommandList& l) {
             for (Command& command : l.commands) {
               if (command.sync_unit == units[2]) command.sync_unit = units[0];
               if (command.sync_unit == units[3]) command.sync_unit = units[1];
             }
           });
         }
       },
       {"P212"}},
      {"a job that never completes",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/cpu_ping.cmd",
                       [](CommandList& l) { l.commands.pop_back(); });
         f.section("model-a.decode.cpu.ping").bytes = f.read("model-a/decode/cpu_ping.cmd").size();
       },
       {"P212"}},
      {"a list for the other chip",
       [](Forgery& f) {
         edit_commands(f, "model-b/prefill/pld_pong.cmd", [](CommandList& l) { l.chip = 0; });
       },
       {"P209"}},
      {"a list that runs no core",
       [](Forgery& f) {
         edit_commands(f, "model-b/prefill/pld_pong.cmd",
                       [](CommandList& l) { l.commands[1].core_mask = 0; });
       },
       {"P212"}},
      {"a host window that is a path",
       [](Forgery& f) { f.manifest.dma_routes[0].window = "../window"; },
       {"P211"}},
      {"a route of nobody",
       [](Forgery& f) {
         f.manifest.dma_routes.push_back({"spare", "model-c", "host", "chip0", "spare"});
       },
       {"P113"}},
      {"registers of the other chip",
       [](Forgery& f) {
         edit_registers(f, "model-a/prefill/csr.bin", [](CsrList& l) { l.chip = 1; });
       },
       {"P215"}},
      {"a register left out",
       [](Forgery& f) {
         edit_registers(f, "model-a/prefill/csr.bin", [](CsrList& l) { l.words.pop_back(); });
         f.section("model-a.prefill.csr").bytes = f.read("model-a/prefill/csr.bin").size();
       },
       {"P215"}},
      {"registers that let a job write elsewhere",
       [](Forgery& f) {
         edit_registers(f, "model-a/prefill/csr.bin", [](CsrList& l) {
           for (CsrWord& word : l.words) {
             if (word.number == CsrRegister::workspace_base) word.value += 4096;
           }
         });
       },
       {"P215"}},
      {"registers of another build",
       [](Forgery& f) {
         edit_registers(f, "model-a/prefill/csr.bin",
                        [](CsrList& l) { l.build_id[3] ^= std::byte{1}; });
       },
       {"P604"}},
      {"a prefill of a batch",
       [](Forgery& f) { f.graph("model_b_prefill").batch = 4; },
       {"P215", "P509"}},
      {"a prefill with another output",
       [](Forgery& f) {
         auto& outputs = f.graph("model_b_prefill").outputs;
         outputs.push_back(outputs[0]);
       },
       {"P509"}},
      {"an output of another type",
       [](Forgery& f) { f.graph("model_b_prefill").outputs[0].dtype = DType::bf16; },
       {"P509"}},
      {"a decode that splits prompts",
       [](Forgery& f) { f.graph("model_b_decode").split_prefill = true; },
       {"P509"}},
      {"a provenance of another build",
       [](Forgery& f) {
         replace_in(f, provenance_file, f.manifest.build_id, std::string(32, '7'));
       },
       {"P604"}},
      {"no provenance of one model",
       [](Forgery& f) { replace_in(f, provenance_file, "\"model-b\"", "\"model-c\""); },
       {"P605"}},
      {"a golden that is the tokenizer",
       [](Forgery& f) { f.manifest.models[0].golden = f.manifest.models[0].tokenizer; },
       {"P110", "P116", "P511"}},
      {"three models",
       [](Forgery& f) {
         f.manifest.models.push_back(f.manifest.models[1]);
         f.manifest.models[2].name = "model-c";
         f.manifest.models[2].alias = "gamma";
       },
       {"P109", "P110", "P113", "P114", "P117", "P206", "P214", "P511", "P605"}},
      {"reserved memory with a file",
       [](Forgery& f) { f.section("model-a.kv").path = "model-a/params/parameters.bin"; },
       {"P106", "P304"}},
      {"an ELF whose section table lies outside",
       [](Forgery& f) { f.patch("model-a/decode/ccu1_chip0.elf", 40, std::string(8, '\xff')); },
       {"P118"}},
      {"an ELF for another machine",
       [](Forgery& f) { f.patch("model-a/decode/ccu1_chip0.elf", 18, std::string("\x3e\0", 2)); },
       {"P118"}},
      {"an ELF with bytes behind its end",
       [](Forgery& f) {
         const std::string path = "model-a/decode/ccu1_chip0.elf";
         f.write(path, f.read(path) + std::string(64, 'x'));
         f.section("model-a.decode.ccu1").bytes += 64;
       },
       {"P118"}},
      {"a command list that says more commands than it has",
       [](Forgery& f) { f.patch("model-a/decode/cpu_ping.cmd", 164, "\x3f"); },
       {"P118"}},
      {"registers of another format",
       [](Forgery& f) { f.patch("model-a/decode/csr.bin", 7, "9"); },
       {"P118"}},
      {"a parameter map that says more tensors than it has",
       [](Forgery& f) { f.patch("model-a/params/parameter_map.bin", 24, "\xff\xff"); },
       {"P118"}},
      {"a core that the chip has not",
       [](Forgery& f) { f.section("model-a.decode.ccu1").core = 2; },
       {"P207", "P208"}},
  };
}

}   // namespace duet::device::test
