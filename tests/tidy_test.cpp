// tidy_test.cpp: the rules of form that a machine can check: who may include whom, what is banned
// outside the seams, coroutine patterns that g++ 12 compiles wrongly, and the shape of files.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;   // relative to the root, e.g. "runtime/clock.hpp"
  std::vector<std::string> lines;
};

constexpr std::array folders = {"runtime", "text", "device", "actors", "http", "config", "tools"};

std::vector<File> read_tree(const std::vector<std::string>& tops,
                            const std::set<std::string>& endings) {
  std::vector<File> files;
  const fs::path root = DUET_SOURCE_DIR;
  for (const std::string& top : tops) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !endings.contains(entry.path().extension().string()))
        continue;
      File file{fs::relative(entry.path(), root).string(), {}};
      if (file.path.find("node_modules") != std::string::npos) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

const std::vector<File>& sources() {
  static const std::vector<File> files =
      read_tree({"runtime", "text", "device", "actors", "http", "config", "tools", "tests"},
                {".hpp", ".cpp", ".inl", ".h"});
  return files;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

/// The line without string literals and without a trailing comment.
std::string code_of(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
      code += c;
    } else if (!quoted && c == '/' && i + 1 < line.size() && line[i + 1] == '/') {
      break;
    } else if (!quoted) {
      code += c;
    }
  }
  return code;
}

class Findings {
 public:
  void add(const File& file, std::size_t line, const std::string& what) {
    text_ << "\n  " << file.path << ":" << line + 1 << ": " << what;
    ++count_;
  }
  ~Findings() { BOOST_TEST(count_ == 0U, count_ << " findings:" << text_.str()); }

 private:
  std::ostringstream text_;
  std::size_t count_ = 0;
};

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

}   // namespace

BOOST_AUTO_TEST_SUITE(tidy)

