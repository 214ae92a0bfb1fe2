// package_fixture.cpp: a small dual package for tests, and the means to forge it.
#include "tests/device/package/package_fixture.hpp"

#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/gguf_builder.hpp"

#include <filesystem>
#include <stdexcept>

namespace duet::device::test {

const PrivateKey& test_key() {
  static const PrivateKey key =
      parse_private_key("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "test")
          .value();
  return key;
}

ValidateOptions trusting() {
  ValidateOptions options;
  options.trusted_keys.push_back(public_key(test_key()).value());
  return options;
}

void write_models(const ScratchDirectory& scratch) {
  scratch.write("a.gguf", as_text(tiny_model("qwen3", DType::q8_0, 1).build()));
  scratch.write("b.gguf", as_text(tiny_model("llama", DType::f16, 77).build()));
}

PackOptions dual_options(const ScratchDirectory& scratch, const std::string& name) {
  PackOptions options;
  options.models = {{"model-a", "alpha", scratch.at("a.gguf"), "", 0},
                    {"model-b", "beta", scratch.at("b.gguf"), "", 1}};
  options.directory = scratch.at(name);
  options.kv_slots = 2;
  options.dram_bytes_per_chip = std::uint64_t{64} << 20;
  options.key = &test_key();
  return options;
}

const std::string& tiny_package() {
  struct Built {
    ScratchDirectory scratch;
    std::string directory;
    Built() : directory(scratch.at("package")) {
      write_models(scratch);
      (void)build_package(dual_options(scratch, "package")).value();
    }
  };
  static const Built built;
  return built.directory;
}

Forgery::Forgery() : directory_(scratch_.at("package")) {
  std::filesystem::copy(tiny_package(), directory_, std::filesystem::copy_options::recursive);
  Findings findings;
  manifest = read_manifest(read(manifest_file), findings).value();
}

Section& Forgery::section(const std::string& name) {
  for (Section& section : manifest.sections) {
    if (section.name == name) return section;
  }
  throw std::logic_error("no section " + name);
}

Graph& Forgery::graph(const std::string& name) {
  for (Graph& graph : manifest.graphs) {
    if (graph.name == name) return graph;
  }
  throw std::logic_error("no graph " + name);
}

std::string Forgery::read(const std::string& path) const {
  return ScratchDirectory::read_file(at(path));
}

void Forgery::write(const std::string& path, const std::string& bytes) const {
  ScratchDirectory::write_file(at(path), bytes);
}

void Forgery::patch(const std::string& path, std::size_t offset, const std::string& bytes) const {
  std::string text = read(path);
  if (offset + bytes.size() > text.size())
    throw std::logic_error("patch beyond the end of " + path);
  write(path, text.replace(offset, bytes.size(), bytes));
}

void Forgery::seal(bool refresh) {
  const auto hash = [&](const std::string& path, std::string& into) {
    if (std::filesystem::is_regular_file(at(path)))
      into = hex_text(sha256(as_byte_span(read(path))));
  };
  for (Section& section : manifest.sections) {
    if (!section.path.empty()) hash(section.path, section.sha256);
  }
  for (Model& model : manifest.models) {
    hash(model.tokenizer, model.tokenizer_sha256);
    hash(model.golden, model.golden_sha256);
  }
  if (refresh) {
    manifest.memory = memory_lines(manifest);
    write(memory_report_file, memory_report(manifest));
  }
  write(manifest_file, write_manifest(manifest));
  seal_files();
}

void Forgery::seal_files() const {
  seal_package(directory_, &test_key()).value();
}

ValidationReport Forgery::validate() const {
  return validate_package(directory_, trusting());
}

std::set<std::string> error_codes(const ValidationReport& report) {
  std::set<std::string> out;
  for (const Finding& finding : report.findings.list()) {
    if (finding.severity == Severity::error) out.insert(code_text(finding.code));
  }
  return out;
}

}   // namespace duet::device::test
