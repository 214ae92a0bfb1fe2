// containers_test.cpp: ELF programs, command lists, register words, parameter maps: written, read,
// broken.
#include "device/package/golden.hpp"
#include "device/package/parameter_map.hpp"
#include "device/program/byte_reader.hpp"
#include "device/program/command.hpp"
#include "device/program/elf.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <functional>

namespace duet::device::test {
namespace {

using Bytes = std::vector<std::byte>;

Program sample_program() {
  Program program;
  program.graph = "model_a_prefill";
  program.chip = 1;
  program.core = 1;
  program.logits = 0;
  program.buffers = {{BufferKind::f32, BufferScope::shared, 64},
                     {BufferKind::activation, BufferScope::local, 32}};
  Op op = {};
  op.opcode = Opcode::rms_norm;
  op.epsilon = 1e-6F;
  program.ops.assign(3, op);
  program.ops.back().opcode = Opcode::end;
  return program;
}

BuildId sample_id() {
  BuildId id = {};
  id[0] = std::byte{0xab};
  id[15] = std::byte{1};
  return id;
}

/// Every cut, and what a reader says of the whole with one byte changed.
template <typename Read>
void check_every_cut_is_refused(const Bytes& whole, const Read& read) {
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto result = read(std::span(whole).first(size));
    BOOST_REQUIRE_MESSAGE(result.has_error(), "cut at " << size);
    BOOST_REQUIRE(result.error().message.rfind("f: ", 0) == 0);
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  BOOST_TEST(read(std::span(longer)).has_error());
}

template <typename T>
Bytes patched(Bytes bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

std::string elf_error(const Bytes& bytes) {
  const auto file = read_elf(bytes, "f");
  return file.has_error() ? file.error().message : "";
}

void check_says(const std::string& message, const std::string& part) {
  BOOST_TEST_CONTEXT("message: '" << message << "', wanted: '" << part << "'") {
    BOOST_TEST(message.find(part) != std::string::npos);
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(containers)

//
BOOST_AUTO_TEST_CASE(a_program_comes_back_as_it_was_written) {
  const Program program = sample_program();
  const Bytes bytes = write_elf(program, sample_id());
  BOOST_TEST((bytes == write_elf(program, sample_id())));
  const ElfFile file = read_elf(bytes, "f").value();
  BOOST_TEST(file.program.graph == program.graph);
  BOOST_TEST((file.program.kind == program.kind));
  BOOST_TEST(file.program.chip == 1U);
  BOOST_TEST(file.program.core == 1U);
  BOOST_TEST(file.program.cores == 2U);
  BOOST_TEST(file.program.numerics == 1U);
  BOOST_TEST(file.program.logits == 0U);
  BOOST_TEST((file.build_id == sample_id()));
  BOOST_REQUIRE(file.program.ops.size() == 3U);
  BOOST_TEST(std::memcmp(file.program.ops.data(), program.ops.data(), 3 * sizeof(Op)) == 0);
  BOOST_REQUIRE(file.program.buffers.size() == 2U);
  BOOST_TEST(file.program.buffers[1].width == 32U);
  // The file is a real ELF file: magic, 64 bit, little-endian, its own machine.
  BOOST_TEST(std::memcmp(bytes.data(),
                         "\x7f"
                         "ELF\2\1\1",
                         7) == 0);
  BOOST_TEST(load_le<std::uint16_t>(bytes, 18) == elf_machine);
}

BOOST_AUTO_TEST_CASE(a_program_cut_at_any_byte_is_refused) {
  check_every_cut_is_refused(write_elf(sample_program(), sample_id()),
                             [](std::span<const std::byte> bytes) { return read_elf(bytes, "f"); });
}

// Only the note's words, operations and buffers are free; any other changed byte must be noticed.
BOOST_AUTO_TEST_CASE(a_changed_byte_of_an_elf_header_is_refused) {
  const Bytes whole = write_elf(sample_program(), sample_id());
  const std::uint64_t table = load_le<std::uint64_t>(whole, 40);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const bool header = at < 64 || at >= table;
    for (const unsigned flip : {1U, 0x80U, 0xffU}) {
      const auto file = read_elf(patched(whole, at, whole[at] ^ static_cast<std::byte>(flip)), "f");
      if (header) BOOST_REQUIRE_MESSAGE(file.has_error(), "byte " << at << " changed by " << flip);
      refused += file.has_error();
    }
  }
  BOOST_TEST(refused >= 3 * (64 + whole.size() - table));
}

BOOST_AUTO_TEST_CASE(forged_elf_headers_are_refused_with_their_reason) {
  const Bytes whole = write_elf(sample_program(), sample_id());
  const std::uint64_t table = load_le<std::uint64_t>(whole, 40);
  const auto section = [&](std::size_t index, std::size_t field) {
    return table + index * 64 + field;
  };
  const std::uint64_t huge = ~std::uint64_t{0};
  check_says(elf_error(patched(whole, 18, std::uint16_t{62})), "not a Duet program");
  check_says(elf_error(patched(whole, 24, std::uint64_t{4096})), "entry point");
  check_says(elf_error(patched(whole, 40, huge)), "section table lies outside");
  check_says(elf_error(patched(whole, 60, std::uint16_t{60000})), "60000 sections");
  check_says(elf_error(patched(whole, 62, std::uint16_t{9})),
             "section 9 (the names) does not exist");
  check_says(elf_error(patched(whole, section(2, 24), huge - 63)), ".duet.prog ends outside");
  check_says(elf_error(patched(whole, section(2, 32), huge - 63)), ".duet.prog ends outside");
  check_says(elf_error(patched(whole, section(2, 32), std::uint64_t{65})),
             "no whole number of entries");
  check_says(elf_error(patched(whole, section(2, 0), std::uint32_t{0xffffff})),
             "leaves the string table");
  check_says(
      elf_error(patched(whole, section(3, 24), load_le<std::uint64_t>(whole, section(2, 24)))),
      "overlap");
  check_says(elf_error(patched(whole, section(2, 0), load_le<std::uint32_t>(whole, section(3, 0)))),
             "wrong type");
  check_says(elf_error(Bytes(17U << 20)), "larger than a program");
}

//
BOOST_AUTO_TEST_CASE(command_lists_and_registers_come_back_and_cuts_are_refused) {
  CommandList list{"g", 1, Engine::pong, Processor::pld, sample_id(), {}};
  list.commands = {{CommandOpcode::wait, 0, 3, 0, 0, 0, 0}, {CommandOpcode::end, 0, 0, 0, 0, 0, 0}};
  const Bytes bytes = write_commands(list);
  const auto back = read_commands(bytes, "f").value();
  BOOST_TEST(back.graph == "g");
  BOOST_TEST(back.chip == 1U);
  BOOST_TEST((back.engine == Engine::pong && back.processor == Processor::pld));
  BOOST_TEST((back.build_id == sample_id()));
  BOOST_TEST((back.commands.size() == 2U && back.commands[0].sync_unit == 3U));
  check_every_cut_is_refused(bytes,
                             [](std::span<const std::byte> b) { return read_commands(b, "f"); });
  BOOST_TEST(read_commands(patched(bytes, 168, std::uint16_t{99}), "f").has_error());
  BOOST_TEST(read_commands(patched(bytes, 170, std::uint16_t{1}), "f").has_error());
  BOOST_TEST(read_commands(patched(bytes, 156, std::uint32_t{0}), "f").has_error());
  BOOST_TEST(read_commands(patched(bytes, 164, ~std::uint32_t{0}), "f").has_error());

  const CsrList csr{"g", 0, sample_id(), {{CsrRegister::kv_base, 4096}, {CsrRegister::batch, 1}}};
  const Bytes words = write_csr(csr);
  const auto registers = read_csr(words, "f").value();
  BOOST_TEST((registers.words.size() == 2U && registers.words[0].value == 4096U));
  check_every_cut_is_refused(words, [](std::span<const std::byte> b) { return read_csr(b, "f"); });
  BOOST_TEST(read_csr(patched(words, 168, std::uint32_t{8}), "f").has_error());   // batch twice
  BOOST_TEST(read_csr(patched(words, 168, std::uint32_t{77}), "f").has_error());
  BOOST_TEST(read_csr(bytes, "f").has_error());
}

BOOST_AUTO_TEST_CASE(a_parameter_map_comes_back_and_cuts_are_refused) {
  const ParameterMap map{
      sample_id(),
      {{"a.weight", DType::q8_0, {4, 32}, 64, 136}, {"n", DType::f32, {32}, 256, 128}}};
  const Bytes bytes = write_parameter_map(map);
  const auto back = read_parameter_map(bytes, "f").value();
  BOOST_TEST((back.build_id == map.build_id));
  BOOST_REQUIRE(back.tensors.size() == 2U);
  BOOST_TEST(back.tensors[0].name == "a.weight");
  BOOST_TEST((back.tensors[0].shape == map.tensors[0].shape &&
              back.tensors[1].shape == map.tensors[1].shape));
  BOOST_TEST(back.tensors[1].offset == 256U);
  check_every_cut_is_refused(
      bytes, [](std::span<const std::byte> b) { return read_parameter_map(b, "f"); });
  BOOST_TEST(read_parameter_map(patched(bytes, 24, ~std::uint32_t{0}), "f").has_error());
  BOOST_TEST(read_parameter_map(patched(bytes, 32 + 64, std::uint32_t{2}), "f").has_error());
  BOOST_TEST(read_parameter_map(patched(bytes, 32 + 68, std::uint32_t{3}), "f").has_error());
}

//
BOOST_AUTO_TEST_CASE(a_golden_file_comes_back_and_nonsense_is_refused) {
  Golden golden;
  golden.model = "m";
  golden.source = "q8_0";
  golden.prompts.push_back({{1, 2}, {3, 4}, 4U, {1.5, 0.25}, {{{3, -0.1}, {1, -2.5}}}});
  const std::string text = write_golden(golden);
  const Golden back = read_golden(text, "f").value();
  BOOST_TEST(write_golden(back) == text);
  BOOST_TEST(back.prompts[0].stop_id.value() == 4U);
  BOOST_TEST(back.prompts[0].top[0][1].second == -2.5);
  BOOST_TEST(check_golden(back, 5, 3, "f").has_value());
  BOOST_TEST(check_golden(back, 4, 3, "f").has_error());   // token 4 of 4
  BOOST_TEST(check_golden(back, 5, 2, "f").has_error());   // three positions in two
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    BOOST_REQUIRE_MESSAGE(read_golden(text.substr(0, size), "f").has_error(), "cut at " << size);
  }
  const auto broken = [&](const std::function<void(GoldenPrompt&)>& change) {
    Golden copy = golden;
    change(copy.prompts[0]);
    return check_golden(copy, 5, 8, "f").has_error();
  };
  BOOST_TEST(broken([](GoldenPrompt& p) { p.margins.pop_back(); }));
  BOOST_TEST(broken([](GoldenPrompt& p) { p.margins[0] = -1; }));
  BOOST_TEST(broken([](GoldenPrompt& p) { p.stop_id = 3; }));
  BOOST_TEST(broken([](GoldenPrompt& p) { p.top[0][0].first = 2; }));
  BOOST_TEST(broken([](GoldenPrompt& p) { p.top[0][1].second = 0.5; }));
  BOOST_TEST(broken([](GoldenPrompt& p) { p.prompt_ids.clear(); }));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
