// replay_main.cpp: runs a fuzz target over its corpus and over seeded mutations of it, without
// libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// Enough to reach the error paths of every field; the long search is libFuzzer's.
constexpr int mutations_per_file = 200;

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void mutate(std::vector<std::uint8_t>& bytes, std::mt19937_64& random) {
  for (std::uint64_t edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        bytes.resize(at);   // cut
        break;
      case 3:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes[at]);
        break;
      default:   // a huge little-endian number
        for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i) bytes[i] = 0xff;
    }
  }
}

}   // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "%s: the corpus %s is empty\n", argv[0], argv[1]);
    return 1;
  }
  std::size_t runs = 0;
  for (const auto& path : files) {
    const std::vector<std::uint8_t> original = read_file(path);
    LLVMFuzzerTestOneInput(original.data(), original.size());
    std::mt19937_64 random(std::hash<std::string>{}(path.filename().string()));
    for (int i = 0; i < mutations_per_file; ++i, ++runs) {
      std::vector<std::uint8_t> bytes = original;
      mutate(bytes, random);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%zu files, %zu mutations\n", files.size(), runs);
  return 0;
}
