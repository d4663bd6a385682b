// SPDX-License-Identifier: Apache-2.0
// The kit's frame: isolation, limits, repro lines, reports, exit codes, and that no kind is without
// cases.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/plugin/library.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "tests/conformance/kit_run.hpp"

namespace gradrack::test {
namespace {

using conform::Case;
using conform::Target;

TEST(ConformanceCatalogue, HasCasesForEveryKindOfTheAbi) {
  const std::vector<std::string> known = conform::kinds_with_cases();
  for (const std::string& kind : plugin_kinds()) {
    EXPECT_EQ(std::count(known.begin(), known.end(), kind), 1) << kind;
    std::vector<Case> own = conform::cases_of({"/none.so", kind, "x"});
    std::vector<Case> shared;
    conform::add_table_cases({}, &shared);
    conform::add_lifecycle_cases({}, &shared);
    conform::add_fault_cases({}, &shared);
    EXPECT_GT(own.size(), shared.size()) << kind << " has no case of its own";
  }
}

TEST(ConformanceCatalogue, IdsAreUniqueAndBeginWithTheirLevel) {
  std::vector<std::string> kinds = plugin_kinds();
  kinds.push_back("");
  for (const std::string& kind : kinds) {
    std::set<std::string> seen;
    for (const Case& one : conform::cases_of({"/none.so", kind, kind})) {
      EXPECT_TRUE(seen.insert(one.id).second) << kind << " " << one.id;
      EXPECT_EQ(one.id.rfind("L" + std::to_string(one.level) + ".", 0), 0u) << one.id;
      EXPECT_FALSE(one.title.empty()) << one.id;
    }
  }
}

KitRun rate(const std::string& name, std::vector<std::string> more) {
  std::vector<std::string> arguments = {wrong("rates"), "--kind", "lr_schedule", "--name", name};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_kit(arguments);
}

TEST(ConformanceKitFrame, ACrashCostsItsCaseAlone) {
  const KitRun run = rate("crashes", {"--format", "json", "--filter", "L[23]*"});
  EXPECT_EQ(run.exit_code, 2) << "globs know * and ? alone";
  const KitRun all = rate("crashes", {"--format", "json"});
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_NE(text_of(all, "L2.use").find("SIGSEGV"), std::string::npos);
  EXPECT_EQ(ids_with(all, "pass").count("L2.create_destroy"), 1u);
  EXPECT_EQ(ids_with(all, "pass").count("L2.extreme_options"), 1u);
}

TEST(ConformanceKitFrame, AHangEndsAtTheTimeLimit) {
  const KitRun run =
      rate("hangs", {"--format", "json", "--case", "L3.range", "--time-limit", "0.5"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(text_of(run, "L3.range"), "did not end within 0.5 s");
}

TEST(ConformanceKitFrame, AReproLineRunsTheFailureAgain) {
  const KitRun run = rate("nan", {"--seed", "42"});
  EXPECT_NE(run.output.find("seed 42"), std::string::npos) << run.output;
  const std::string marker = "again: ";
  const size_t at = run.output.find(marker);
  ASSERT_NE(at, std::string::npos) << run.output;
  const size_t from = at + marker.size();
  const std::string line = run.output.substr(from, run.output.find('\n', from) - from);
  EXPECT_NE(line.find("--case L3."), std::string::npos) << line;
  EXPECT_NE(line.find("--seed 42"), std::string::npos) << line;
  EXPECT_NE(line.find("--name nan"), std::string::npos) << line;
  EXPECT_EQ(WEXITSTATUS(std::system((line + " >/dev/null 2>&1").c_str())), 1) << line;
}

TEST(ConformanceKitFrame, RunsACaseInItsOwnProcessForDebuggers) {
  const KitRun bad = rate("nan", {"--case", "L3.range", "--in-process"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.output.find("L3.range: fail"), std::string::npos) << bad.output;
  EXPECT_EQ(rate("right", {"--case", "L3.range", "--in-process"}).exit_code, 0);
}

TEST(ConformanceKitFrame, WritesJUnit) {
  const KitRun run = rate("nan", {"--format", "junit", "--level", "3"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.output.find("<testsuites name="), std::string::npos);
  EXPECT_NE(run.output.find("<testcase classname=\"gradrack.lr_schedule.nan\" name=\"L3.beyond\""),
            std::string::npos)
      << run.output;
  EXPECT_NE(run.output.find("failures=\"4\""), std::string::npos) << run.output;
}

TEST(ConformanceKitFrame, WritesTheReportToAFile) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "kit_report.json";
  std::filesystem::remove(file);
  const KitRun run = rate("right", {"--format", "json", "-o", file.string()});
  EXPECT_EQ(run.exit_code, 0);
  std::ifstream in(file);
  EXPECT_EQ(nlohmann::json::parse(in, nullptr, false).value("fail", -1), 0);
  EXPECT_NE(run.output.find("PASS:"), std::string::npos) << run.output;
  std::filesystem::remove(file);
  EXPECT_EQ(rate("right", {"--level", "3", "-o", "/no/such/folder/x"}).exit_code, 4);
}

TEST(ConformanceKitFrame, ListsWithoutRunning) {
  const KitRun run = rate("hangs", {"--list"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.output.find("L3.range"), std::string::npos);
}

TEST(ConformanceKitFrame, ExitCodesTellWhoseFaultItIs) {
  EXPECT_EQ(run_kit({"--help"}).exit_code, 0);
  EXPECT_EQ(run_kit({}).exit_code, 2);
  EXPECT_EQ(rate("right", {"--level", "7"}).exit_code, 2);
  EXPECT_EQ(rate("right", {"--case", "L9.none"}).exit_code, 2);
  EXPECT_EQ(rate("right", {"--set", "factr=1"}).exit_code, 2);
  EXPECT_EQ(rate("right", {"--set", "factor=11"}).exit_code, 2);
  EXPECT_EQ(rate("right", {"--set", "factor=2"}).exit_code, 0);
  EXPECT_EQ(rate("absent", {}).exit_code, 2);
  EXPECT_EQ(run_kit({"/no/such/file.so"}).exit_code, 3);
}

TEST(ConformanceKitFrame, SaysWhyALibraryCannotBeLoaded) {
  const KitRun run = run_kit({std::string(GRADRACK_SOURCE_DIR) + "/README.md", "--format", "json"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(ids_with(run, "fail").count("L0.elf"), 1u) << run.output;
}

}  // namespace
}  // namespace gradrack::test
