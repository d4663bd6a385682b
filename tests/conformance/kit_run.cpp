// SPDX-License-Identifier: Apache-2.0
// See kit_run.hpp.
#include "tests/conformance/kit_run.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace gradrack::test {
namespace {

using nlohmann::json;

std::string quoted(const std::string& word) { return "'" + word + "'"; }

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

json report_of(const KitRun& run) {
  const json report = json::parse(run.output, nullptr, false);
  EXPECT_TRUE(report.is_object()) << run.output << run.errors;
  return report;
}

}  // namespace

KitRun run_kit(const std::vector<std::string>& arguments) {
  char folder[] = "/tmp/gradrack-kit-XXXXXX";
  if (mkdtemp(folder) == nullptr) return {};
  const std::filesystem::path base = folder;
  std::string command = quoted(GRADRACK_KIT);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " >" + quoted(base / "out") + " 2>" + quoted(base / "err");
  const int status = std::system(command.c_str());
  KitRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.output = content(base / "out");
  run.errors = content(base / "err");
  std::filesystem::remove_all(base);
  return run;
}

std::set<std::string> ids_with(const KitRun& run, const std::string& verdict) {
  std::set<std::string> ids;
  for (const json& one : report_of(run).value("cases", json::array())) {
    if (one.value("verdict", "") == verdict) ids.insert(one.value("id", ""));
  }
  return ids;
}

std::string text_of(const KitRun& run, const std::string& id) {
  for (const json& one : report_of(run).value("cases", json::array())) {
    if (one.value("id", "") == id) return one.value("text", "");
  }
  return "";
}

std::string wrong(const std::string& name) {
  return std::string(GRADRACK_WRONG_DIR) + "/" + name + ".so";
}

}  // namespace gradrack::test
