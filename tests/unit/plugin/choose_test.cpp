// SPDX-License-Identifier: Apache-2.0
// Chains: what leads to the next entry, what ends the run, what is said of it.
#include "core/plugin/choose.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"

namespace gradrack {
namespace {

class Chain : public ::testing::Test {
 protected:
  Chain()
      : recorder_(events_),
        registry_({{std::string(GRADRACK_FAULT_DIR) + "/good", "test"},
                   {std::string(GRADRACK_FAULT_DIR) + "/throws", "test"}},
                  events_) {}

  /// The config with a section in place of its lr_schedule or backend.
  const RunConfig& config(const std::string& section) {
    Result<RunConfig> parsed = parse_run_config(
        "run: {max_steps: 1, batch_size: 1}\nmodel: {plugin: thrower}\ndata: {plugin: d}\n"
        "optimizer: {plugin: o, lr: 1}\n" +
            section + "\n",
        "run.yaml");
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    configs_.push_back(std::make_unique<RunConfig>(std::move(*parsed)));
    return *configs_.back();
  }

  Result<Chosen<gr_lr_schedule_t>> schedule(const std::string& section) {
    return choose<gr_lr_schedule_t>(registry_, config("lr_schedule: " + section).lr_schedule,
                                    events_);
  }

  Status schedule_error(const std::string& section) { return schedule(section).status(); }

  Result<std::vector<Selection>> backends(const std::string& section, Fallback fallback) {
    return select_plugins(registry_, config("backend: " + section).backend, ChainUse::kAll,
                          fallback, events_);
  }

  EventSink events_;
  EventRecorder recorder_;
  PluginRegistry registry_;
  std::vector<std::unique_ptr<RunConfig>> configs_;
};

TEST_F(Chain, MakesAnInstanceWithItsOptions) {
  auto chosen = schedule("{plugin: good, factor: 3}");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  gr_lr_request_t request = {};
  request.struct_size = sizeof request;
  request.base_lr = 2;
  double lr = 0;
  gr_error_t err = {};
  const gr_lr_schedule_t& table = chosen->instance.table();
  ASSERT_EQ(table.value(table.self, &request, &lr, &err), GR_OK);
  EXPECT_EQ(lr, 6.0);
  EXPECT_TRUE(recorder_.of_kind("fallback").empty());
}

TEST_F(Chain, DestroysAnInstanceOnce) {
  {
    auto chosen = schedule("{plugin: good}");
    ASSERT_TRUE(chosen.ok());
    const Chosen<gr_lr_schedule_t> moved = std::move(*chosen);
    EXPECT_NE(schedule_error("{plugin: counter}").message().find("alive 1"), std::string::npos);
  }
  EXPECT_NE(schedule_error("{plugin: counter}").message().find("alive 0"), std::string::npos);
}

TEST_F(Chain, DestroysAnInstanceWithAMissingSlotAndNamesIt) {
  const Status status = schedule_error("{plugin: half}");
  EXPECT_NE(status.message().find("its function pointer 'value' is NULL"), std::string::npos);
  EXPECT_NE(schedule_error("{plugin: counter}").message().find("alive 0"), std::string::npos);
}

TEST_F(Chain, GoesOnWhenAPluginIsMissingOrSaysUnsupported) {
  const auto chosen = schedule("{plugin: [nowhere, absent, refusing, good]}");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->instance.name(), "good");
  const std::vector<Event> fallbacks = recorder_.of_kind("fallback");
  ASSERT_EQ(fallbacks.size(), 3u);
  EXPECT_NE(fallbacks[0].message.find("'nowhere' is not used, next is 'absent': run.yaml:5:24: "
                                      "lr_schedule plugin 'nowhere' not found"),
            std::string::npos)
      << fallbacks[0].message;
  EXPECT_NE(fallbacks[1].message.find("no device of this kind"), std::string::npos);
  EXPECT_NE(fallbacks[2].message.find("not in this build"), std::string::npos);
}

TEST_F(Chain, AnyOtherErrorEndsIt) {
  EXPECT_NE(schedule_error("{plugin: [sick, good]}").message().find("answers nonsense"),
            std::string::npos);
  EXPECT_NE(schedule_error("{plugin: [complaining, good]}").message().find("does not fit"),
            std::string::npos);
  EXPECT_TRUE(recorder_.of_kind("fallback").empty());
}

TEST_F(Chain, AComplaintAboutAnOptionGetsItsPlace) {
  const Status status = schedule_error("{plugin: complaining, factor: 2}");
  EXPECT_EQ(status.message().substr(0, 14), "run.yaml:5:36:") << status.message();
  EXPECT_EQ(exit_code(status), kExitUsage);
}

TEST_F(Chain, UnknownStatusIsABugOfThePlugin) {
  const Status status = schedule_error("{plugin: odd}");
  EXPECT_EQ(status.code(), GR_INTERNAL);
  EXPECT_NE(status.message().find("unknown status 77"), std::string::npos);
}

TEST_F(Chain, SaysEveryReasonWhenNoneWorks) {
  const Status status = schedule_error("{plugin: [absent, refusing]}");
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_NE(status.message().find("none of the chain works; absent: "), std::string::npos);
  EXPECT_NE(status.message().find("; refusing: "), std::string::npos);
}

TEST_F(Chain, YML08_PluginsOwnSectionIsCheckedAgainstItsOptions) {
  const Status status = schedule_error("{plugin: good, fakter: 2}");
  EXPECT_EQ(status.message(),
            "run.yaml:5:29: lr_schedule.fakter: unknown key (did you mean 'factor'?); lr_schedule "
            "plugin 'good' knows factor, plugin");
  EXPECT_EQ(exit_code(status), kExitUsage);
}

TEST_F(Chain, ThrowingProbeIsABugNotAFallback) {
  const RunConfig& model = config("");
  PluginSection section = model.model;
  section.chain[0].name = "prober";
  const auto chosen = choose<gr_model_t>(registry_, section, events_);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().code(), GR_INTERNAL);
}

