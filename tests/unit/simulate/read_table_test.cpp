// SPDX-License-Identifier: Apache-2.0
// Tables as JSON, CSV and recipes: what is read, what is refused and in which words.
#include "core/simulate/read_table.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"

namespace gradrack {
namespace {

constexpr const char* kJson = R"({"format": 1,
 "devices": [{"name": "d", "streams": 2, "memory_limit": 100}],
 "links": [{"name": "l", "latency_ns": 7, "policy": "priority"}],
 "tasks": [{"id": "f", "kind": "forward", "device": "d", "duration_ns": 5, "bytes_held": 9,
            "stage": "one", "microbatch": 0},
           {"id": "s", "kind": "copy", "link": "l", "duration_ns": 2, "bytes": 64, "priority": 4,
            "deps": ["f"]},
           {"id": "g", "kind": "input_gradient", "device": "d", "bytes_freed": 0,
            "deps": ["s"], "reads": ["f"]}]})";

TEST(JsonTable, IsRead) {
  const auto table = parse_json_table(kJson, "t.json");
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->devices[0].streams, 2u);
  EXPECT_EQ(table->devices[0].memory_limit, 100);
  EXPECT_EQ(table->links[0].latency_ns, 7);
  EXPECT_EQ(table->links[0].policy, LinkPolicy::kPriority);
  ASSERT_EQ(table->size(), 3u);
  EXPECT_EQ(table->tasks.stages, std::vector<std::string>{"one"});
  EXPECT_TRUE(table->is_transfer(1));
  EXPECT_EQ(table->more[1].bytes_moved, 64);
  EXPECT_EQ(table->tasks.tasks[2].deps, (std::vector<uint32_t>{0, 1}));  // reads are deps too
  EXPECT_EQ(table->tasks.tasks[2].bytes_freed, 9);                       // last reader of f
  ASSERT_EQ(table->tasks.buffers.size(), 1u);
  EXPECT_EQ(table->tasks.buffers[0].bytes, 9);
  EXPECT_EQ(table->tasks.buffers[0].users, (std::vector<uint32_t>{0, 2}));
  EXPECT_FALSE(table->tasks.buffers[0].kept);
}

TEST(JsonTable, ReadsBackWhatItWrites) {
  const auto table = parse_json_table(kJson, "t.json");
  ASSERT_TRUE(table.ok());
  const std::string text = table_to_json(*table);
  const auto again = parse_json_table(text, "t.json");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(table_to_json(*again), text);
  EXPECT_EQ(again->tasks.tasks[2].deps, table->tasks.tasks[2].deps);
}

void refused(const Result<SimTable>& table, const std::vector<std::string>& parts) {
  ASSERT_FALSE(table.ok());
  for (const std::string& part : parts) {
    EXPECT_NE(table.status().message().find(part), std::string::npos)
        << "wanted '" << part << "' in: " << table.status().message();
  }
  EXPECT_EQ(exit_code(table.status()), kExitUsage);
}

std::string with_task(const std::string& task) {
  return R"({"format": 1, "devices": [{"name": "d"}], "tasks": [)" + task + "]}";
}

TEST(JsonTable, RefusesWithPlaceGotAndWanted) {
  const auto json = [](const std::string& text) { return parse_json_table(text, "t.json"); };
  refused(json("{\"format\": 1,\n \"tasks\": [}"), {"t.json:2:12", "not valid JSON"});
  refused(json("{\"format\": 1, \"format\": 1}"), {"'format' stands twice"});
  refused(json("[]"), {"wanted an object"});
  refused(json("{}"), {"format is 0", "reads 1"});
  refused(json("{\"format\": 1, \"taks\": []}"), {"unknown key 'taks'", "did you mean 'tasks'"});
  refused(json("{\"format\": 1}"), {"no tasks"});
  refused(json(with_task(R"({"id": "a"})")), {"tasks[0]", "a device or a link"});
  refused(json(with_task(R"({"id": "a", "device": "e", "kind": "forward"})")),
          {"device 'e' is not there", "there are: d"});
  refused(json(with_task(R"({"id": "a", "device": "d", "kind": "forwrad"})")),
          {"kind 'forwrad'", "did you mean 'forward'"});
  refused(json(with_task(R"({"id": "a", "device": "d", "kind": "forward", "duration_ns": 1.5})")),
          {"tasks[0].duration_ns", "got 1.5", "whole number"});
  refused(json(with_task(R"({"id": "a", "device": "d", "kind": "forward", "duration_ns": -1})")),
          {"'a'", "duration_ns is -1"});
  refused(json(with_task(R"({"id": "a", "device": "d", "kind": "forward", "deps": ["b"]})")),
          {"deps names task 'b'", "not among the tasks before"});
  const std::string twice = R"({"id": "a", "device": "d", "kind": "forward"})";
  refused(json(with_task(twice + "," + twice)), {"tasks[1]", "'a' is there already"});
}

