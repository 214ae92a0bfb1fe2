// forgery_cases.cpp: forgeries by the kind of what is forged.
#include "device/package/package_files.hpp"
#include "tests/device/package/forgery_case.hpp"

#include <algorithm>
#include <vector>

namespace duet::device::test {

//
std::vector<Case> structure_cases() {
  return {
      {"schema", [](Forgery& f) { f.manifest.schema = "duet-package/v9"; }, {"P108"}},
      {"kind", [](Forgery& f) { f.manifest.kind = "single"; }, {"P109"}},
      {"kind unknown", [](Forgery& f) { f.manifest.kind = "triple"; }, {"P109"}},
      {"alias twice", [](Forgery& f) { f.manifest.models[1].alias = "alpha"; }, {"P110"}},
      {"route twice", [](Forgery& f) { f.manifest.dma_routes[1].name = "model-a.in"; }, {"P110"}},
      {"graph twice",
       [](Forgery& f) { f.manifest.graphs.push_back(f.manifest.graphs[0]); },
       {"P110", "P210"}},
      {"section twice",
       [](Forgery& f) { f.manifest.sections.push_back(f.section("model-a.workspace")); },
       {"P110", "P302"}},
      {"alias with blanks", [](Forgery& f) { f.manifest.models[0].alias = "a b"; }, {"P111"}},
      {"path upwards",
       [](Forgery& f) { f.section("model-a.params").path = "../parameters.bin"; },
       {"P112", "P116"}},
      {"absolute path",
       [](Forgery& f) { f.manifest.models[0].golden = "/etc/passwd"; },
       {"P112", "P116"}},
      {"a file bound twice",
       [](Forgery& f) {
         f.section("model-a.decode.csr").path = f.section("model-a.prefill.csr").path;
       },
       {"P110", "P116", "P215"}},
      {"unknown graph",
       [](Forgery& f) { f.manifest.models[0].decode = "model_a.decod"; },
       {"P113", "P114", "P115"}},
      {"prefill as decode",
       [](Forgery& f) { f.manifest.models[0].decode = "model_a_prefill"; },
       {"P114", "P115"}},
      {"other model's graph",
       [](Forgery& f) { f.manifest.models[0].decode = "model_b_decode"; },
       {"P113", "P114", "P115", "P204", "P209", "P215", "P508"}},
      {"other model's parameters",
       [](Forgery& f) { f.manifest.models[0].parameters = "model-b.params"; },
       {"P113", "P115"}},
      {"unused section",
       [](Forgery& f) {
         Section spare = f.section("model-a.workspace");
         spare.name = "spare";
         spare.address = 32U << 20;
         f.manifest.sections.push_back(spare);
       },
       {"P115"}},
      {"unbound file", [](Forgery& f) { f.write("notes.txt", "x"); }, {"P116"}},
      {"no pong command",
       [](Forgery& f) { f.graph("model_a_decode").commands.pop_back(); },
       {"P115", "P117"}},
      {"no input for pong",
       [](Forgery& f) {
         std::erase_if(f.manifest.sections,
                       [](const Section& s) { return s.name == "model-a.input.pong"; });
       },
       {"P117"}},
      {"no ELF but an ELF name",
       [](Forgery& f) { f.patch("model-a/decode/ccu0_chip0.elf", 0, "X"); },
       {"P118"}},
  };
}

//
std::vector<Case> target_cases() {
  return {
      {"mask 3", [](Forgery& f) { f.section("model-a.params").chip_mask = 3; }, {"P201", "P302"}},
      {"mask 0", [](Forgery& f) { f.section("model-a.params").chip_mask = 0; }, {"P201"}},
      {"mask of chip 2",
       [](Forgery& f) { f.section("model-a.params").chip_mask = 4; },
       {"P202", "P203"}},
      {"mask of chip 31",
       [](Forgery& f) { f.section("model-a.kv").chip_mask = 0x80000000U; },
       {"P202", "P203"}},
      {"mask edited to the other chip",
       [](Forgery& f) { f.section("model-a.decode.ccu0").chip_mask = 2; },
       {"P203", "P302"}},
      {"a model moved by its chip number alone",
       [](Forgery& f) { f.manifest.models[0].chip = 1; },
       {"P203", "P204", "P206", "P207", "P209", "P211", "P215"}},
      {"a model on chip 2",
       [](Forgery& f) { f.manifest.models[0].chip = 2; },
       {"P202", "P203", "P204", "P207", "P209", "P211", "P215"}},
      {"graph on both chips",
       [](Forgery& f) {
         f.graph("model_a_prefill").target_chips = {0, 1};
       },
       {"P204"}},
      {"graph on no chip",
       [](Forgery& f) { f.graph("model_a_prefill").target_chips = {}; },
       {"P204"}},
      {"graph on chip 7",
       [](Forgery& f) { f.graph("model_a_prefill").target_chips = {7}; },
       {"P202", "P204"}},
      {"MCHIP graph",
       [](Forgery& f) { f.graph("model_a_prefill").mode = ChipMode::mchip; },
       {"P205"}},
      {"multi-chip task",
       [](Forgery& f) { f.graph("model_b_decode").task = TaskKind::multiple_chip; },
       {"P205"}},
      {"calc_mchip", [](Forgery& f) { f.graph("model_b_decode").calc_mchip = true; }, {"P205"}},
      {"program of the other graph",
       [](Forgery& f) {
         f.write("model-a/decode/ccu0_chip0.elf", f.read("model-a/prefill/ccu0_chip0.elf"));
         f.section("model-a.decode.ccu0").bytes = f.read("model-a/decode/ccu0_chip0.elf").size();
       },
       {"P207", "P508"}},
      {"program renamed to the other chip",
       [](Forgery& f) {
         edit_program(f, "model-b/decode/ccu0_chip1.elf", [](ElfFile& e) { e.program.chip = 0; });
       },
       {"P207", "P508"}},
      {"both programs for core 0",
       [](Forgery& f) { f.section("model-a.decode.ccu1").core = 0; },
       {"P207", "P208"}},
      {"a CalCore without a program",
       [](Forgery& f) { f.graph("model_a_decode").programs.pop_back(); },
       {"P115", "P208"}},
      {"ping list as pong",
       [](Forgery& f) {
         f.write("model-a/decode/cpu_pong.cmd", f.read("model-a/decode/cpu_ping.cmd"));
       },
       {"P209"}},
      {"shared sync unit",
       [](Forgery& f) { f.graph("model_b_decode").sync_units[0] = 0; },
       {"P210", "P212"}},
      {"sync units of three",
       [](Forgery& f) { f.graph("model_b_decode").sync_units.pop_back(); },
       {"P210", "P212"}},
      {"route between chips",
       [](Forgery& f) { f.manifest.dma_routes[0].from = "chip1"; },
       {"P211", "P212"}},
      {"route to the other chip",
       [](Forgery& f) { f.manifest.dma_routes[0].to = "chip1"; },
       {"P211", "P212"}},
      {"route from host to host",
       [](Forgery& f) { f.manifest.dma_routes[0].to = "host"; },
       {"P211", "P212"}},
      {"shared host window",
       [](Forgery& f) { f.manifest.dma_routes[2].window = f.manifest.dma_routes[0].window; },
       {"P211"}},
      {"DMA into the other engine's staging",
       [](Forgery& f) {
         const std::uint64_t address = f.section("model-a.input.pong").address;
         edit_commands(f, "model-a/prefill/cpu_ping.cmd",
                       [&](CommandList& l) { l.commands[0].address = address; });
       },
       {"P212"}},
      {"DMA past the end",
       [](Forgery& f) {
         edit_commands(f, "model-a/prefill/cpu_ping.cmd",
                       [](CommandList& l) { l.commands[0].bytes = ~std::uint64_t{0}; });
       },
       {"P212"}},
      {"DMA of half the logits",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/cpu_ping.cmd",
                       [](CommandList& l) { l.commands[3].bytes /= 2; });
       },
       {"P212"}},
      {"DMA by the other model's route",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/cpu_ping.cmd",
                       [](CommandList& l) { l.commands[0].route = 2; });
       },
       {"P212"}},
      {"one core only",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/pld_ping.cmd",
                       [](CommandList& l) { l.commands[1].core_mask = 1; });
       },
       {"P212"}},
      {"output before input",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/cpu_ping.cmd",
                       [](CommandList& l) { std::swap(l.commands[0], l.commands[3]); });
       },
       {"P212"}},
      {"lists that never meet",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/pld_ping.cmd", [](CommandList& l) {
           std::swap(l.commands[0].sync_unit, l.commands[2].sync_unit);
         });
       },
       {"P212"}},
      {"writable parameters",
       [](Forgery& f) { f.section("model-a.params").writable = true; },
       {"P213"}},
      {"read-only KV", [](Forgery& f) { f.section("model-a.kv").writable = false; }, {"P213"}},
      {"overlapping sequence ids",
       [](Forgery& f) { f.manifest.models[1].kv.sequence_id_first = 5; },
       {"P214"}},
      {"empty sequence range",
       [](Forgery& f) { f.manifest.models[1].kv.sequence_id_first = ~std::uint64_t{0}; },
       {"P214"}},
      {"registers of another KV",
       [](Forgery& f) { f.patch("model-a/decode/csr.bin", 168 + 2 * 16 + 8, "\x01"); },
       {"P215"}},
  };
}

