// SPDX-License-Identifier: Apache-2.0
// RunConfig: sections, chains, host keys, the words of refusals.
#include "core/config/run_config.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/exit_codes.hpp"

namespace gradrack {
namespace {

const char kSmall[] =
    "run: {max_steps: 10, batch_size: 2}\n"
    "model: {plugin: gpt, layers: 2}\n"
    "data: {plugin: text}\n"
    "optimizer: {plugin: adamw, lr: 1e-3}\n";

RunConfig config_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  Result<RunConfig> config = parse_run_config(text, "small.yaml", sets);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? std::move(*config) : RunConfig{};
}

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  const Result<RunConfig> config = parse_run_config(text, "small.yaml", sets);
  if (config.ok()) return "no error";
  EXPECT_EQ(exit_code(config.status()), kExitUsage);
  EXPECT_EQ(config.status().message().find('\n'), std::string::npos);
  return config.status().message();
}

TEST(RunConfig, FillsDefaultsAndNamesThem) {
  const RunConfig config = config_of(kSmall);
  EXPECT_EQ(config.run.seed, 1);
  EXPECT_EQ(config.run.accumulate_steps, 1);
  EXPECT_EQ(config.run.log_interval, 10);
  EXPECT_EQ(config.run.name, "small");
  EXPECT_EQ(config.run.output, "runs/small");
  EXPECT_TRUE(std::isinf(config.run.max_grad_norm));
  EXPECT_EQ(config.metrics_file, "metrics.jsonl");
  EXPECT_EQ(config.fallback, Fallback::kWarn);
  EXPECT_EQ(config.memory_limit_bytes, 0);
  EXPECT_EQ(config.defaults,
            (std::vector<std::string>{"lr_schedule: constant", "precision: fp32",
                                      "scheduler: sequential", "backend: cpu, then reference"}));
  EXPECT_DOUBLE_EQ(base_lr(config.optimizer.chain[0]), 1e-3);
}

TEST(RunConfig, SetWinsOverTheFile) {
  EXPECT_EQ(config_of(kSmall, {"run.max_steps=7", "run.max_steps=8"}).run.max_steps, 8);
}

TEST(RunConfig, FusionIsASwitchOrAListOfPatterns) {
  using Texts = std::vector<std::string>;
  EXPECT_TRUE(config_of(kSmall).fuse);
  EXPECT_TRUE(config_of(kSmall, {"backend.plugin=cpu", "backend.fuse=true"}).fuse);
  const RunConfig off = config_of(kSmall, {"backend.plugin=cpu", "backend.fuse=false"});
  EXPECT_FALSE(off.fuse);
  EXPECT_TRUE(off.fuse_left_out.empty());
  const RunConfig two =
      config_of(kSmall, {"backend.plugin=cpu", "backend.fuse=[add_norm, swiglu]"});
  EXPECT_TRUE(two.fuse);
  EXPECT_EQ(two.fuse_left_out, (Texts{"add_norm", "swiglu"}));
  EXPECT_EQ(config_of(kSmall, {"backend.plugin=cpu", "backend.fuse=swiglu"}).fuse_left_out,
            Texts{"swiglu"});
  EXPECT_TRUE(config_of(kSmall, {"backend.plugin=cpu", "backend.fuse=[]"}).fuse);
  EXPECT_NE(error_of(kSmall, {"backend.plugin=cpu", "backend.fuse=3"})
                .find("backend.fuse: element 0: got"),
            std::string::npos)
      << error_of(kSmall, {"backend.plugin=cpu", "backend.fuse=3"});
  EXPECT_NE(error_of(kSmall, {"backend.plugin=cpu", "backend.fuse={a: b}"})
                .find("true, false or a list of texts"),
            std::string::npos)
      << error_of(kSmall, {"backend.plugin=cpu", "backend.fuse={a: b}"});
}

TEST(RunConfig, SetErrorsNameTheSet) {
  EXPECT_EQ(
      error_of(kSmall, {"run.batch_size=x"}),
      "--set run.batch_size=x: run.batch_size: got text 'x', wanted a whole number >= 1 and <= "
      "9007199254740992");
}

TEST(RunConfig, YML08_MisplacedTopLevelKeySaysWhereItBelongs) {
  EXPECT_EQ(error_of("lr: 1\n" + std::string(kSmall)),
            "small.yaml:1:1: lr: unknown section; it belongs into a section: write optimizer.lr");
}

TEST(RunConfig, YML08_UnknownSectionNamesTheNearest) {
  const std::string error = error_of(std::string(kSmall) + "optimiser: {}\n");
  EXPECT_NE(error.find("small.yaml:5:1: optimiser: unknown section (did you mean 'optimizer'?)"),
            std::string::npos)
      << error;
}

