// forgery_case.cpp: the forger's tools.
#include "tests/device/package/forgery_case.hpp"

#include "device/program/byte_reader.hpp"

#include <stdexcept>

namespace duet::device::test {

void edit_program(Forgery& f, const std::string& path,
                  const std::function<void(ElfFile&)>& change) {
  const std::string bytes = f.read(path);
  ElfFile file = read_elf(as_byte_span(bytes), path).value();
  change(file);
  f.write(path, std::string(as_text(write_elf(file.program, file.build_id))));
}

void edit_commands(Forgery& f, const std::string& path,
                   const std::function<void(CommandList&)>& change) {
  CommandList list = read_commands(as_byte_span(f.read(path)), path).value();
  change(list);
  f.write(path, std::string(as_text(write_commands(list))));
}

void edit_registers(Forgery& f, const std::string& path,
                    const std::function<void(CsrList&)>& change) {
  CsrList list = read_csr(as_byte_span(f.read(path)), path).value();
  change(list);
  f.write(path, std::string(as_text(write_csr(list))));
}

void replace_in(Forgery& f, const std::string& path, const std::string& from,
                const std::string& to) {
  std::string text = f.read(path);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(path + " holds no " + from);
  f.write(path, text.replace(at, from.size(), to));
}

Tensor& tensor(Forgery& f, std::size_t model, const std::string& name) {
  for (Tensor& t : f.manifest.models[model].tensors) {
    if (t.name == name) return t;
  }
  throw std::logic_error("no tensor " + name);
}

}   // namespace duet::device::test
