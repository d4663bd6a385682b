// SPDX-License-Identifier: Apache-2.0
// TrainerState: see trainer_state.hpp.
#include "core/train/trainer_state.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "core/plugin/host_table.hpp"
#include "core/state/atomic_file.hpp"
#include "core/state/checkpoint.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int64_t kMostBytes = int64_t{1} << 24;

// JSON has no NaN: a loss that is not finite is none to compare with.
Json number(const std::optional<double>& value) {
  return value.has_value() && std::isfinite(*value) ? Json(*value) : Json();
}

std::optional<double> optional_number(const Json& json) {
  if (json.is_null()) return {};
  return json.get<double>();
}

}  // namespace

std::string to_json(const TrainerState& state) {
  Json json = {{"format", kFormat},     {"gradrack", host_version()}, {"run_id", state.run_id},
               {"step", state.step},    {"updates", state.updates},   {"counts", state.counts},
               {"tokens", state.tokens}};
  json["data"] = {{"next_batch", state.next_batch}, {"fingerprint", state.data_fingerprint}};
  json["eval_loss"] = number(state.eval_loss);
  json["best_eval_loss"] = number(state.best);
  json["finished"] = state.finished;
  json["nonfinite"] = {{"steps", state.nonfinite}, {"in_a_row", state.nonfinite_row}};
  json["loss_scale"] = Json();
  if (state.loss_scale.has_value()) {
    json["loss_scale"] = {{"scale", state.loss_scale->scale},
                          {"clean_steps", state.loss_scale->clean_steps},
                          {"skipped_steps", state.loss_scale->skipped_steps}};
  }
  json["config"] = state.config;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TrainerState> parse_trainer_state(const std::string& text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return io_error("'" + name + "' is no JSON object");
  TrainerState state;
  try {
    const int64_t format = json.at("format").get<int64_t>();
    if (format != kFormat) {
      return io_error(
          fmt::format("'{}' has format {}, this version reads {}: use the version that "
                      "wrote it",
                      name, format, kFormat));
    }
    state.run_id = json.at("run_id").get<std::string>();
    state.step = json.at("step").get<int64_t>();
    state.updates = json.at("updates").get<int64_t>();
    state.counts = json.at("counts").get<std::map<std::string, int64_t>>();
    state.tokens = json.at("tokens").get<int64_t>();
    state.next_batch = json.at("data").at("next_batch").get<int64_t>();
    state.data_fingerprint = json.at("data").at("fingerprint").get<std::string>();
    state.eval_loss = optional_number(json.at("eval_loss"));
    state.best = optional_number(json.at("best_eval_loss"));
    state.finished = json.at("finished").get<bool>();
    state.nonfinite = json.at("nonfinite").at("steps").get<int64_t>();
    state.nonfinite_row = json.at("nonfinite").at("in_a_row").get<int64_t>();
    if (const Json& scale = json.at("loss_scale"); !scale.is_null()) {
      state.loss_scale = {scale.at("scale").get<double>(), scale.at("clean_steps").get<int64_t>(),
                          scale.at("skipped_steps").get<int64_t>()};
    }
    state.config = json.at("config").get<std::string>();
  } catch (const Json::exception& error) {
    return io_error(fmt::format("'{}' is no state of a run: {}", name, error.what()));
  }
  return state;
}

Result<TrainerState> read_trainer_state(const std::string& checkpoint) {
  const std::string file = checkpoint + "/" + kStateFile;
  GR_ASSIGN(const std::string text, read_file(file, kMostBytes));
  return parse_trainer_state(text, file);
}

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace gradrack
