// duet_random_model.cpp: writes a model file with random weights in the shape of a real model.
#include "tools/random_model.hpp"

#include <boost/program_options.hpp>

#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

namespace {

namespace device = duet::device;
namespace tools = duet::tools;
namespace po = boost::program_options;

constexpr int exit_done = 0;
constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr std::array<std::pair<const char*, device::WeightType>, 7> types = {{
    {"f32", device::WeightType::f32},
    {"f16", device::WeightType::f16},
    {"bf16", device::WeightType::bf16},
    {"q8_0", device::WeightType::q8_0},
    {"q6_k", device::WeightType::q6_k},
    {"q4_k", device::WeightType::q4_k},
    {"q4_0", device::WeightType::q4_0},
}};

struct Usage {
  std::string message;
};

device::WeightType type_of(const std::string& text) {
  for (const auto& [name, type] : types) {
    if (text == name) return type;
  }
  throw Usage{"the type '" + text + "' is not known"};
}

int run(int argc, char** argv) {
  po::options_description options("duet-random-model --shape NAME -o FILE.gguf");
  options.add_options()("help,h", "this text")("shape", po::value<std::string>(),
                                               "a name of the list below")(
      "type", po::value<std::string>()->default_value("q8_0"),
      "of matrices: f32, f16, bf16, q8_0, q6_k, q4_k or q4_0")(
      "seed", po::value<std::uint64_t>()->default_value(1), "the same seed gives the same bytes")(
      "layers", po::value<std::uint32_t>(), "another number of layers than the shape's")(
      "hollow", "no weights: a hole of zeros, for what reads only the header")(
      "output,o", po::value<std::string>(), "the file to write");
  po::variables_map map;
  po::store(po::parse_command_line(argc, argv, options), map);
  po::notify(map);
  if (map.count("help") != 0) {
    std::cout << options << "\nShapes:\n";
    for (const tools::ModelShape& shape : tools::model_shapes()) {
      std::cout << "  " << shape.name << (shape.real ? "" : " (for tests)") << "\n";
    }
    std::cout << "\nExit codes: 0 done, 1 it could not be written, 2 wrong use.\n";
    return exit_done;
  }
  if (map.count("shape") == 0 || map.count("output") == 0) {
    throw Usage{"--shape and -o are needed"};
  }
  const std::string name = map["shape"].as<std::string>();
  const tools::ModelShape* shape = tools::find_model_shape(name);
  if (shape == nullptr) throw Usage{"the shape '" + name + "' is not known"};
  tools::RandomModel model;
  model.config = shape->config;
  if (map.count("layers") != 0) model.config.layers = map["layers"].as<std::uint32_t>();
  model.type = type_of(map["type"].as<std::string>());
  model.seed = map["seed"].as<std::uint64_t>();
  model.hollow = map.count("hollow") != 0;
  const auto written = tools::write_random_model(model, map["output"].as<std::string>());
  if (written.has_value()) return exit_done;
  std::cerr << "duet-random-model: " << written.error().message << "\n";
  return exit_failed;
}

}   // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Usage& wrong) {
    std::cerr << "duet-random-model: " << wrong.message << "; see duet-random-model --help\n";
    return exit_usage;
  } catch (const po::error& wrong) {
    std::cerr << "duet-random-model: " << wrong.what() << "; see duet-random-model --help\n";
    return exit_usage;
  } catch (const std::exception& error) {
    std::cerr << "duet-random-model: " << error.what() << "\n";
    return exit_failed;
  }
}
