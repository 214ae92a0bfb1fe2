// gguf_test.cpp: the GGUF reader and the model source, with sound and with broken files.
#include "device/package/gguf.hpp"
#include "device/package/model_source.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/gguf_builder.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <functional>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace duet::device::test {
namespace {

std::string parse_error(const std::vector<std::byte>& bytes) {
  const auto gguf = Gguf::parse(bytes, "x.gguf");
  return gguf.has_value() ? "" : gguf.error().message;
}

std::string source_error(const GgufBuilder& builder) {
  const auto bytes = builder.build();
  const auto gguf = Gguf::parse(bytes, "x.gguf");
  if (gguf.has_error()) return gguf.error().message;
  const auto source = read_model_source(*gguf);
  if (source.has_error()) return source.error().message;
  const auto sound = check_weights(*source, "x.gguf");
  return sound.has_value() ? "" : sound.error().message;
}

void check_says(const std::string& message, const std::string& part) {
  BOOST_TEST_CONTEXT("message: '" << message << "', wanted: '" << part << "'") {
    BOOST_TEST(message.find(part) != std::string::npos);
  }
}

GgufBuilder replaced(GgufBuilder builder, const std::string& name,
                     std::vector<std::uint64_t> dimensions, DType type) {
  std::uint64_t count = 1;
  for (const std::uint64_t length : dimensions) count *= length;
  builder.drop_tensor(name);
  builder.tensor(name, std::move(dimensions), static_cast<std::uint32_t>(type),
                 weights(type, count, 9));
  return builder;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(gguf)

BOOST_AUTO_TEST_CASE(typed_values_come_back_as_they_were_written) {
  const auto bytes = GgufBuilder{}
                         .text("a", "hello")
                         .u32("b", 7)
                         .f32("c", 0.5F)
                         .boolean("d", true)
                         .texts("e", {"x", "", "z"})
                         .i32s("f", {1, -2})
                         .f32s("g", {0.25F})
                         .build();
  const auto gguf = Gguf::parse(bytes, "x.gguf").value();
  BOOST_TEST(gguf.version() == 3U);
  BOOST_TEST(gguf.get_string("a").value() == "hello");
  BOOST_TEST(gguf.get_unsigned("b").value() == 7U);
  BOOST_TEST(gguf.get_real("c").value() == 0.5);
  BOOST_TEST(gguf.get_bool("d").value());
  BOOST_TEST(gguf.get_strings("e").value().size() == 3U);
  BOOST_TEST(gguf.get_integers("f").value()[1] == -2);
  BOOST_TEST(gguf.get_reals("g").value()[0] == 0.25F);
  BOOST_TEST(gguf.get_unsigned("none", 3).value() == 3U);
  check_says(gguf.get_unsigned("none").error().message, "'none' is missing");
  check_says(gguf.get_unsigned("a").error().message, "should be an integer but is string");
  check_says(gguf.get_unsigned("f").error().message, "array of i32");
  check_says(gguf.get_strings("a").error().message, "should be an array of strings");
}

BOOST_AUTO_TEST_CASE(version_2_is_read_and_others_are_refused) {
  GgufBuilder builder;
  builder.u32("a", 1);
  builder.version = 2;
  BOOST_TEST(parse_error(builder.build()) == "");
  builder.version = 1;
  check_says(parse_error(builder.build()), "version 1 is not supported");
  builder.version = 4;
  check_says(parse_error(builder.build()), "version 4 is not supported");
  builder.version = 0x03000000;
  check_says(parse_error(builder.build()), "big-endian");
}

// A cut at any byte is an error with the file's name, never a crash or a half model.
BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_is_refused) {
  auto whole = tiny_model("qwen2", DType::q8_0).build();
  // The last tensor's padding may be missing; everything before must be there.
  const std::size_t end = whole.size() - 32;
  std::size_t header_cuts = 0;
  for (std::size_t size = 0; size < end; size = size < 4096 ? size + 1 : size + 509) {
    const auto gguf = Gguf::parse(std::span(whole).first(size), "cut.gguf");
    BOOST_REQUIRE_MESSAGE(gguf.has_error(), "size " << size << " of " << whole.size());
    BOOST_REQUIRE(gguf.error().message.rfind("cut.gguf: ", 0) == 0);
    ++header_cuts;
  }
  BOOST_TEST(header_cuts > 2000U);
  BOOST_TEST(Gguf::parse(whole, "cut.gguf").has_value());
}

// Any single changed byte of the header leaves a parse that ends without leaving the bytes (ASan
// watches).
BOOST_AUTO_TEST_CASE(a_changed_byte_never_makes_the_reader_leave_the_file) {
  const auto whole = tiny_model("llama", DType::q8_0).build();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < 2600; ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
      auto bytes = whole;
      bytes[at] ^= static_cast<std::byte>(flip);
      const auto gguf = Gguf::parse(bytes, "x.gguf");
      if (gguf.has_error() || read_model_source(*gguf).has_error()) ++refused;
    }
  }
  BOOST_TEST(refused > 1000U);
}

