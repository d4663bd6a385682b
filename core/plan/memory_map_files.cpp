// SPDX-License-Identifier: Apache-2.0
// Memory maps as a picture and as JSON: see memory_map.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/plan/memory_map.hpp"
#include "core/schedule/task_kind.hpp"
#include "core/schedule/timeline.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "gradrack.plan/1";

std::string block_svg(const MemoryBlock& block, double x, double y, double width, double height) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
      "fill-opacity=\"0.75\" stroke=\"white\" stroke-width=\"0.4\"><title>{}: {} at {}, tasks {} "
      "to "
      "{}</title></rect>\n",
      x, y, width, height, task_kind(block.kind).colour, xml_text(block.name),
      human_bytes(block.bytes), block.offset, block.first, block.last);
}

Status wrong(const std::string& what) { return invalid_argument("plan.json: " + what); }

int64_t whole(const Json& row, size_t k) {
  return k < row.size() && row[k].is_number_integer() ? row[k].get<int64_t>() : -1;
}

// [device, offset, bytes, first, last, kind, name]
Result<MemoryBlock> read_block(const Json& row, const MemoryMap& map) {
  MemoryBlock block;
  if (!row.is_array() || row.size() < 7 || !row[6].is_string()) return wrong("a block is no row");
  block.device = whole(row, 0);
  block.offset = whole(row, 1);
  block.bytes = whole(row, 2);
  block.first = whole(row, 3);
  block.last = whole(row, 4);
  block.kind = static_cast<int32_t>(std::clamp<int64_t>(whole(row, 5), -1, kTaskKinds));
  block.name = row[6].get<std::string>();
  const bool device = block.device >= 0 && block.device < static_cast<int64_t>(map.devices.size());
  if (!device || block.offset < 0 || block.bytes < 0 || block.first < 0 ||
      block.last < block.first || block.last >= map.tasks) {
    return wrong("the block '" + block.name + "' lies outside of its arena or of the step");
  }
  return block;
}

Result<MemoryMap> read_map(const Json& plan) {
  MemoryMap map;
  const auto list = [&](const char* key) {
    return plan.is_object() && plan.contains(key) && plan[key].is_array();
  };
  if (!list("devices") || !list("blocks")) return wrong("a plan without devices or blocks");
  map.name = plan.value("name", Json("")).is_string() ? plan.value("name", "") : "";
  const auto number = [&](const char* key) -> int64_t {
    return plan.contains(key) && plan[key].is_number_integer() ? plan[key].get<int64_t>() : 0;
  };
  map.tasks = number("tasks");
  map.live_peak = number("live_peak");
  if (plan.contains("peak_task") && plan["peak_task"].is_string()) {
    map.peak_task = plan["peak_task"].get<std::string>();
  }
  for (const Json& device : plan["devices"]) {
    const bool good = device.is_array() && device.size() == 2 && device[0].is_string() &&
                      device[1].is_number_integer();
    if (!good) return wrong("a device is no pair of a name and bytes");
    map.devices.push_back(device[0].get<std::string>());
    map.arena_bytes.push_back(device[1].get<int64_t>());
  }
  if (plan.contains("memory") && plan["memory"].is_object()) {
    for (const auto& [name, bytes] : plan["memory"].items()) {
      if (bytes.is_number_integer()) map.classes.emplace_back(name, bytes.get<int64_t>());
    }
  }
  for (const Json& row : plan["blocks"]) {
    GR_ASSIGN(MemoryBlock block, read_block(row, map));
    map.blocks.push_back(std::move(block));
  }
  return map;
}

}  // namespace

std::string memory_map_svg(const MemoryMap& map, size_t device) {
  constexpr double kLeft = 100, kWidth = 1400, kHeight = 320, kFoot = 22;
  const double bytes = static_cast<double>(std::max<int64_t>(1, map.arena_bytes[device]));
  const double tasks = static_cast<double>(std::max<int64_t>(1, map.tasks));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      kLeft + kWidth + 10, kHeight + kFoot);
  for (const MemoryBlock& block : map.blocks) {
    if (block.device != static_cast<int64_t>(device)) continue;
    const double height = static_cast<double>(block.bytes) / bytes * kHeight;
    const double top = kHeight - static_cast<double>(block.offset) / bytes * kHeight - height;
    const double x = kLeft + static_cast<double>(block.first) / tasks * kWidth;
    const double width = static_cast<double>(block.last + 1 - block.first) / tasks * kWidth;
    out += block_svg(block, x, top, width, height);
  }
  out += fmt::format("<text x=\"4\" y=\"12\">{}</text><text x=\"4\" y=\"{}\">0 B</text>\n",
                     human_bytes(map.arena_bytes[device]), kHeight);
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\">task 0</text><text x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{}</text>\n</svg>\n",
      kLeft, kHeight + 16, kLeft + kWidth, kHeight + 16, map.tasks);
  return out;
}

std::string memory_maps_json(const std::vector<MemoryMap>& maps) {
  Json plans = Json::array();
  for (const MemoryMap& map : maps) {
    Json devices = Json::array(), memory = Json::object(), blocks = Json::array();
    for (size_t k = 0; k < map.devices.size(); ++k) {
      devices.push_back({map.devices[k], map.arena_bytes[k]});
    }
    for (const auto& [name, bytes] : map.classes) memory[name] = bytes;
    for (const MemoryBlock& b : map.blocks) {
      blocks.push_back({b.device, b.offset, b.bytes, b.first, b.last, b.kind, b.name});
    }
    plans.push_back({{"name", map.name},
                     {"tasks", map.tasks},
                     {"devices", devices},
                     {"memory", memory},
                     {"live_peak", map.live_peak},
                     {"peak_task", map.peak_task},
                     {"blocks", blocks}});
  }
  const Json all = {{"format", kFormat}, {"plans", plans}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<MemoryMap>> read_memory_maps(const std::string& json) {
  const Json all = Json::parse(json, nullptr, false);
  if (!all.is_object() || all.value("format", Json()) != kFormat) {
    return wrong(std::string("not of the format '") + kFormat + "'");
  }
  if (!all.contains("plans") || !all["plans"].is_array()) return wrong("no list of plans");
  std::vector<MemoryMap> maps;
  for (const Json& plan : all["plans"]) {
    GR_ASSIGN(MemoryMap map, read_map(plan));
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace gradrack