TEST(RunConfig, YML08_UnknownHostKeyNamesTheNearest) {
  const std::string error = error_of("run: {max-steps: 3}\n");
  EXPECT_NE(error.find("small.yaml:1:7: run.max-steps: unknown key (did you mean 'max_steps'?)"),
            std::string::npos)
      << error;
}

TEST(RunConfig, YML09_RefusesTopLevelsThatAreNoMap) {
  EXPECT_EQ(error_of("---\n"), "small.yaml: nothing in it (no keys)");
  EXPECT_NE(error_of("- a\n").find("got a list at the top"), std::string::npos);
  EXPECT_NE(error_of("text\n").find("got text 'text' at the top"), std::string::npos);
  EXPECT_NE(error_of("{}\n").find("run.batch_size: missing"), std::string::npos);
}

TEST(RunConfig, YML11_MaxGradNormTakesInfAloneOfTheSpecials) {
  const std::string head = "run: {max_steps: 1, batch_size: 1, max_grad_norm: ";
  const std::string tail =
      "}\nmodel: {plugin: m}\ndata: {plugin: d}\noptimizer: {plugin: o, lr: 1}\n";
  EXPECT_TRUE(std::isinf(config_of(head + ".inf" + tail).run.max_grad_norm));
  EXPECT_NE(error_of(head + "-.INF" + tail).find("run.max_grad_norm: got the number -.INF"),
            std::string::npos);
  EXPECT_NE(error_of(head + ".nan" + tail).find("wanted a number > 0"), std::string::npos);
  EXPECT_NE(error_of(head + "0" + tail).find("wanted a number > 0"), std::string::npos);
  EXPECT_NE(error_of(head + "inf" + tail).find("got text 'inf'"), std::string::npos);
}

TEST(RunConfig, YML11_ResolvedConfigLoadsAgain) {
  const RunConfig config = config_of(kSmall, {"run.max_grad_norm=0.1", "optimizer.lr=5e-324"});
  const RunConfig again = config_of(to_yaml(config.root));
  EXPECT_EQ(again.run.max_grad_norm, 0.1);
  EXPECT_EQ(base_lr(again.optimizer.chain[0]), 5e-324);
}

TEST(RunConfig, MissingSectionSaysWhatItIsFor) {
  EXPECT_EQ(error_of("run: {max_steps: 1, batch_size: 1}\n"),
            "small.yaml: model: section missing (builds the graph); wanted 'model: {plugin: NAME, "
            "...}'");
}

TEST(RunConfig, MissingPluginName) {
  const std::string error = error_of("run: {max_steps: 1, batch_size: 1}\nmodel: {layers: 2}\n");
  EXPECT_EQ(error,
            "small.yaml:2:8: model.plugin: missing; wanted the name of a plugin of kind model");
}

TEST(RunConfig, DistributedIsNotThereYet) {
  EXPECT_NE(error_of(std::string(kSmall) + "distributed: {}\n").find("not available yet"),
            std::string::npos);
}

TEST(PluginChain, NamesShareOptions) {
  const RunConfig config = config_of(
      std::string(kSmall) + "backend: {plugin: [cpu, reference], threads: 2, fallback: strict}\n");
  ASSERT_EQ(config.backend.chain.size(), 2u);
  EXPECT_EQ(config.backend.chain[1].name, "reference");
  EXPECT_TRUE(config.backend.chain[0].shares_options);
  EXPECT_EQ(config.backend.chain[0].options.size(), 2u);
  EXPECT_EQ(config.fallback, Fallback::kStrict);
}

TEST(PluginChain, ListOfMapsHasOptionsOfItsOwn) {
  const RunConfig config =
      config_of(std::string(kSmall) +
                "backend: [{plugin: cpu, threads: 2, fallback: allow}, {plugin: reference}]\n");
  ASSERT_EQ(config.backend.chain.size(), 2u);
  EXPECT_EQ(config.backend.chain[0].path, "backend.0");
  EXPECT_TRUE(config.backend.chain[1].options.empty());
  EXPECT_EQ(config.fallback, Fallback::kAllow);
}

TEST(PluginChain, FallbackBelongsToTheFirstEntry) {
  EXPECT_NE(error_of(std::string(kSmall) +
                     "backend: [{plugin: cpu}, {plugin: reference, fallback: strict}]\n")
                .find("backend.1.fallback: holds for the whole chain; write it in backend.0"),
            std::string::npos);
}

TEST(PluginChain, RefusesRepeatedAndUnspeakableNames) {
  EXPECT_NE(error_of(std::string(kSmall) + "backend: {plugin: [cpu, cpu]}\n")
                .find("'cpu' stands in the chain twice"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kSmall) + "backend: {plugin: ../cpu}\n")
                .find("backend.plugin: got text '../cpu', wanted the name of a plugin"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kSmall) + "backend: {plugin: []}\n").find("an empty list"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kSmall) + "backend: []\n").find("an empty list"),
            std::string::npos);
}