TEST_F(Chain, BackendsShareOptionsThatOneOfThemDeclares) {
  const auto both = backends("{plugin: [quick, slow], threads: 2}", Fallback::kWarn);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->size(), 2u);
}

TEST_F(Chain, BackendsRefuseAnOptionThatNoneDeclares) {
  const auto both = backends("{plugin: [quick, slow], thread: 2}", Fallback::kWarn);
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(
      both.status().message(),
      "run.yaml:5:34: backend.thread: unknown key (did you mean 'threads'?); backend quick or "
      "slow knows plugin, fallback, record, fuse, threads");
}

TEST_F(Chain, ListOfMapsChecksEachByItself) {
  const auto both =
      backends("[{plugin: quick, threads: 2}, {plugin: slow, threads: 2}]", Fallback::kWarn);
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.status().message().find("backend.1.threads: unknown key"), std::string::npos);
}

TEST_F(Chain, BackendsThatAreMissingAreLeftOutAloud) {
  const auto one = backends("{plugin: [nowhere, slow]}", Fallback::kAllow);
  ASSERT_TRUE(one.ok()) << one.status().message();
  ASSERT_EQ(one->size(), 1u);
  ASSERT_EQ(recorder_.of_kind("fallback").size(), 1u);
  EXPECT_EQ(recorder_.of_kind("fallback")[0].level, Level::kInfo);
}

TEST_F(Chain, StrictFallbackRefusesAMissingBackend) {
  const auto none = backends("{plugin: [nowhere, slow]}", Fallback::kStrict);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(exit_code(none.status()), kExitPlugin);
  EXPECT_NE(none.status().message().find("fallback is strict"), std::string::npos);
}

class Groups : public Chain {
 protected:
  // lr_schedule 'good' stands in for an optimizer: options are options.
  Result<OptionValues> group(const std::string& overrides) {
    const Result<const Factory*> factory = registry_.find("lr_schedule", "good");
    EXPECT_TRUE(factory.ok());
    const RunConfig& run = config("lr_schedule: {plugin: good, factor: 2}");
    GR_ASSIGN(const YamlNode root, parse_yaml(overrides, "group.yaml"));
    ParameterGroup rule;
    rule.path = "optimizer.groups.0";
    rule.overrides = root.entries;
    rule.place = root.place;
    return group_options(**factory, run.lr_schedule.chain[0], rule);
  }
};

TEST_F(Groups, OverrideWinsOverTheSection) {
  EXPECT_EQ(group("factor: 5\n")->number("factor"), 5.0);
  EXPECT_EQ(group("lr: 1\n")->number("factor"), 2.0);
}

TEST_F(Groups, UnknownOverrideIsRefusedByItsPath) {
  const auto values = group("fakter: 5\n");
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.status().message(),
            "group.yaml:1:1: optimizer.groups.0.fakter: unknown key (did you mean 'factor'?); a "
            "group of lr_schedule plugin 'good' knows factor, lr");
}

}  // namespace
}  // namespace gradrack
