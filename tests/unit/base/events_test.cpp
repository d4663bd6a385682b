// SPDX-License-Identifier: Apache-2.0
// Events: who hears them, and what they look like as JSON.
#include "core/base/events.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

TEST(Events, ReachEveryListenerInOrder) {
  EventSink sink;
  std::string heard;
  sink.add([&](const Event& event) { heard += "a:" + event.kind + " "; });
  sink.add([&](const Event& event) { heard += "b:" + event.kind + " "; });
  sink.emit({"one", Level::kInfo, "first"});
  sink.emit({"two", Level::kWarn, "second"});
  EXPECT_EQ(heard, "a:one b:one a:two b:two ");
}

TEST(Events, RecorderKeepsThemByKind) {
  EventSink sink;
  const EventRecorder recorder(sink);
  sink.emit({"fallback", Level::kWarn, "x", {{"plugin", "cuda"}}});
  sink.emit({"default", Level::kInfo, "y"});
  ASSERT_EQ(recorder.of_kind("fallback").size(), 1u);
  EXPECT_EQ(recorder.of_kind("fallback")[0].fields[0].second, "cuda");
  EXPECT_EQ(recorder.events().size(), 2u);
}

TEST(Events, JsonLineKeepsTheOrderOfFields) {
  EXPECT_EQ(to_json_line({"fallback", Level::kWarn, "a \"b\"\n", {{"z", "1"}, {"a", "2"}}}),
            R"({"event":"fallback","level":"warn","message":"a \"b\"\n","z":"1","a":"2"})");
}

TEST(Events, JsonLineReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(to_json_line({"log", Level::kInfo, "\xff"}),
            "{\"event\":\"log\",\"level\":\"info\",\"message\":\"\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace gradrack
