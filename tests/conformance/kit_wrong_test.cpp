// SPDX-License-Identifier: Apache-2.0
// The kit finds what is wrong: plugins with one fault each, and the cases that must fail for it.
//
// Where a fault shows in one place the whole set of failing ids is compared, so that a case that
// fails for everything would be noticed as well.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/conformance/kit_run.hpp"

namespace gradrack::test {
namespace {

using Ids = std::set<std::string>;

Ids failing(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--format", "json", "--time-limit", "5"});
  const KitRun run = run_kit(all);
  const Ids ids = ids_with(run, "fail");
  EXPECT_EQ(run.exit_code, ids.empty() ? 0 : 1) << run.errors;
  return ids;
}

Ids library_fails(const std::string& name) { return failing({wrong(name)}); }

Ids factory_fails(const std::string& library, const std::string& kind, const std::string& name) {
  return failing({wrong(library), "--kind", kind, "--name", name});
}

Ids rate_fails(const std::string& name) { return factory_fails("rates", "lr_schedule", name); }
Ids optimizer_fails(const std::string& name) {
  return factory_fails("optimizers", "optimizer", name);
}
Ids data_fails(const std::string& name) { return factory_fails("data", "data", name); }
Ids scheduler_fails(const std::string& name) { return factory_fails("parts", "scheduler", name); }
Ids sink_fails(const std::string& name) { return factory_fails("metrics", "metrics", name); }
Ids model_fails(const std::string& name) { return factory_fails("parts", "model", name); }

bool includes(const Ids& all, const Ids& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(ConformanceKit, PassesALibraryWithoutFault) { EXPECT_EQ(library_fails("none"), Ids{}); }

TEST(ConformanceKit, SeesHowALibraryIsLinked) {
  EXPECT_EQ(library_fails("plain_link"), (Ids{"L0.bind_now", "L0.nodelete", "L0.stack"}));
}

TEST(ConformanceKit, SeesASecondExport) {
  EXPECT_EQ(library_fails("extra_export"), Ids{"L0.exports"});
}

TEST(ConformanceKit, SeesWhatASinkDoesWrong) {
  EXPECT_EQ(sink_fails("right"), Ids{});
  EXPECT_EQ(sink_fails("keeps_records"), Ids{"L3.flat_memory"});
  EXPECT_EQ(sink_fails("finite_alone"), Ids{"L3.numbers"});
  EXPECT_EQ(sink_fails("plain_names"), Ids{"L3.texts"});
  EXPECT_EQ(sink_fails("once_a_folder"), Ids{"L3.again"});
  EXPECT_EQ(sink_fails("internal"), Ids{"L3.no_folder"});
}

TEST(ConformanceKit, SeesAFileThatOthersMayWrite) {
  const std::filesystem::path copy =
      std::filesystem::path(testing::TempDir()) / "gradrack_writable.so";
  std::filesystem::copy_file(wrong("none"), copy,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(chmod(copy.c_str(), 0666), 0);
  EXPECT_EQ(failing({copy.string(), "--level", "0"}), Ids{"L0.mode"});
  std::filesystem::remove(copy);
}

TEST(ConformanceKit, SeesAManifestThatIsNotTheFiles) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "gradrack_manifest";
  std::filesystem::create_directories(folder);
  const std::filesystem::path copy = folder / "gradrack_optimizer_adamw.so";
  const std::filesystem::path bundled = std::filesystem::path(GRADRACK_PLUGIN_DIR);
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(bundled / copy.filename(), copy, overwrite);
  const std::string name = "gradrack_optimizer_adamw.plugin.yaml";
  std::filesystem::copy_file(bundled / name, folder / name, overwrite);
  EXPECT_EQ(failing({copy.string(), "--case", "L0.manifest"}), Ids{});
  std::ofstream(copy, std::ios::app | std::ios::binary) << "x";
  EXPECT_EQ(failing({copy.string(), "--case", "L0.manifest"}), Ids{"L0.manifest"});
  std::filesystem::remove_all(folder);
}

TEST(ConformanceKit, SeesAnEntryThatTakesAnyHost) {
  EXPECT_EQ(library_fails("any_host"),
            (Ids{"L1.last_major", "L1.next_major", "L1.older_host", "L1.too_new_host"}));
}

TEST(ConformanceKit, SeesAnEntryThatChoosesWhatItDoesNotSpeak) {
  EXPECT_EQ(library_fails("newest_of_host"), Ids{"L1.newer_host"});
}

TEST(ConformanceKit, SeesWritesPastAShorterAnswer) {
  EXPECT_EQ(library_fails("answer_past"), Ids{"L1.short_answer"});
}

TEST(ConformanceKit, SeesWritesBeyondWhatThePluginKnows) {
  EXPECT_EQ(library_fails("answer_beyond"), Ids{"L1.long_answer"});
}

TEST(ConformanceKit, SeesAnEntryThatCounts) {
  EXPECT_EQ(library_fails("entry_counts"), Ids{"L1.twice"});
}

TEST(ConformanceKit, SeesTextsThatAreMissing) {
  EXPECT_EQ(library_fails("no_help"), Ids{"L1.texts"});
}

TEST(ConformanceKit, SeesThreadsOfEntry) {
  EXPECT_EQ(library_fails("entry_thread"), (Ids{"L2.early_threads", "L2.stop"}));
}

TEST(ConformanceKit, SeesThreadsThatStopLeaves) {
  EXPECT_EQ(library_fails("stop_leaves"), Ids{"L2.stop"});
}

TEST(ConformanceKit, SeesAStopThatMissesItsDeadline) {
  EXPECT_TRUE(includes(library_fails("stop_slow"), {"L2.stop", "L2.stop_unused"}));
}

TEST(ConformanceKit, SeesADeathAtExit) { EXPECT_EQ(library_fails("exit"), Ids{"L2.exit"}); }

TEST(ConformanceKit, SeesWritesPastAShorterTable) {
  EXPECT_EQ(rate_fails("past_the_end"), Ids{"L1.short_table"});
}

TEST(ConformanceKit, SeesWritesBeyondALongerTable) {
  EXPECT_EQ(rate_fails("beyond_its_own"), Ids{"L1.long_table"});
}

TEST(ConformanceKit, SeesAMissingSlot) {
  EXPECT_TRUE(includes(rate_fails("half_made"), {"L1.exact_table"}));
}

TEST(ConformanceKit, SeesLeaks) {
  EXPECT_EQ(rate_fails("leaks_memory"), Ids{"L2.create_destroy"});
  EXPECT_EQ(rate_fails("leaks_files"), Ids{"L2.create_destroy"});
  EXPECT_EQ(rate_fails("leaks_threads"), Ids{"L2.create_destroy"});
}

TEST(ConformanceKit, SeesInstancesThatShare) {
  EXPECT_EQ(rate_fails("shares"), Ids{"L2.two_instances"});
}

TEST(ConformanceKit, SeesAThreadThatIsTreatedOtherwise) {
  EXPECT_TRUE(includes(rate_fails("by_thread"), {"L2.other_thread"}));
}

TEST(ConformanceKit, SeesACrashWhenMemoryIsShort) {
  EXPECT_EQ(rate_fails("trusts_malloc"), (Ids{"L2.failing_allocation", "L2.out_of_memory"}));
}

TEST(ConformanceKit, SeesANeedForAnExtension) {
  EXPECT_EQ(rate_fails("needs_cancel"), Ids{"L2.no_extensions"});
}

TEST(ConformanceKit, SeesACancelThatIsAnError) {
  EXPECT_EQ(rate_fails("cancels_badly"), Ids{"L2.cancel"});
}

TEST(ConformanceKit, SeesAnExtensionThatNobodyDefined) {
  EXPECT_EQ(rate_fails("any_extension"), Ids{"L2.unknown_extension"});
}

TEST(ConformanceKit, SeesAnUnknownStatusForAnOption) {
  EXPECT_EQ(rate_fails("dislikes_ends"), Ids{"L2.extreme_options"});
}

TEST(ConformanceKit, SeesAProbeThatFlips) { EXPECT_EQ(rate_fails("flips"), Ids{"L2.probe"}); }

TEST(ConformanceKit, SeesARateThatIsNoNumber) {
  EXPECT_EQ(rate_fails("nan"), (Ids{"L3.base", "L3.concurrent", "L3.pure", "L3.range"}));
}

TEST(ConformanceKit, SeesARateThatDependsOnCalls) {
  EXPECT_TRUE(includes(rate_fails("counts"), {"L2.use", "L3.pure", "L3.concurrent"}));
}

TEST(ConformanceKit, SeesARateThatIsNotScaled) { EXPECT_EQ(rate_fails("grows"), Ids{"L3.base"}); }

TEST(ConformanceKit, SeesAHorizonThatEnds) {
  EXPECT_TRUE(includes(rate_fails("ends"), {"L3.beyond"}));
}

TEST(ConformanceKit, SeesOptimizersThatGoWrong) {
  EXPECT_EQ(optimizer_fails("ascends"), Ids{"L5.descends"});
  EXPECT_EQ(optimizer_fails("stays_put"), (Ids{"L5.descends", "L5.moves"}));
  EXPECT_EQ(optimizer_fails("moves_at_zero"), Ids{"L5.zero_lr"});
  EXPECT_EQ(optimizer_fails("blows_up"), (Ids{"L5.descends", "L5.finite", "L5.zero_lr"}));
}

TEST(ConformanceKit, SeesAnUpdateThatIsNotAFunctionOfItsValues) {
  EXPECT_TRUE(includes(optimizer_fails("counts_steps"), {"L2.use", "L3.same_graph"}));
}

TEST(ConformanceKit, SeesAnUpdateOfAnotherShape) {
  EXPECT_TRUE(includes(optimizer_fails("other_shape"), {"L3.update.bias", "L3.update.kernel"}));
}

TEST(ConformanceKit, SeesStateThatCannotBeLoaded) {
  EXPECT_EQ(optimizer_fails("renames_state"),
            (Ids{"L2.two_instances", "L5.deterministic", "L5.round_trip"}));
}

TEST(ConformanceKit, SeesAnErrorOfTheBuilderThatIsSwallowed) {
  EXPECT_EQ(optimizer_fails("swallows_errors"), Ids{"L2.failing_builder"});
}

TEST(ConformanceKit, SeesABuilderOnTheWrongThread) {
  // In debug builds the host's own check fails other cases too.
  EXPECT_TRUE(includes(optimizer_fails("other_thread"), {"L2.thread_roles"}));
}

TEST(ConformanceKit, SeesSchedulersThatGoWrong) {
  EXPECT_EQ(scheduler_fails("backwards"), (Ids{"L3.legal", "L3.memory_limit", "L3.shapes"}));
  EXPECT_EQ(scheduler_fails("greedy"), Ids{"L3.memory_limit"});
  EXPECT_EQ(scheduler_fails("no_streams"), Ids{"L3.streams"});
  EXPECT_TRUE(includes(scheduler_fails("forgetful"), {"L2.use", "L5.deterministic"}));
}

TEST(ConformanceKit, SeesPoliciesThatGoWrong) {
  EXPECT_TRUE(includes(factory_fails("parts", "precision", "flips"), {"L2.use", "L3.pure"}));
  EXPECT_EQ(factory_fails("parts", "precision", "whole_numbers"),
            (Ids{"L3.applies", "L3.operators", "L3.pure"}));
}

TEST(ConformanceKit, SeesModelsThatGoWrong) {
  EXPECT_EQ(model_fails("other_parameters"), Ids{"L3.same_parameters"});
  EXPECT_EQ(model_fails("always_drops"), Ids{"L5.evaluates"});
  EXPECT_EQ(model_fails("other_input"), Ids{"L3.inputs"});
  EXPECT_TRUE(includes(model_fails("divides_by_zero"), {"L5.trains", "L5.evaluates"}));
}

TEST(ConformanceKit, PassesAModelOfTwoObjectives) {
  EXPECT_EQ(model_fails("two_objectives"), Ids{});
}

TEST(ConformanceKit, PassesDataWithoutFault) { EXPECT_EQ(data_fails("right"), Ids{}); }

TEST(ConformanceKit, SeesDataThatGoesWrong) {
  EXPECT_TRUE(includes(data_fails("call_order"), {"L2.use", "L5.pure"}));
  EXPECT_EQ(data_fails("beyond_limit"), (Ids{"L3.limits", "L3.text"}));
  EXPECT_EQ(data_fails("not_a_number"), Ids{"L3.finite"});
  EXPECT_EQ(data_fails("short_training"), Ids{"L3.training_rows"});
  EXPECT_EQ(data_fails("endless"), Ids{"L3.validation_rows"});
  EXPECT_TRUE(includes(data_fails("gap_in_elements"), {"L3.fills_all"}));
  EXPECT_TRUE(includes(data_fails("writes_past"), {"L3.fills_all"}));
  EXPECT_EQ(data_fails("lossy_text"), Ids{"L3.text"});
}

}  // namespace
}  // namespace gradrack::test