//
std::vector<Case> address_cases() {
  const auto move_workspace = [](std::uint64_t address) {
    return [address](Forgery& f) { f.section("model-a.workspace").address = address; };
  };
  return {
      {"misaligned",
       [](Forgery& f) { f.section("model-a.output.pong").address += 64; },
       {"P212", "P301"}},
      {"overlap",
       [](Forgery& f) {
         f.section("model-a.output.pong").address = f.section("model-a.output.ping").address;
       },
       {"P212", "P302"}},
      {"beyond the DRAM", move_workspace(std::uint64_t{64} << 20), {"P215", "P303"}},
      {"in the guard", move_workspace(0), {"P215", "P303"}},
      {"overflowing", move_workspace(~std::uint64_t{4095}), {"P215", "P303"}},
      {"more DRAM than a chip has",
       [](Forgery& f) { f.manifest.dram_bytes_per_chip = ~std::uint64_t{0}; },
       {"P106"}},
      {"size of a file", [](Forgery& f) { f.section("model-a.params").bytes -= 64; }, {"P304"}},
      {"section of no bytes",
       [](Forgery& f) { f.section("model-a.workspace").bytes = 0; },
       {"P304", "P308"}},
      {"KV slot too small",
       [](Forgery& f) { f.manifest.models[0].kv.bytes_per_slot -= 2; },
       {"P215", "P305"}},
      {"more KV slots than fit",
       [](Forgery& f) { f.manifest.models[0].kv.slots = 4000; },
       {"P215", "P305"}},
      {"KV slots overflow",
       [](Forgery& f) { f.manifest.models[0].kv.bytes_per_slot = std::uint64_t{1} << 63; },
       {"P215", "P305"}},
      {"no KV slots", [](Forgery& f) { f.manifest.models[0].kv.slots = 0; }, {"P215", "P305"}},
      {"memory line",
       [](Forgery& f) {
         f.manifest.memory[0].bytes += 1;
         f.write(memory_report_file, memory_report(f.manifest));
         f.seal(false);
       },
       {"P306"},
       true},
      {"memory report",
       [](Forgery& f) {
         f.write(memory_report_file, f.read(memory_report_file) + "chip1 spare 0\n");
         f.seal(false);
       },
       {"P306"},
       true},
      {"staging too small",
       [](Forgery& f) { f.section("model-b.output.ping").bytes = 64; },
       {"P212", "P307"}},
      {"workspace too small",
       [](Forgery& f) { f.section("model-b.workspace").bytes = 4096; },
       {"P308"}},
  };
}

