// signature_test.cpp: Ed25519 keys and signatures, hashes, and quantisation.
#include "device/package/signature.hpp"
#include "device/kernels/half.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/quantize.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <filesystem>
#include <limits>

#include <sys/stat.h>

namespace duet::device::test {

BOOST_AUTO_TEST_SUITE(signature)

BOOST_AUTO_TEST_CASE(sha256_gives_the_published_digests) {
  // FIPS 180-2, appendix B.
  BOOST_TEST(hex_text(sha256(as_byte_span("abc"))) ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(hex_text(sha256({})) ==
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// RFC 8032, section 7.1, test 2.
BOOST_AUTO_TEST_CASE(ed25519_gives_the_published_signature) {
  const auto key =
      parse_private_key("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n", "k")
          .value();
  const auto public_half = public_key(key).value();
  BOOST_TEST(hex_text(public_half) ==
             "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::byte message[] = {std::byte{0x72}};
  const auto made = sign(message, key).value();
  BOOST_TEST(hex_text(made) ==
             "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
             "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  BOOST_TEST(verify(message, made, public_half));
  auto wrong = made;
  wrong[5] ^= std::byte{1};
  BOOST_TEST(!verify(message, wrong, public_half));
  BOOST_TEST(!verify({}, made, public_half));
}

BOOST_AUTO_TEST_CASE(keys_survive_pem_and_nonsense_is_refused_without_showing_it) {
  const auto key = generate_key().value();
  const auto other = generate_key().value();
  BOOST_TEST(hex_text(key.seed()) != hex_text(other.seed()));
  const auto public_half = public_key(key).value();
  const std::string pem = private_key_pem(key).value();
  const std::string public_pem = public_key_pem(public_half).value();
  BOOST_TEST(hex_text(parse_private_key(pem, "k").value().seed()) == hex_text(key.seed()));
  BOOST_TEST((parse_public_key(public_pem, "k").value() == public_half));
  BOOST_TEST((parse_public_key(hex_text(public_half), "k").value() == public_half));
  for (const std::string& bad :
       {std::string(), std::string("x"), std::string(63, 'a'), std::string(65, 'a'),
        std::string(64, 'g'), pem.substr(0, 60), public_pem}) {
    const auto parsed = parse_private_key(bad, "k");
    BOOST_REQUIRE(parsed.has_error());
    if (bad.size() > 10)
      BOOST_TEST(parsed.error().message.find(bad.substr(0, 10)) == std::string::npos);
  }
  BOOST_TEST(parse_public_key(pem, "k").has_error());
}

BOOST_AUTO_TEST_CASE(a_new_file_never_replaces_one_and_keeps_its_mode) {
  const ScratchDirectory scratch;
  BOOST_TEST(write_new_file(scratch.at("k"), as_byte_span("x"), 0600).has_value());
  BOOST_TEST(write_new_file(scratch.at("k"), as_byte_span("y")).has_error());
  BOOST_TEST(ScratchDirectory::read_file(scratch.at("k")) == "x");
  struct stat status = {};
  BOOST_REQUIRE(::stat(scratch.at("k").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0600U);
  BOOST_TEST(read_small_file(scratch.at("k"), 0).has_error());
}

// No path leaves the directory.
BOOST_AUTO_TEST_CASE(a_tree_is_never_left_through_names_or_links) {
  const ScratchDirectory scratch;
  namespace fs = std::filesystem;
  fs::create_directories(scratch.at("tree/sub"));
  scratch.write("outside", "secret");
  scratch.write("tree/sub/file", "inside");
  fs::create_symlink("../outside", scratch.at("tree/link"));
  fs::create_directory_symlink("..", scratch.at("tree/up"));
  BOOST_REQUIRE(::mkfifo(scratch.at("tree/pipe").c_str(), 0600) == 0);
  const auto tree = FileTree::open(scratch.at("tree")).value();
  BOOST_TEST(as_text(tree.map("sub/file").value()->bytes()) == "inside");
  for (const char* path : {"../outside", "sub/../../outside", "/etc/passwd", "link", "up/outside",
                           "sub", "", ".", "sub//file", "pipe", "none"}) {
    BOOST_TEST_CONTEXT("path: " << path) {
      BOOST_TEST(tree.map(path).has_error());
    }
  }
  const auto listing = tree.list().value();
  BOOST_TEST((listing.files == std::vector<std::string>{"sub/file"}));
  BOOST_TEST(
      (listing.irregular ==
       std::vector<std::string>{"link: symbolic link", "pipe: named pipe", "up: symbolic link"}));
}

// The definition of numerics 1: d = max|x|/127, q = round half away from zero (x * (1/d)), clamped
// to 127.
BOOST_AUTO_TEST_CASE(quantisation_follows_its_definition) {
  std::vector<float> values(64, 0.0F);
  for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i) - 15.5F;
  values[3] = -127.0F;   // d = 1 exactly: halves must go away from zero
  std::vector<std::byte> out(68);
  BOOST_REQUIRE(quantize_q8_0(values, out));
  BOOST_TEST(f16_to_f32(load_le<std::uint16_t>(out, 0)) == 1.0F);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto q = static_cast<int>(load_le<std::int8_t>(out, 2 + i));
    BOOST_TEST(q == static_cast<int>(std::round(values[i])));
  }
  for (std::size_t i = 34; i < 68; ++i) BOOST_TEST((out[i] == std::byte{0}));   // a block of zeros
  // Random blocks against the definition in double-checked F32.
  std::uint32_t state = 7;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> block(32);
    for (float& x : block) {
      state = state * 1664525U + 1013904223U;
      x = std::ldexp(static_cast<float>(static_cast<std::int32_t>(state)), -31 + round % 40 - 20);
    }
    std::vector<std::byte> bytes(34);
    BOOST_REQUIRE(quantize_q8_0(block, bytes));
    float largest = 0;
    for (const float x : block) largest = std::max(largest, std::fabs(x));
    const float d = largest / 127.0F;
    BOOST_TEST(load_le<std::uint16_t>(bytes, 0) == f32_to_f16(d));
    for (std::size_t i = 0; i < 32; ++i) {
      const float scaled = d == 0 ? 0 : block[i] * (1.0F / d);
      BOOST_TEST(static_cast<int>(load_le<std::int8_t>(bytes, 2 + i)) ==
                 std::clamp(static_cast<int>(std::round(scaled)), -127, 127));
    }
  }
  std::vector<float> tiny(32, std::numeric_limits<float>::denorm_min());
  std::vector<std::byte> block(34);
  BOOST_TEST(quantize_q8_0(tiny, block));
  BOOST_TEST((block[2] == std::byte{0}));
  std::vector<float> huge(32, 1e7F);
  BOOST_TEST(!quantize_q8_0(huge, block));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