TEST(CsvTable, IsReadWithQuotesAndComments) {
  const auto table = parse_csv_table(
      "# a comment\r\ndevice,streams\r\n\"my, device\",3\r\n\r\n"
      "task,kind,device,deps\r\n\"a\"\"b\",forward,\"my, device\",\r\nc,update,\"my, device\","
      "a\"\"b\r\n",
      "t.csv");
  refused(table, {"t.csv:7", "deps names task 'ab'"});  // quotes inside a bare field end with it
  const auto right = parse_csv_table(
      "device,streams\n\"my, device\",3\n\ntask,kind,device,deps\n\"a\"\"b\",forward,\"my, "
      "device\",\nc,update,\"my, device\",\"a\"\"b\"\n",
      "t.csv");
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_EQ(right->devices[0].name, "my, device");
  EXPECT_EQ(right->devices[0].streams, 3u);
  EXPECT_EQ(right->tasks.tasks[1].deps, std::vector<uint32_t>{0});
}

TEST(CsvTable, RefusesWithLine) {
  const auto csv = [](const std::string& text) { return parse_csv_table(text, "t.csv"); };
  refused(csv("a,b\n"), {"t.csv:1", "begins with 'device', 'link' or 'task'"});
  refused(csv("device,stream\n"), {"t.csv:1", "unknown column 'stream'", "'streams'"});
  refused(csv("device,device\n"), {"stands twice"});
  refused(csv("device\nd,2\n"), {"t.csv:2", "2 fields under a header of 1 columns"});
  refused(csv("device,streams\nd,0\n"), {"streams is 0", "1 to 64"});
  refused(csv("device,streams\nd,x\n"), {"streams: got 'x'"});
  refused(csv("device\n\"d\n"), {"t.csv:2", "double quote"});
  refused(csv("device\nd\nd\n"), {"'d' is the name of another"});
  refused(csv("link,policy\nl,lifo\n"), {"policy 'lifo'", "fifo, priority, preemptive"});
  refused(csv("device\nd\nlink\nl\ntask,kind,link,bytes_held\na,copy,l,5\n"),
          {"'a'", "transfer on link 'l'"});
  refused(csv(""), {"no tasks"});
}

TEST(Recipe, RefusesWithPlace) {
  const auto yaml = [](const std::string& text, const std::vector<std::string>& sets = {}) {
    return parse_recipe(text, "r.yaml", sets);
  };
  refused(yaml("pipline: {}"), {"r.yaml:1:1", "unknown key 'pipline'", "did you mean 'pipeline'"});
  refused(yaml("pipeline: {}\ndata_parallel: {}"), {"r.yaml:2:1", "second key"});
  refused(yaml("pipeline: {microbatches: 2}"), {"pipeline.stages"});
  refused(yaml("pipeline: {stages: 2, microbatches: 2, layers: 3}"),
          {"layers is 3", "multiple of stages (2)"});
  refused(
      yaml("pipeline: {stages: 2, microbatches: 2, forward_bytes: 1, weight_gradient_bytes: 2}"),
      {"weight_gradient_bytes is 2", "at most forward_bytes (1)"});
  refused(yaml("data_parallel: {network: resnet18}"), {"resnet18", "resnet50"});
  refused(yaml("pipeline: {stages: 2, microbatches: 2}", {"pipeline.stagse=3"}), {"stagse"});
  EXPECT_TRUE(yaml("pipeline: {stages: 2, microbatches: 2}", {"pipeline.stages=3"}).ok());
}

TEST(LoadTable, GoesByTheEnding) {
  refused(load_table("nowhere.json", {}), {"nowhere.json"});
  refused(load_table("table.txt", {}), {"ends with '.txt'", ".json", ".csv", ".yaml"});
  refused(load_table("table.csv", {"pipeline.stages=2"}), {"--recipe", "no recipe"});
}

TEST(LoadTable, EveryShippedTableIsRead) {
  const std::string folder = std::string(GRADRACK_SOURCE_DIR) + "/configs/schedules/";
  for (const char* name : {"bert24", "resnet50", "resnet101", "zb-1.5b-m24", "zb-28.3b-m256"}) {
    const auto table = load_table(folder + name + ".yaml", {});
    EXPECT_TRUE(table.ok()) << table.status().message();
  }
}

}  // namespace
}  // namespace gradrack