//
std::vector<Case> tensor_cases() {
  static const std::string params = "model-a/params/parameters.bin";
  return {
      {"architecture",
       [](Forgery& f) { f.manifest.models[0].config.architecture = "mamba"; },
       {"P501"}},
      {"heads", [](Forgery& f) { f.manifest.models[0].config.heads = 0; }, {"P501"}},
      {"a shard: half of the heads",
       [](Forgery& f) {
         f.manifest.models[0].config.heads = 2;
         f.manifest.models[0].config.kv_heads = 1;
       },
       {"P503"}},
      {"a shard: half of the rows",
       [](Forgery& f) {
         Tensor& t = tensor(f, 0, "blk.0.ffn_up.weight");
         t.shape[0] /= 2;
         t.bytes /= 2;
       },
       {"P503"}},
      {"a shard: layers that are not there",
       [](Forgery& f) { f.manifest.models[0].config.layers = 2; },
       {"P305", "P502"}},
      {"no output matrix",
       [](Forgery& f) { f.manifest.models[1].config.tied_output = true; },
       {"P502"}},
      {"a tensor twice",
       [](Forgery& f) { tensor(f, 0, "blk.0.attn_k.weight").name = "blk.0.attn_v.weight"; },
       {"P502"}},
      {"type", [](Forgery& f) { tensor(f, 0, "output_norm.weight").dtype = DType::f16; }, {"P504"}},
      {"misaligned tensor",
       [](Forgery& f) { tensor(f, 0, "output_norm.weight").offset += 4; },
       {"P505", "P506"}},
      {"overlapping tensors",
       [](Forgery& f) { tensor(f, 0, "output_norm.weight").offset = 0; },
       {"P505", "P506"}},
      {"tensor outside",
       [](Forgery& f) { tensor(f, 0, "output_norm.weight").offset = ~std::uint64_t{63}; },
       {"P505", "P506"}},
      {"bytes of a tensor",
       [](Forgery& f) { tensor(f, 0, "output_norm.weight").bytes *= 2; },
       {"P505", "P506"}},
      {"two tensors exchanged",
       [](Forgery& f) {
         std::swap(tensor(f, 0, "blk.0.attn_k.weight").offset,
                   tensor(f, 0, "blk.0.attn_v.weight").offset);
       },
       {"P506"}},
      {"NaN scale", [](Forgery& f) { f.patch(params, 34, std::string("\0\x7e", 2)); }, {"P507"}},
      {"infinite norm",
       [](Forgery& f) {
         f.patch(params, tensor(f, 0, "output_norm.weight").offset, std::string("\0\0\x80\x7f", 4));
       },
       {"P507"}},
      {"a program that reads a tensor that is not there",
       [](Forgery& f) {
         edit_program(f, "model-a/decode/ccu0_chip0.elf",
                      [](ElfFile& e) { e.program.ops[0].tensor = 1000; });
       },
       {"P508"}},
      {"a program without its end",
       [](Forgery& f) {
         edit_program(f, "model-a/decode/ccu0_chip0.elf",
                      [](ElfFile& e) { e.program.ops.pop_back(); });
         f.section("model-a.decode.ccu0").bytes = f.read("model-a/decode/ccu0_chip0.elf").size();
       },
       {"P508"}},
      {"batch of 2", [](Forgery& f) { f.graph("model_a_decode").batch = 2; }, {"P215", "P509"}},
      {"more context than the model",
       [](Forgery& f) { f.graph("model_a_decode").context = 65; },
       {"P215", "P509"}},
      {"decode of two tokens",
       [](Forgery& f) { f.graph("model_a_decode").tokens_max = 2; },
       {"P212", "P215", "P509"}},
      {"port", [](Forgery& f) { f.graph("model_a_decode").outputs[0].shape[1] = 47; }, {"P509"}},
      {"input port type",
       [](Forgery& f) { f.graph("model_a_decode").inputs[0].dtype = DType::f32; },
       {"P509"}},
      {"tokenizer", [](Forgery& f) { f.write("tokenizer/alpha/tokenizer.json", "{}"); }, {"P510"}},
      {"golden of the other model",
       [](Forgery& f) {
         f.write("model-a/golden/golden.json", f.read("model-b/golden/golden.json"));
       },
       {"P511"}},
      {"golden rule loosened in the manifest",
       [](Forgery& f) { f.manifest.models[0].golden_rule.margin_min = 100; },
       {"P511"}},
      {"golden of nonsense",
       [](Forgery& f) {
         replace_in(f, "model-a/golden/golden.json", "\"tokens\": [", "\"tokens\": [99,");
       },
       {"P511"}},
      {"quantisation", [](Forgery& f) { f.manifest.models[0].quantization = "W4A16"; }, {"P512"}},
      {"KV type", [](Forgery& f) { f.manifest.models[0].kv.dtype = "fp8"; }, {"P512"}},
  };
}