BOOST_AUTO_TEST_CASE(broken_headers_are_refused_with_their_reason) {
  check_says(parse_error({}), "the file is empty");
  check_says(parse_error(weights(DType::f32, 64, 1)), "does not begin with the bytes 'GGUF'");
  check_says(parse_error(GgufBuilder{}.u32("a", 1).u32("a", 2).build()), "'a' is there twice");
  check_says(parse_error(GgufBuilder{}.u32("", 1).build()), "not a printable name");
  check_says(parse_error(GgufBuilder{}.u32("a\nb", 1).build()), "'a\\x0ab'");
  check_says(parse_error(GgufBuilder{}.raw("a", 13, "xxxx").build()), "value type 13 is not known");
  check_says(parse_error(GgufBuilder{}.raw("a", 7, "\2").build()), "neither 0 nor 1");
  check_says(
      parse_error(GgufBuilder{}.raw("a", 9, std::string("\x09\0\0\0\1\0\0\0\0\0\0\0", 12)).build()),
      "cannot be an array's element");
  check_says(
      parse_error(GgufBuilder{}
                      .raw("a", 9, std::string("\x04\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12))
                      .build()),
      "elements is larger than");
  check_says(parse_error(GgufBuilder{}.raw("a", 8, std::string(8, '\xff')).build()),
             "is longer than");
  check_says(parse_error(GgufBuilder{}.u32("general.alignment", 33).build()), "no power of two");
  check_says(parse_error(GgufBuilder{}.text("general.alignment", "x").build()),
             "should be an integer");
}

BOOST_AUTO_TEST_CASE(broken_tensors_are_refused_with_their_reason) {
  const auto data = weights(DType::f32, 64, 1);
  const std::uint64_t huge = std::uint64_t{1} << 33;
  check_says(
      parse_error(GgufBuilder{}.tensor("t", {64}, 0, data).tensor("t", {64}, 0, data).build()),
      "'t' is there twice");
  check_says(parse_error(GgufBuilder{}.tensor_at("t", {huge, huge}, 0, 0).build()), "overflows");
  check_says(parse_error(GgufBuilder{}.tensor_at("t", {huge, huge >> 3}, 0, 0).build()),
             "overflows");
  check_says(parse_error(GgufBuilder{}.tensor_at("t", {64}, 0, ~std::uint64_t{31}).build()),
             "overflows");
  check_says(parse_error(GgufBuilder{}.tensor_at("t", {huge}, 0, 0).build()), "cut short");
  check_says(parse_error(GgufBuilder{}.tensor("t", {0}, 0, data).build()), "dimension of 0");
  check_says(parse_error(GgufBuilder{}.tensor("t", {}, 0, data).build()), "has 0 dimensions");
  check_says(parse_error(GgufBuilder{}.tensor("t", {1, 1, 1, 1, 64}, 0, data).build()),
             "has 5 dimensions");
  check_says(parse_error(GgufBuilder{}.tensor("t", {64}, 99, data).build()),
             "type 99 is not known");
  check_says(parse_error(GgufBuilder{}.tensor("t", {40}, 8, data).build()),
             "no whole number of Q8_0 blocks");
  check_says(
      parse_error(GgufBuilder{}.tensor("a", {64}, 0, data).tensor_at("b", {8}, 0, 32).build()),
      "overlap");
  check_says(
      parse_error(GgufBuilder{}.tensor("a", {64}, 0, data).tensor_at("b", {8}, 0, 8).build()),
      "not a multiple of the alignment");
  check_says(parse_error(GgufBuilder{}.tensor(std::string(65, 'x'), {64}, 0, data).build()),
             "longer than 64");
}

BOOST_AUTO_TEST_CASE(a_missing_file_and_a_directory_are_refused) {
  check_says(Gguf::open("/nonexistent/x.gguf").error().message, "No such file");
  check_says(Gguf::open("/").error().message, "not a regular file");
}

// The counts of a sparse terabyte lie; what is read and kept stays bounded. Time is bounded with
// it: the reader looks at no more than header_bytes_max bytes.
BOOST_AUTO_TEST_CASE(a_sparse_terabyte_is_refused_without_reading_it) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/huge.gguf";
  for (const std::uint64_t count : {std::uint64_t{60000}, ~std::uint64_t{0}}) {
    std::string head = "GGUF";
    const std::uint32_t version = 3;
    head.append(reinterpret_cast<const char*>(&version), 4);
    head.append(reinterpret_cast<const char*>(&count), 8);
    head.append(reinterpret_cast<const char*>(&count), 8);
    // One key with the largest array of texts that is allowed: 2^24 empty texts of zeros.
    head += std::string("\1\0\0\0\0\0\0\0a\x09\0\0\0\x08\0\0\0", 17);
    const std::uint64_t elements = gguf_limits::elements_max;
    head.append(reinterpret_cast<const char*>(&elements), 8);
    scratch.write("huge.gguf", head);
    BOOST_REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0);
    rusage before = {};
    ::getrusage(RUSAGE_SELF, &before);
    const auto gguf = Gguf::open(path);
    rusage after = {};
    ::getrusage(RUSAGE_SELF, &after);
    BOOST_TEST(gguf.has_error());
    // Mapped pages of the header count as resident; nothing near the file's size may.
    BOOST_TEST(after.ru_maxrss - before.ru_maxrss < 512 * 1024);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(model_source)

//
BOOST_AUTO_TEST_CASE(each_architecture_is_read_with_its_own_shape) {
  for (const std::string architecture : {"llama", "qwen2", "qwen3"}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
      const auto bytes = tiny_model(architecture, type).build();
      const auto gguf = Gguf::parse(bytes, "x.gguf").value();
      const ModelSource source = read_model_source(gguf).value();
      const ModelConfig& c = source.config;
      BOOST_TEST(c.architecture == architecture);
      BOOST_TEST(c.layers == 1U);
      BOOST_TEST(c.head_dim == 16U);
      BOOST_TEST(c.rope_dims == 16U);
      BOOST_TEST(c.rope_base == 10000.0F);
      BOOST_TEST(c.vocabulary == 48U);
      BOOST_TEST(c.rope_neox == (architecture != "llama"));
      BOOST_TEST(c.qk_norm == (architecture == "qwen3"));
      BOOST_TEST(c.qkv_bias == (architecture == "qwen2"));
      BOOST_TEST(c.tied_output == (architecture != "llama"));
      BOOST_TEST(source.tensors.size() == gguf.tensors().size());
      BOOST_TEST((source.tensors[0].shape == std::vector<std::uint64_t>{48, 64}));
      BOOST_TEST((source.tensors[0].type == weight_type(type)));
      BOOST_TEST(check_weights(source, "x").has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(absent_keys_have_the_usual_defaults_and_present_ones_win) {
  auto builder = tiny_model("llama", DType::f32);
  builder.drop_key("llama.attention.head_count_kv");
  check_says(source_error(builder),
             "'blk.0.attn_k.weight' has the shape [32, 64]");   // kv heads = heads
  builder = tiny_model("llama", DType::f32);
  builder.f32("llama.rope.freq_base", 500000.0F).u32("llama.rope.dimension_count", 8);
  const auto bytes = builder.build();
  const auto gguf = Gguf::parse(bytes, "x").value();
  const auto source = read_model_source(gguf).value();
  BOOST_TEST(source.config.rope_base == 500000.0F);
  BOOST_TEST(source.config.rope_dims == 8U);
}

BOOST_AUTO_TEST_CASE(models_that_would_compute_something_else_are_refused) {
  const auto tiny = [] { return tiny_model("llama", DType::f32); };
  check_says(
      source_error(tiny().drop_key("general.architecture").text("general.architecture", "gemma")),
      "architecture 'gemma' is not supported");
  check_says(source_error(tiny().drop_key("general.architecture")),
             "'general.architecture' is missing");
  check_says(source_error(tiny().drop_key("llama.block_count")), "'llama.block_count' is missing");
  check_says(source_error(tiny().text("llama.rope.scaling.type", "linear")),
             "rope scaling type 'linear'");
  check_says(source_error(tiny().f32("llama.rope.scaling.factor", 4.0F)), "rope.scaling.factor");
  check_says(source_error(tiny().u32("llama.expert_count", 8)), "experts");
  check_says(source_error(tiny().u32("llama.vocab_size", 47)), "vocab_size is 47");
  check_says(
      source_error(
          tiny().u32("llama.attention.key_length", 16).u32("llama.attention.value_length", 8)),
      "differ");
  check_says(
      source_error(
          tiny().drop_key("llama.attention.head_count").u32("llama.attention.head_count", 0)),
      "is 0");
  check_says(
      source_error(
          tiny().drop_key("llama.attention.head_count_kv").u32("llama.attention.head_count_kv", 3)),
      "not a multiple of 3 kv heads");
  check_says(source_error(tiny().drop_key("llama.block_count").u32("llama.block_count", 100000)),
             "not in 1..");
  check_says(source_error(tiny().drop_tensor("blk.0.ffn_up.weight")),
             "'blk.0.ffn_up.weight' is missing");
  check_says(source_error(tiny().drop_tensor("token_embd.weight")),
             "'token_embd.weight' is missing");
  check_says(source_error(tiny().tensor("rope_freqs.weight", {8}, 0, weights(DType::f32, 8, 3))),
             "'rope_freqs.weight' is not part of");
  check_says(source_error(replaced(tiny(), "blk.0.ffn_up.weight", {64, 48}, DType::f32)),
             "has the shape [48, 64]");
  check_says(source_error(replaced(tiny(), "blk.0.ffn_norm.weight", {64}, DType::q8_0)),
             "has the type Q8_0");
  auto q4_1 = tiny();
  q4_1.drop_tensor("blk.0.ffn_up.weight");
  q4_1.tensor("blk.0.ffn_up.weight", {64, 96}, 3, std::vector<std::byte>(96 * 2 * 20));
  check_says(source_error(q4_1), "has the type Q4_1");
}

// Bad input: NaN and infinite weights are named by tensor and element.
BOOST_AUTO_TEST_CASE(a_weight_or_scale_that_is_not_finite_is_refused) {
  struct Case {
    DType type;
    std::uint64_t at;   // of the element's bytes
    std::string bytes;
    const char* says;
  };
  const std::vector<Case> cases = {
      {DType::f32, 4 * 100, std::string("\0\0\xc0\x7f", 4), "'blk.0.ffn_up.weight': element 100"},
      {DType::f32, 4 * 6143, std::string("\0\0\x80\xff", 4), "element 6143"},
      {DType::f16, 2 * 7, std::string("\0\x7c", 2), "element 7"},
      {DType::bf16, 2 * 9, std::string("\x80\xff", 2), "element 9"},
      {DType::q8_0, 34 * 5, std::string("\1\x7e", 2), "the scale of block 5"},
  };
  for (const Case& c : cases) {
    auto data = weights(c.type, 96 * 64, 4);
    std::memcpy(data.data() + c.at, c.bytes.data(), c.bytes.size());
    auto builder = tiny_model("qwen3", DType::f16);
    builder.drop_tensor("blk.0.ffn_up.weight");
    builder.tensor("blk.0.ffn_up.weight", {64, 96}, static_cast<std::uint32_t>(c.type), data);
    check_says(source_error(builder), c.says);
  }
}

BOOST_AUTO_TEST_CASE(the_demo_models_are_read) {
  const std::string folder = DUET_SOURCE_DIR "/tools/demo_models/";
  for (const std::string name : {"abacus-f16", "abacus-q8_0", "fable-f16", "fable-q8_0"}) {
    const auto gguf = Gguf::open(folder + name + ".gguf").value();
    const auto source = read_model_source(gguf).value();
    BOOST_TEST(source.tensors.size() == (name[0] == 'a' ? 68U : 48U));
    BOOST_TEST(check_weights(source, name).has_value());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