// runtime <- device <- actors <- http <- config <- tools, and text <- actors; tests see all.
BOOST_AUTO_TEST_CASE(includes_follow_the_arrow) {
  const std::map<std::string, std::set<std::string>> may_include = {
      {"runtime", {"runtime"}},
      {"text", {"text", "runtime"}},
      {"device", {"device", "runtime"}},
      {"actors", {"actors", "text", "device", "runtime"}},
      {"http", {"http", "actors", "text", "device", "runtime"}},
      {"config", {"config", "http", "actors", "text", "device", "runtime"}},
      {"tools", {"tools", "config", "http", "actors", "text", "device", "runtime"}},
  };
  const std::regex include(R"re(^\s*#include\s+"([^"]+)")re");
  Findings findings;
  for (const File& file : sources()) {
    const auto allowed = may_include.find(folder_of(file.path));
    if (allowed == may_include.end()) continue;
    if (file.path.starts_with("runtime/examples/")) continue;   // other people's programs
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, include)) continue;
      const std::string target = match[1];
      const std::string top = folder_of(target);
      if (std::find(folders.begin(), folders.end(), top) == folders.end()) {
        findings.add(file, i, "include by the full path from the root, not " + target);
      } else if (!allowed->second.contains(top)) {
        findings.add(file, i, folder_of(file.path) + "/ must not know " + target);
      }
      if (file.path.starts_with("text/") && top == "runtime" && target != "runtime/assert.hpp") {
        findings.add(file, i, "text/ is pure: of runtime/ it may use assert.hpp alone");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_folders_detail_is_its_own) {
  const std::regex include(R"re(^\s*#include\s+"((\w+)(?:/\w+)*/detail/[^"]+)")re");
  Findings findings;
  for (const File& file : sources()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, include)) continue;
      const std::string owner = match[2];
      if (!file.path.starts_with(owner + "/") && !file.path.starts_with("tests/" + owner + "/")) {
        findings.add(file, i, match[1].str() + " is internal to " + owner + "/");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(yaml_is_read_in_config_and_package_alone) {
  Findings findings;
  for (const File& file : sources()) {
    if (starts_with_any(file.path, {"config/", "device/package/", "tests/"})) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (file.lines[i].find("<yaml-cpp/") != std::string::npos) findings.add(file, i, "yaml-cpp");
    }
  }
}

// Determinism: time, sleep, threads, locks and randomness pass through the seams.
BOOST_AUTO_TEST_CASE(nothing_outside_the_seams_reads_clocks_or_makes_threads) {
  const std::regex banned(
      R"(steady_clock::now|system_clock::now|high_resolution_clock::now|\bclock_gettime\b)"
      R"(|\bgettimeofday\b|\bsleep_for\b|\bsleep_until\b|\busleep\b|\bnanosleep\b)"
      R"(|std::(j?thread|mutex|shared_mutex|recursive_mutex)"
      R"(|timed_mutex|condition_variable|condition_variable_any|random_device|async|this_thread)\b)"
      R"(|\bs?rand\(|steady_timer|system_timer|\bpthread_create\b)");
  const std::vector<std::string> excepted = {"runtime/real_", "runtime/completion_thread.",
                                             // Yields to a sender that is between the two steps
                                             // of its push; a simulation has no such moment.
                                             "runtime/detail/await_link.hpp", "runtime/examples/",
                                             "device/emulator/threaded_", "tools/", "tests/"};
  Findings findings;
  for (const File& file : sources()) {
    if (starts_with_any(file.path, excepted)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      const std::string code = code_of(file.lines[i]);
      if (std::regex_search(code, match, banned)) findings.add(file, i, match.str());
    }
  }
}

BOOST_AUTO_TEST_CASE(tests_neither_sleep_nor_use_fixed_ports) {
  const std::regex banned(R"(sleep_for|sleep_until|\busleep\(|\bport\s*=\s*[1-9][0-9]{3,})");
  Findings findings;
  for (const File& file : sources()) {
    if (!file.path.starts_with("tests/") || file.path == "tests/tidy_test.cpp") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      const std::string code = code_of(file.lines[i]);
      if (std::regex_search(code, match, banned)) findings.add(file, i, match.str());
    }
  }
}

// g++ 12.2 destroys aggregate and capturing-lambda temporaries twice inside a co_await expression.
BOOST_AUTO_TEST_CASE(no_co_await_expression_holds_a_temporary_that_gcc_destroys_twice) {
  const std::regex lambda(R"(co_await[^;]*\[[^\]]*[A-Za-z&=][^\]]*\]\s*(\(|\{|mutable))");
  const std::regex braces(R"(co_await[^;]*\b[A-Z]\w*\s*\{)");
  const std::regex conditional(R"(\?[^:;]*co_await|co_await[^;]*\?[^;]*:)");
  const std::regex construction(R"(\bnew\s+\w+[^;]*co_await)");
  Findings findings;
  for (const File& file : sources()) {
    if (file.path == "tests/tidy_test.cpp") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      if (code.find("co_await") == std::string::npos) continue;
      if (std::regex_search(code, lambda)) findings.add(file, i, "name the lambda before co_await");
      if (std::regex_search(code, braces))
        findings.add(file, i, "name the temporary before co_await");
      if (std::regex_search(code, conditional)) findings.add(file, i, "no co_await in ?:");
      if (std::regex_search(code, construction)) findings.add(file, i, "no new of a co_await");
    }
  }
}

BOOST_AUTO_TEST_CASE(files_begin_with_their_purpose_and_stay_readable) {
  constexpr std::size_t columns_max = 100;
  constexpr std::size_t lines_max = 600;
  Findings findings;
  for (const File& file : sources()) {
    const std::string name = fs::path(file.path).filename().string();
    if (file.lines.empty() || !file.lines[0].starts_with("// " + name + ": ")) {
      findings.add(file, 0, "the first line says what the file is for: // " + name + ": ...");
    }
    const bool header = name.ends_with(".hpp") || name.ends_with(".h");
    const bool once =
        std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
    if (header && !once && !name.ends_with("_abi.h"))
      findings.add(file, 0, "#pragma once is missing");
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      // A byte above 0x7f continues a character; columns are counted in characters.
      const auto columns = static_cast<std::size_t>(
          std::count_if(file.lines[i].begin(), file.lines[i].end(),
                        [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
      if (columns > columns_max) findings.add(file, i, std::to_string(columns) + " columns");
      if (file.lines[i].find('\t') != std::string::npos) findings.add(file, i, "a tab");
    }
    const bool reasoned = std::any_of(
        file.lines.begin(),
        file.lines.begin() +
            static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, file.lines.size())),
        [](const std::string& line) { return line.find("one file because") != std::string::npos; });
    if (file.lines.size() > lines_max && !reasoned) {
      findings.add(
          file, 0,
          std::to_string(file.lines.size()) + " lines; split it, or say 'one file because ...'");
    }
  }
}

BOOST_AUTO_TEST_CASE(no_unfinished_work_is_marked_in_the_tree) {
  const std::regex marks(std::string(R"(\b(TO)") + "DO|FIX" + "ME|X" + "XX|HA" + R"(CK)\b)");
  Findings findings;
  for (const File& file : sources()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (std::regex_search(file.lines[i], marks)) findings.add(file, i, "finish it or file it");
    }
  }
}

BOOST_AUTO_TEST_CASE(every_source_file_is_in_a_target) {
  Findings findings;
  std::map<std::string, std::string> lists;   // folder -> its CMakeLists.txt
  for (const File& file : sources()) {
    if (!file.path.ends_with(".cpp")) continue;
    const fs::path path = file.path;
    bool listed = false;
    for (fs::path folder = path.parent_path(); !listed; folder = folder.parent_path()) {
      auto& text = lists[folder.string()];
      if (text.empty()) {
        std::ifstream in(fs::path(DUET_SOURCE_DIR) / folder / "CMakeLists.txt");
        text.assign(std::istreambuf_iterator<char>(in), {});
        if (folder == "tests") {   // helpers that every test or fuzz target gets
          std::ifstream helper(fs::path(DUET_SOURCE_DIR) / "cmake/duet.cmake");
          text.append(std::istreambuf_iterator<char>(helper), {});
        }
      }
      const std::string name = fs::relative(path, folder).string();
      listed = text.find(name) != std::string::npos;
      const std::string stem = path.stem().string();
      if (stem.ends_with("_fuzz")) {
        listed = listed ||
                 text.find("duet_fuzz(" + stem.substr(0, stem.size() - 5)) != std::string::npos;
      }
      if (folder.empty()) break;
    }
    if (!listed) findings.add(file, 0, "is in no CMakeLists.txt");
  }
}

BOOST_AUTO_TEST_CASE(every_error_value_is_explained) {
  Findings findings;
  for (const File& file : sources()) {
    if (file.path.starts_with("tests/") || !file.path.ends_with("error.hpp")) continue;
    bool inside = false;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (line.find("enum class errc") != std::string::npos) {
        inside = true;
      } else if (inside && line.find("};") != std::string::npos) {
        inside = false;
      } else if (inside && std::regex_search(line, std::regex(R"(^\s+\w+( = \d+)?,)")) &&
                 line.find("///<") == std::string::npos) {
        findings.add(file, i, "an errc value without its sentence");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_markdown_file_has_one_title) {
  std::vector<File> files = read_tree(
      {"runtime", "text", "device", "actors", "http", "config", "tools", "tests", "docs", "deploy"},
      {".md"});
  for (const char* name : {"README.md", "CHANGELOG.md"}) {
    std::ifstream in(fs::path(DUET_SOURCE_DIR) / name);
    File file{name, {}};
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  Findings findings;
  for (const File& file : files) {
    bool fenced = false;
    std::size_t titles = 0;
    for (const std::string& line : file.lines) {
      if (line.starts_with("```")) fenced = !fenced;
      if (!fenced && line.starts_with("# ")) ++titles;
    }
    if (titles != 1) findings.add(file, 0, std::to_string(titles) + " titles");
  }
}

BOOST_AUTO_TEST_CASE(every_test_that_a_promise_of_the_runtime_names_exists) {
  std::set<std::string> tests;
  const std::regex name_of_test(R"(BOOST_(?:AUTO|DATA)_TEST_CASE\((\w+))");
  for (const File& file : sources()) {
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, name_of_test)) tests.insert(match[1]);
    }
  }
  std::ifstream in(fs::path(DUET_SOURCE_DIR) / "docs/runtime.md");
  BOOST_REQUIRE(in);
  const std::regex quoted("`([a-z0-9]+(?:_[a-z0-9]+){3,})`");
  std::size_t named = 0;
  for (std::string line; std::getline(in, line);) {
    const std::sregex_iterator end;
    for (std::sregex_iterator it(line.begin(), line.end(), quoted); it != end; ++it) {
      ++named;
      BOOST_TEST(tests.contains((*it)[1]), "docs/runtime.md names no test of ours: " + it->str());
    }
  }
  BOOST_TEST(named > 40U);
}

BOOST_AUTO_TEST_SUITE_END()
