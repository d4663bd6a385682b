// SPDX-License-Identifier: Apache-2.0
// The C++ wrapper: nothing that plugin code throws crosses the C ABI, and tables of every size are
// filled as far as they go.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "gradrack/lr_schedule.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

using testing::Instance;

constexpr gr_option_t kOneOption[] = {GR_OPT_FLOAT("rate", "2.5", 0, INFINITY, "a number")};

/// Throws what the update index asks for.
class Throwing {
 public:
  static constexpr const char* kName = "throwing";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Throws.";
  static constexpr auto& kOptions = kOneOption;

  explicit Throwing(const sdk::Options& options) : rate_(options.get<double>("rate")) {}

  double value(const gr_lr_request_t& request) const {
    switch (request.update) {
      case 1:
        throw sdk::Error(GR_UNSUPPORTED, "rate", "not here");
      case 2:
        throw std::bad_alloc();
      case 3:
        throw std::runtime_error("broken");
      case 4:
        throw 42;
      case 5:
        throw sdk::Error(GR_OK, "", "an error that says ok");
      default:
        return rate_;
    }
  }

 private:
  double rate_;
};

/// Its constructor reads an option that it never declared.
class Forgetful {
 public:
  static constexpr const char* kName = "forgetful";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Reads what it did not declare.";

  explicit Forgetful(const sdk::Options& options) { (void)options.get<double>("lr"); }
  double value(const gr_lr_request_t&) const { return 0; }
};

int32_t call(int64_t update, double* lr, gr_error_t* err) {
  const Instance<gr_lr_schedule_t> plugin(sdk::LrSchedule<Throwing>::get(), {});
  EXPECT_EQ(plugin.status(), GR_OK);
  const gr_lr_request_t request = {sizeof request, 0, update, 10, 1.0};
  return plugin->value(plugin.self(), &request, lr, err);
}

TEST(SdkWrapper, PassesResultsThrough) {
  double lr = 0;
  gr_error_t err = {};
  EXPECT_EQ(call(0, &lr, &err), GR_OK);
  EXPECT_EQ(lr, 2.5);
}

TEST(SdkWrapper, KeepsCodeFieldAndMessageOfAnError) {
  double lr = 0;
  gr_error_t err = {};
  EXPECT_EQ(call(1, &lr, &err), GR_UNSUPPORTED);
  EXPECT_EQ(err.code, GR_UNSUPPORTED);
  EXPECT_STREQ(err.field, "rate");
  EXPECT_STREQ(err.message, "not here");
}

TEST(SdkWrapper, TurnsBadAllocIntoOutOfMemory) {
  double lr = 0;
  gr_error_t err = {};
  EXPECT_EQ(call(2, &lr, &err), GR_OUT_OF_MEMORY);
}

TEST(SdkWrapper, TurnsOtherExceptionsIntoInternalErrors) {
  double lr = 0;
  gr_error_t err = {};
  EXPECT_EQ(call(3, &lr, &err), GR_INTERNAL);
  EXPECT_STREQ(err.message, "broken");
  EXPECT_EQ(call(4, &lr, &err), GR_INTERNAL);
}

TEST(SdkWrapper, NeverReportsAThrownErrorAsSuccess) {
  double lr = 0;
  gr_error_t err = {};
  EXPECT_EQ(call(5, &lr, &err), GR_INTERNAL);
}

TEST(SdkWrapper, NamesAnOptionThatWasNotDeclared) {
  const Instance<gr_lr_schedule_t> plugin(sdk::LrSchedule<Forgetful>::get(), {});
  EXPECT_EQ(plugin.status(), GR_INTERNAL);
  EXPECT_EQ(plugin.field(), "lr");
}

TEST(SdkWrapper, PLG03_NeverWritesBeyondTheHostsTable) {
  const gr_factory_t* factory = sdk::LrSchedule<Throwing>::get();
  const testing::OptionValues options(*factory, {});
  constexpr uint32_t kNeeded = offsetof(gr_lr_schedule_t, destroy) + sizeof(void*);
  for (uint32_t size = 0; size <= 4096; size += 4) {
    alignas(8) std::byte table[4096 + 64];
    std::memset(table, 0xAB, sizeof table);
    std::memcpy(table, &size, sizeof size);
    gr_error_t err = {};
    const int32_t status = factory->create(&testing::test_host(), options.get(), table, &err);
    EXPECT_EQ(status, size < kNeeded ? GR_VERSION : GR_OK) << size;
    const size_t end =
        std::max<size_t>(sizeof size, std::min<size_t>(size, sizeof(gr_lr_schedule_t)));
    for (size_t k = end; k < sizeof table; ++k) ASSERT_EQ(table[k], std::byte{0xAB}) << size;
    if (status != GR_OK) continue;
    gr_lr_schedule_t filled = {};
    std::memcpy(&filled, table, std::min<size_t>(size, sizeof filled));
    EXPECT_EQ(filled.struct_size, std::min<uint32_t>(size, sizeof filled));
    filled.destroy(filled.self);
  }
}

TEST(SdkWrapper, RefusesAHostOfAnotherMajor) {
  gr_host_t host = testing::test_host();
  host.abi_major = GR_ABI_MAJOR + 1;
  gr_plugin_t out = {};
  gr_error_t err = {};
  EXPECT_EQ((sdk::enter<sdk::LrSchedule<Throwing>>(&host, &out, &err, "x", "1", nullptr, nullptr)),
            GR_VERSION);
  EXPECT_NE(std::strstr(err.message, "2.0.."), nullptr) << err.message;
}

}  // namespace
}  // namespace gradrack
