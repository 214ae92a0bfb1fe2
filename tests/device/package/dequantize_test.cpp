// dequantize_test.cpp: the values of quantised weights, against the definition bit by bit.
#include "device/package/dequantize.hpp"
#include "device/package/model_source.hpp"
#include "device/package/packer.hpp"
#include "device/package/quantize.hpp"
#include "device/package/validator.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/gguf_builder.hpp"
#include "tests/device/package/package_fixture.hpp"
#include "tools/random_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

namespace duet::device::test {
namespace {

constexpr std::array<WeightType, 4> block_types = {WeightType::q4_0, WeightType::q4_k,
                                                   WeightType::q6_k, WeightType::q8_0};

using Block = std::vector<std::byte>;

/// Where a number's bits lie: `count` bits from bit `bit` of byte `byte` on.
struct Bits {
  std::uint64_t byte;
  unsigned bit;
  unsigned count;
};

/// The number whose bits these are, lowest first.
std::int64_t number(const Block& block, std::initializer_list<Bits> parts) {
  std::int64_t out = 0;
  unsigned place = 0;
  for (const Bits& part : parts) {
    for (unsigned i = 0; i < part.count; ++i, ++place) {
      const auto byte = std::to_integer<unsigned>(block[part.byte]);
      if ((byte & (1U << (part.bit + i))) != 0) out += std::int64_t{1} << place;
    }
  }
  return out;
}

/// The F16 number in the bytes at `at`, in units of 2^-24: every finite one is a whole number.
std::int64_t half_units(const Block& block, std::uint64_t at) {
  const std::int64_t fraction = number(block, {{at, 0, 8}, {at + 1, 0, 2}});
  const std::int64_t exponent = number(block, {{at + 1, 2, 5}});
  const std::int64_t size = exponent == 0 ? fraction : (1024 + fraction) << (exponent - 1);
  return number(block, {{at + 1, 7, 1}}) != 0 ? -size : size;
}

std::int64_t signed_byte(const Block& block, std::uint64_t at) {
  return number(block, {{at, 0, 7}}) - 128 * number(block, {{at, 7, 1}});
}

/// Element `e` of a block in units of 2^-24, in whole numbers from the formula of its type.
std::int64_t element_units(WeightType type, const Block& block, std::uint64_t e) {
  if (type == WeightType::q4_0) {
    const std::int64_t q = number(block, {{2 + e % 16, e < 16 ? 0U : 4U, 4}});
    return half_units(block, 0) * (q - 8);
  }
  if (type == WeightType::q8_0) return half_units(block, 0) * signed_byte(block, 2 + e);
  if (type == WeightType::q4_k) {
    const std::uint64_t group = e / 32;
    const std::int64_t q = number(block, {{16 + e / 64 * 32 + e % 32, e % 64 < 32 ? 0U : 4U, 4}});
    const std::uint64_t g = group % 4;
    const bool late = group >= 4;
    const std::int64_t scale =
        late ? number(block, {{12 + g, 0, 4}, {4 + g, 6, 2}}) : number(block, {{4 + g, 0, 6}});
    const std::int64_t minimum =
        late ? number(block, {{12 + g, 4, 4}, {8 + g, 6, 2}}) : number(block, {{8 + g, 0, 6}});
    return half_units(block, 0) * scale * q - half_units(block, 2) * minimum;
  }
  const std::uint64_t half = e / 128;
  const std::uint64_t run = e % 128 / 32;
  const auto low_bit = static_cast<unsigned>(run / 2 * 4);
  const auto high_bit = static_cast<unsigned>(run * 2);
  const std::int64_t q = number(block, {{half * 64 + run % 2 * 32 + e % 32, low_bit, 4},
                                        {128 + half * 32 + e % 32, high_bit, 2}});
  return half_units(block, 208) * signed_byte(block, 192 + e / 16) * (q - 32);
}

/// Rounded to F32 once, to nearest even.
float expected(WeightType type, const Block& block, std::uint64_t e) {
  return static_cast<float>(element_units(type, block, e)) * 0x1p-24F;
}

/// Where the block has F16 numbers.
std::vector<std::uint64_t> halves(WeightType type) {
  if (type == WeightType::q4_k) return {0, 2};
  return {type == WeightType::q6_k ? std::uint64_t{208} : 0};
}

void put_half(Block& block, std::uint64_t at, std::uint16_t half) {
  std::memcpy(block.data() + at, &half, sizeof half);
}

void check_block(WeightType type, const Block& block) {
  std::vector<float> out(layout_of(type).block_elements);
  dequantize(type, block, out);
  for (std::uint64_t e = 0; e < out.size(); ++e) {
    BOOST_REQUIRE_MESSAGE(out[e] == expected(type, block, e),
                          layout_of(type).name << " element " << e << ": " << out[e] << ", not "
                                               << expected(type, block, e));
  }
}

Block random_block(WeightType type, std::mt19937_64& random) {
  Block block(layout_of(type).block_bytes);
  for (std::byte& byte : block) byte = static_cast<std::byte>(random());
  for (const std::uint64_t at : halves(type)) {
    // Any finite number: the exponent is not all ones.
    put_half(block, at,
             static_cast<std::uint16_t>(random() % 0x7c00U | (random() % 2 == 0 ? 0U : 0x8000U)));
  }
  return block;
}

/// A file of the shape "small" with matrices of `type`.
std::string small_model(const ScratchDirectory& scratch, WeightType type) {
  tools::RandomModel model;
  model.config = tools::find_model_shape("small")->config;
  model.type = type;
  const std::string path = scratch.at(layout_of(type).name);
  BOOST_REQUIRE(tools::write_random_model(model, path).has_value());
  return path;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(dequantization)

//
BOOST_AUTO_TEST_CASE(random_blocks_have_the_values_of_the_definition) {
  std::mt19937_64 random(5);
  for (const WeightType type : block_types) {
    for (int i = 0; i < 2000; ++i) check_block(type, random_block(type, random));
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_extreme_scales_and_quants_have_the_values_of_the_definition) {
  for (const WeightType type : block_types) {
    for (const unsigned fill : {0x00U, 0xffU, 0x7fU, 0x80U, 0x0fU, 0xf0U, 0x55U}) {
      // Zeros, smallest and largest subnormal, smallest normal, one, largest, and the negatives.
      for (const unsigned half : {0x0000U, 0x0001U, 0x03ffU, 0x0400U, 0x3c00U, 0x7bffU}) {
        for (const unsigned sign : {0x0000U, 0x8000U}) {
          Block block(layout_of(type).block_bytes, static_cast<std::byte>(fill));
          for (const std::uint64_t at : halves(type)) {
            put_half(block, at, static_cast<std::uint16_t>(half | sign));
          }
          check_block(type, block);
          // The step and the minimum far apart: the difference is rounded.
          if (type != WeightType::q4_k) continue;
          put_half(block, 2, static_cast<std::uint16_t>(0x7bffU - half));
          check_block(type, block);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_byte_of_a_block_means_what_the_definition_says) {
  std::mt19937_64 random(6);
  for (const WeightType type : block_types) {
    const Block block = random_block(type, random);
    for (std::size_t at = 0; at < block.size(); ++at) {
      Block other = block;
      other[at] ^= std::byte{0x01};
      // Bit 0 of a half's upper byte is of its fraction: no finite scale becomes infinite.
      check_block(type, other);
    }
  }
}

BOOST_AUTO_TEST_CASE(several_blocks_lie_one_after_the_other) {
  std::mt19937_64 random(7);
  for (const WeightType type : block_types) {
    const std::uint64_t elements = layout_of(type).block_elements;
    const Block first = random_block(type, random);
    const Block second = random_block(type, random);
    Block both = first;
    both.insert(both.end(), second.begin(), second.end());
    std::vector<float> out(2 * elements);
    dequantize(type, both, out);
    for (std::uint64_t e = 0; e < elements; ++e) {
      BOOST_REQUIRE(out[e] == expected(type, first, e));
      BOOST_REQUIRE(out[elements + e] == expected(type, second, e));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_scale_that_is_not_finite_is_found_in_its_block) {
  std::mt19937_64 random(8);
  for (const WeightType type : block_types) {
    Block data;
    for (int i = 0; i < 3; ++i) {
      const Block block = random_block(type, random);
      data.insert(data.end(), block.begin(), block.end());
    }
    BOOST_TEST(!first_not_finite(type, data).has_value());
    for (const std::uint64_t at : halves(type)) {
      for (const std::uint16_t bad : {0x7c00U, 0xfc00U, 0x7e00U, 0xffffU}) {
        Block damaged = data;
        put_half(damaged, 2 * layout_of(type).block_bytes + at, bad);
        BOOST_TEST((first_not_finite(type, damaged) == 2U));
        const auto checked =
            check_weights(SourceTensor{"blk.7.ffn_up.weight", type, {3, 256}, damaged}, "x.gguf");
        BOOST_REQUIRE(checked.has_error());
        BOOST_TEST(checked.error().message ==
                   "x.gguf: tensor 'blk.7.ffn_up.weight': the scale of block 2 is not a finite "
                   "number; the model file is damaged");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_that_is_no_whole_number_of_blocks_is_refused_by_name) {
  for (const WeightType type : {WeightType::q4_k, WeightType::q6_k}) {
    const GgmlType& layout = layout_of(type);
    // 8 rows of 96 elements are three whole blocks, but no row is.
    const auto bytes = GgufBuilder()
                           .tensor("blk.3.attn_q.weight", {96, 8}, layout.number,
                                   std::vector<std::byte>(3 * layout.block_bytes))
                           .build();
    const auto parsed = Gguf::parse(bytes, "x.gguf");
    BOOST_REQUIRE(parsed.has_error());
    BOOST_TEST(parsed.error().message == concat("x.gguf: tensor 'blk.3.attn_q.weight': rows of 96 "
                                                "elements are no whole number of ",
                                                layout.name, " blocks of 256"));
  }
}

BOOST_AUTO_TEST_CASE(types_without_a_reader_and_blocks_in_a_vector_are_refused_by_name) {
  for (const auto& [number, name] : {std::pair{13U, "Q5_K"}, {3U, "Q4_1"}, {10U, "Q2_K"}}) {
    auto builder = tiny_model("llama", DType::f32);
    const GgmlType& layout = *find_ggml_type(number);
    builder.drop_tensor("token_embd.weight");
    builder.tensor("token_embd.weight", {256, 48}, number,
                   std::vector<std::byte>(48 * 256 / layout.block_elements * layout.block_bytes));
    builder.drop_key("llama.embedding_length").u32("llama.embedding_length", 256);
    const auto bytes = builder.build();
    const auto gguf = Gguf::parse(bytes, "x.gguf").value();
    const auto source = read_model_source(gguf);
    BOOST_REQUIRE(source.has_error());
    BOOST_TEST(source.error().message.find(concat("'token_embd.weight' has the type ", name)) !=
                   std::string::npos,
               source.error().message);
    BOOST_TEST(source.error().message.find("Q8_0, Q6_K, Q4_K and Q4_0") != std::string::npos);
  }
}

//
BOOST_AUTO_TEST_CASE(a_package_holds_the_values_of_the_definition_as_w8a8_blocks) {
  const ScratchDirectory scratch;
  for (const WeightType type : {WeightType::q4_0, WeightType::q4_k, WeightType::q6_k}) {
    const std::string path = small_model(scratch, type);
    PackOptions options;
    options.models = {{"m", "m", path, "", 0}};
    options.directory = scratch.at(std::string("p-") + layout_of(type).name);
    options.context = 64;
    options.kv_slots = 1;
    const auto built = build_package(options);
    BOOST_TEST_REQUIRE(built.has_value(), built.error().message);
    const auto report = validate_package(options.directory, [] {
      ValidateOptions lenient;
      lenient.allow_unsigned = true;
      return lenient;
    }());
    BOOST_REQUIRE(report.package != nullptr);
    const auto gguf = Gguf::open(path).value();
    const ModelSource source = read_model_source(gguf).value();
    const Model& model = report.package->manifest().models[0];
    const auto parameters = report.package->parameters("m");
    std::size_t matrices = 0;
    for (std::size_t t = 0; t < source.tensors.size(); ++t) {
      const SourceTensor& tensor = source.tensors[t];
      if (tensor.shape.size() != 2) continue;
      BOOST_REQUIRE(tensor.type == type);
      const GgmlType& layout = layout_of(type);
      std::vector<float> values;
      for (std::uint64_t at = 0; at < tensor.data.size(); at += layout.block_bytes) {
        const auto bytes = tensor.data.subspan(at, layout.block_bytes);
        const Block block(bytes.begin(), bytes.end());
        for (std::uint64_t e = 0; e < layout.block_elements; ++e) {
          values.push_back(expected(type, block, e));
        }
      }
      std::vector<std::byte> wanted(values.size() / q8_block_elements * q8_block_bytes);
      BOOST_REQUIRE(quantize_q8_0(values, wanted));
      const auto packed = parameters.subspan(model.tensors[t].offset, model.tensors[t].bytes);
      BOOST_TEST(std::equal(packed.begin(), packed.end(), wanted.begin(), wanted.end()),
                 tensor.name);
      ++matrices;
    }
    BOOST_TEST(matrices == 8U);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