// R-3.1 (glued packages), R-6.2
std::vector<Case> origin_cases() {
  return {
      {"compatibility", [](Forgery& f) { f.write(compatibility_file, "[]"); }, {"P601"}},
      {"format of programs",
       [](Forgery& f) { replace_in(f, compatibility_file, "DUETPRG1", "DUETPRG7"); },
       {"P602"}},
      {"numerics in the file",
       [](Forgery& f) { replace_in(f, compatibility_file, "\"numerics\": 1", "\"numerics\": 3"); },
       {"P603"}},
      {"numerics in the manifest", [](Forgery& f) { f.manifest.numerics = 2; }, {"P207", "P603"}},
      {"build id of the manifest",
       [](Forgery& f) { f.manifest.build_id = std::string(32, '0'); },
       {"P604"}},
      {"build id malformed", [](Forgery& f) { f.manifest.build_id = "x"; }, {"P106", "P604"}},
      {"a program of another build",
       [](Forgery& f) {
         edit_program(f, "model-a/decode/ccu0_chip0.elf",
                      [](ElfFile& e) { e.build_id[0] ^= std::byte{1}; });
       },
       {"P604"}},
      {"commands of another build",
       [](Forgery& f) {
         edit_commands(f, "model-a/decode/cpu_ping.cmd",
                       [](CommandList& l) { l.build_id[0] ^= std::byte{1}; });
       },
       {"P604"}},
      {"a parameter map of another build",
       [](Forgery& f) { f.patch("model-a/params/parameter_map.bin", 8, "\xee"); },
       {"P604"}},
      {"provenance", [](Forgery& f) { f.write(provenance_file, "{}"); }, {"P605"}},
      {"another packer",
       [](Forgery& f) { replace_in(f, provenance_file, "duet-pack", "by-hand"); },
       {"P605"}},
      {"another source",
       [](Forgery& f) { f.manifest.models[0].source_sha256 = std::string(64, '0'); },
       {"P605"}},
  };
}

}   // namespace duet::device::test
