// SPDX-License-Identifier: Apache-2.0
// Objectives and freezing of a run: see run_rules.hpp.
#include "core/train/run_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

constexpr size_t kMostObjectives = 64;

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

bool freezes(const FreezeRule& rule, const ParameterFacts& parameter) {
  if (!rule.stage.empty() && !glob_match(rule.stage, parameter.stage)) return false;
  return rule.match.empty() ||
         std::any_of(rule.match.begin(), rule.match.end(), [&](const std::string& pattern) {
           return glob_match(pattern, parameter.name);
         });
}

// What a rule that fits nothing may have meant.
std::string nearest(const FreezeRule& rule, const std::vector<ParameterFacts>& parameters) {
  std::vector<std::string> stages, names;
  for (const ParameterFacts& parameter : parameters) {
    if (stages.empty() || stages.back() != parameter.stage) stages.push_back(parameter.stage);
    names.push_back(parameter.name);
  }
  std::string text;
  if (!rule.stage.empty()) {
    text = "stage '" + rule.stage + "'" + did_you_mean(rule.stage, stages);
  }
  for (const std::string& pattern : rule.match) {
    text += (text.empty() ? "'" : ", '") + pattern + "'" + did_you_mean(pattern, names);
  }
  return text;
}

Status check_freeze(const FreezeRule& rule, const std::vector<ParameterFacts>& parameters) {
  const bool any = std::any_of(parameters.begin(), parameters.end(),
                               [&](const ParameterFacts& p) { return freezes(rule, p); });
  if (any) return {};
  return error_at(rule.place, fmt::format("{}: no parameter of the model fits {}; `gradrack "
                                          "explain` lists stages",
                                          rule.path, nearest(rule, parameters)));
}

}  // namespace

Result<RunRules> RunRules::make(const RunSection& run, const Graph& model,
                                const std::vector<ParameterFacts>& parameters) {
  RunRules rules;
  GR_TRY(rules.read_objectives(run, model));
  GR_TRY(rules.read_freeze(run, parameters));
  return rules;
}

Status RunRules::read_objectives(const RunSection& run, const Graph& model) {
  objectives_ = objective_names(model);
  if (objectives_.size() > kMostObjectives) {
    return invalid_argument(fmt::format("the model declares {} objectives, the most are {}",
                                        objectives_.size(), kMostObjectives));
  }
  weights_.assign(objectives_.size(), 1.0);
  every_.assign(objectives_.size(), 1);
  weighted_ = objectives_.size() > 1 || !run.objectives.empty();
  for (const ObjectiveRule& rule : run.objectives) {
    const auto at = std::find(objectives_.begin(), objectives_.end(), rule.name);
    if (at == objectives_.end()) {
      return error_at(
          rule.place,
          fmt::format("run.objectives.{}: the model has no such objective{}; it has: {}", rule.name,
                      did_you_mean(rule.name, objectives_), join(objectives_)));
    }
    const auto k = static_cast<size_t>(at - objectives_.begin());
    weights_[k] = rule.weight;
    every_[k] = rule.every;
  }
  return {};
}

Status RunRules::read_freeze(const RunSection& run, const std::vector<ParameterFacts>& parameters) {
  begins_ = {1};
  for (const FreezeRule& rule : run.freeze) {
    GR_TRY(check_freeze(rule, parameters));
    if (rule.from_step <= run.max_steps) begins_.push_back(rule.from_step);
  }
  std::sort(begins_.begin(), begins_.end());
  begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
  for (const int64_t begin : begins_) {
    std::vector<std::string> trained, frozen;
    for (const ParameterFacts& parameter : parameters) {
      const bool stays =
          std::any_of(run.freeze.begin(), run.freeze.end(), [&](const FreezeRule& rule) {
            return rule.from_step <= begin && freezes(rule, parameter);
          });
      (stays ? frozen : trained).push_back(parameter.name);
    }
    if (trained.empty() && !frozen.empty()) {
      return error_at(run.freeze.front().place,
                      fmt::format("run.freeze: no parameter is left to train from step {}", begin));
    }
    trained_.push_back(std::move(trained));
    texts_.push_back(frozen.empty() ? "all" : "all but " + join(frozen));
  }
  return {};
}

ObjectiveSet RunRules::all() const {
  const size_t count = objectives_.size();
  return count == kMostObjectives ? ~ObjectiveSet{0} : (ObjectiveSet{1} << count) - 1;
}

ObjectiveSet RunRules::active(int64_t step) const {
  ObjectiveSet set = 0;
  for (size_t k = 0; k < every_.size(); ++k) {
    if (step % every_[k] == 0) set |= ObjectiveSet{1} << k;
  }
  return set;
}

int64_t RunRules::period(int64_t most) const {
  int64_t period = 1;
  for (const int64_t every : every_) {
    const int64_t factor = every / std::gcd(period, every);
    if (factor >= most / period + 1) return most;
    period *= factor;
  }
  return std::min(period, most);
}

std::string RunRules::text(ObjectiveSet set) const {
  std::vector<std::string> names;
  for (size_t k = 0; k < objectives_.size(); ++k) {
    if ((set >> k & 1) != 0) names.push_back(objectives_[k]);
  }
  return join(names);
}

Result<ObjectiveSet> RunRules::set_of(const std::vector<std::string>& names) const {
  ObjectiveSet set = 0;
  for (const std::string& name : names) {
    const auto at = std::find(objectives_.begin(), objectives_.end(), name);
    if (at == objectives_.end()) {
      return invalid_argument("the model has no objective '" + name + "'" +
                              did_you_mean(name, objectives_) + "; it has: " + join(objectives_));
    }
    set |= ObjectiveSet{1} << (at - objectives_.begin());
  }
  return set;
}

size_t RunRules::stretch(int64_t step) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), step);
  return after == begins_.begin() ? 0 : static_cast<size_t>(after - begins_.begin()) - 1;
}

}  // namespace gradrack
