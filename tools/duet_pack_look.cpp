// duet_pack_look.cpp: the commands of duet-pack that only look: schema, inspect, audit, diff.
#include "device/package/manifest_schema.hpp"
#include "device/package/validator.hpp"
#include "tools/duet_pack_audit.hpp"
#include "tools/duet_pack_command.hpp"
#include "tools/duet_pack_diff.hpp"
#include "tools/duet_pack_show.hpp"

#include <boost/program_options.hpp>

#include <iostream>

namespace duet::tools {

namespace po = boost::program_options;

int run_schema(const Words& words) {
  const auto map = parse_words(words, "schema", {}, {}, 0);
  if (map.count("help") == 0) std::cout << device::manifest_json_schema();
  return exit_done;
}

int run_inspect(const Words& words) {
  po::options_description text;
  text.add_options()("sections", "list every section with chip, address and size too");
  const auto map = parse_words(words, "inspect", text, {"DIRECTORY"}, 1);
  if (map.count("help") != 0) return exit_done;
  // Sound package or not: a refused one is the one to look into.
  const PackageContent content = take(read_content(map["DIRECTORY"].as<std::string>()));
  if (map.count("json") != 0) {
    std::cout << content_json(content) << "\n";
    return exit_done;
  }
  print_content(content, std::cout);
  if (map.count("sections") != 0) print_sections(content.manifest, std::cout);
  return exit_done;
}

int run_audit(const Words& words) {
  po::options_description text;
  text.add_options()("with", po::value<Words>(),
                     "another package of the same delivery; may be there several times");
  add_trust_options(text);
  const auto map = parse_words(words, "audit", text, {"DIRECTORY"}, 1);
  if (map.count("help") != 0) return exit_done;
  Words directories = {map["DIRECTORY"].as<std::string>()};
  if (map.count("with") != 0) {
    const Words& others = map["with"].as<Words>();
    directories.insert(directories.end(), others.begin(), others.end());
  }
  device::ValidateOptions options = trust_options(map);
  options.allow_unsigned = true;   // the audit tells who signed; it does not load anything
  std::vector<Delivered> packages;
  for (const std::string& directory : directories) {
    packages.push_back(
        {take(read_content(directory)), device::validate_package(directory, options)});
  }
  const auto items = audit(packages);
  if (map.count("json") != 0) {
    std::cout << audit_json(packages, items) << "\n";
  } else {
    print_audit(packages, items, std::cout);
  }
  bool sound = count(items, AuditStatus::missing) == 0;
  for (const Delivered& package : packages) sound = sound && package.report.package != nullptr;
  return sound ? exit_done : exit_finding;
}

int run_diff(const Words& words) {
  const auto map = parse_words(words, "diff", {}, {"DIRECTORY", "OTHER"}, 2);
  if (map.count("help") != 0) return exit_done;
  const PackageContent a = take(read_content(map["DIRECTORY"].as<std::string>()));
  const PackageContent b = take(read_content(map["OTHER"].as<std::string>()));
  const auto differences = compare(a, b);
  if (map.count("json") != 0) {
    std::cout << differences_json(a, b, differences) << "\n";
  } else if (differences.empty()) {
    std::cout << a.directory << " and " << b.directory << " hold the same\n";
  } else {
    print_differences(differences, std::cout);
  }
  return differences.empty() ? exit_done : exit_finding;
}

}   // namespace duet::tools