TEST(ParameterGroups, SplitConditionsFromOverrides) {
  const RunConfig config = config_of(
      std::string(kSmall),
      {"optimizer.groups=[{match: '*.bias', lr: 2e-3, weight_decay: 0}, {rank: 2, stage: 'b.*'}]"});
  const std::vector<ParameterGroup>& groups = config.optimizer.chain[0].groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].match, std::vector<std::string>{"*.bias"});
  EXPECT_EQ(groups[0].overrides.size(), 2u);
  EXPECT_FALSE(groups[0].rank.has_value());
  EXPECT_EQ(groups[1].rank, 2);
  EXPECT_EQ(groups[1].stage, "b.*");
}

TEST(ParameterGroups, RefuseAGroupWithoutCondition) {
  EXPECT_NE(error_of(kSmall, {"optimizer.groups=[{lr: 1}]"})
                .find("optimizer.groups.0: no condition; wanted match, rank or stage"),
            std::string::npos);
}

TEST(ParameterGroups, NameAnOptimizerOnlyBesideACondition) {
  const RunConfig config = config_of(kSmall, {"optimizer.groups=[{rank: 2, plugin: adamw}]"});
  EXPECT_EQ(config.optimizer.chain[0].groups[0].plugin, "adamw");
  EXPECT_NE(error_of(kSmall, {"optimizer.groups=[{plugin: adamw}]"}).find("no condition"),
            std::string::npos);
}

TEST(Wrappers, ComeInThreeForms) {
  for (const char* form : {"cautious", "{plugin: cautious}", "[cautious]"}) {
    const RunConfig config = config_of(kSmall, {std::string("optimizer.wrap=") + form});
    ASSERT_EQ(config.optimizer.chain[0].wrap.size(), 1u) << form;
    EXPECT_EQ(config.optimizer.chain[0].wrap[0].name, "cautious") << form;
  }
  const RunConfig two = config_of(kSmall, {"optimizer.wrap=[{plugin: a, floor: 0.1}, b]"});
  ASSERT_EQ(two.optimizer.chain[0].wrap.size(), 2u);
  EXPECT_EQ(two.optimizer.chain[0].wrap[0].path, "optimizer.wrap.0");
  EXPECT_EQ(two.optimizer.chain[0].wrap[0].options.size(), 1u);
  EXPECT_EQ(two.optimizer.chain[0].wrap[1].name, "b");
  EXPECT_NE(error_of(kSmall, {"optimizer.wrap=[[a]]"}).find("optimizer.wrap.0"), std::string::npos);
}

TEST(Bytes, ReadsUnits) {
  EXPECT_EQ(*parse_bytes("512 MiB"), int64_t{512} << 20);
  EXPECT_EQ(*parse_bytes("2GB"), 2000000000);
  EXPECT_EQ(*parse_bytes("1024"), 1024);
  EXPECT_FALSE(parse_bytes("0 B").ok());
  EXPECT_FALSE(parse_bytes("2 gb").ok());
  EXPECT_FALSE(parse_bytes("lots").ok());
  EXPECT_FALSE(parse_bytes("99999999999 TiB").ok());
}

TEST(RunConfig, ObjectivesAndFreezing) {
  const RunConfig config =
      config_of(kSmall, {"run.objectives={box: {weight: 2.5}, point: {every: 4}}",
                         "run.freeze=[{stage: \"heads.*\", match: [\"*.bias\"], from_step: 20}]"});
  ASSERT_EQ(config.run.objectives.size(), 2u);
  EXPECT_EQ(config.run.objectives[0].name, "box");
  EXPECT_EQ(config.run.objectives[0].weight, 2.5);
  EXPECT_EQ(config.run.objectives[0].every, 1);
  EXPECT_EQ(config.run.objectives[1].every, 4);
  ASSERT_EQ(config.run.freeze.size(), 1u);
  EXPECT_EQ(config.run.freeze[0].stage, "heads.*");
  EXPECT_EQ(config.run.freeze[0].match, std::vector<std::string>{"*.bias"});
  EXPECT_EQ(config.run.freeze[0].from_step, 20);
}

TEST(RunConfig, RefusalsOfObjectivesAndFreezingNameKeyAndWish) {
  EXPECT_NE(error_of(kSmall, {"run.objectives=[box]"})
                .find("run.objectives: got a list, wanted a "
                      "map"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"run.objectives={box: {wieght: 2}}"})
                .find("run.objectives.box.wieght: unknown key (did you mean 'weight'?)"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"run.objectives={box: {every: 0}}"}).find("run.objectives.box.every"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"run.objectives={box: {weight: -1}}"}).find(">= 0"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"run.freeze=[{from_step: 3}]"})
                .find("run.freeze.0: no condition; wanted match or stage"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"run.objektives={}"}).find("did you mean 'objectives'?"),
            std::string::npos);
}

}  // namespace
}  // namespace gradrack
