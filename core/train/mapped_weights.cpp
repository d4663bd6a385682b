// SPDX-License-Identifier: Apache-2.0
// See mapped_weights.hpp.
#include "core/train/mapped_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/text.hpp"
#include "core/config/schema.hpp"
#include "core/graph/graph.hpp"
#include "core/optim/groups.hpp"
#include "core/train/host_tensors.hpp"

namespace gradrack {
namespace {

std::string shape_text(gr_dtype_t dtype, const std::vector<int64_t>& dims) {
  const char* const name = safetensors_dtype_name(dtype);
  return fmt::format("{} [{}]", name != nullptr ? name : "another dtype", fmt::join(dims, ", "));
}

/// The rules that name a weight, with the numbers.
struct Match {
  const WeightRule* rule;
  NamePattern::Numbers numbers;
};

Result<Match> match_weight(const WeightMapping& mapping, const std::string& weight) {
  std::vector<Match> matches;
  for (const WeightRule& rule : mapping.rules) {
    for (const NamePattern& pattern : rule.model) {
      if (auto numbers = pattern.match(weight)) matches.push_back({&rule, std::move(*numbers)});
    }
  }
  if (matches.size() == 1) return std::move(matches[0]);
  if (matches.empty()) {
    return invalid_argument(fmt::format(
        "{}: no rule names '{}', which the model has: set the model's options as the mapping needs "
        "them, or add a rule",
        mapping.path, weight));
  }
  return invalid_argument(fmt::format("{} and {}: both rules name '{}'", matches[0].rule->place,
                                      matches[1].rule->place, weight));
}

Status do_not_fit(const WeightBinding& binding) {
  return invalid_argument(fmt::format("{}: the model's '{}' do not fit side by side along axis {}",
                                      binding.rule->place, join(binding.model, "', '"),
                                      binding.rule->axis));
}

/// Dims of the file's tensor, of those of the binding's weights.
Result<std::vector<int64_t>> dims_in_file(const WeightBinding& binding,
                                          std::vector<std::vector<int64_t>> dims) {
  for (size_t k = 0; binding.rule->transpose && k < dims.size(); ++k) {
    if (dims[k].size() != 2) {
      return invalid_argument(fmt::format("{}: transpose: '{}' has {} dims, wanted 2",
                                          binding.rule->place, binding.model[k], dims[k].size()));
    }
    dims[k] = transposed(dims[k]);
  }
  if (dims.size() == 1) return std::move(dims[0]);
  std::vector<int64_t> whole = side_by_side(dims, binding.rule->axis);
  if (whole.empty()) return do_not_fit(binding);
  return whole;
}

/// The file's names as rules write them: each is there as it is, or without the prefix.
class FileNames {
 public:
  FileNames(const WeightMapping& mapping, const SafetensorsFile& file)
      : prefix_(mapping.optional_prefix), file_(file) {}

  const SafetensorsEntry* find(const std::string& name) const {
    const SafetensorsEntry* const entry = file_.find(name);
    if (entry != nullptr || prefix_.empty() || !name.starts_with(prefix_)) return entry;
    return file_.find(std::string_view(name).substr(prefix_.size()));
  }

  /// Could a rule's name mean this one?
  std::optional<NamePattern::Numbers> match(const NamePattern& pattern,
                                            const std::string& name) const {
    auto numbers = pattern.match(name);
    return numbers.has_value() ? numbers : pattern.match(prefix_ + name);
  }

 private:
  const std::string& prefix_;
  const SafetensorsFile& file_;
};

/// Reads one file for one model.
class Reader {
 public:
  Reader(const WeightMapping& mapping, const SafetensorsFile& file,
         const std::vector<WantedWeight>& weights)
      : mapping_(mapping), file_(file), names_(mapping, file) {
    for (const WantedWeight& weight : weights) {
      order_.push_back(weight.name);
      weights_[weight.name] = &weight;
    }
  }

  /// All that can be refused, before anything is taken.
  Status check() {
    GR_ASSIGN(bindings_, bind_weights(mapping_, order_));
    GR_TRY(find_entries());
    GR_TRY(check_left_over());
    for (size_t k = 0; k < bindings_.size(); ++k) GR_TRY(check_shape(bindings_[k], *entries_[k]));
    return {};
  }

  Status take(const TakeWeight& take) {
    for (size_t k = 0; k < bindings_.size(); ++k)
      GR_TRY(take_one(bindings_[k], *entries_[k], take));
    return {};
  }

  void say(EventSink& events) const {
    for (const auto& [dtypes, count] : casts_)
      emit_cast(dtypes.first, dtypes.second, count, events);
    if (ignored_.empty()) return;
    events.emit({"weights_ignored",
                 Level::kInfo,
                 fmt::format("{} tensors of '{}' are ignored, as {} says: {}", ignored_.size(),
                             file_.path(), mapping_.path, join(ignored_)),
                 {{"file", file_.path()}, {"tensors", join(ignored_)}}});
  }

 private:
  Status find_entries() {
    std::vector<std::string> missing;
    for (const WeightBinding& binding : bindings_) {
      entries_.push_back(names_.find(binding.file));
      if (entries_.back() == nullptr) {
        missing.push_back("'" + binding.file + "' (for '" + join(binding.model) + "')");
      } else {
        used_.insert(entries_.back()->name);
      }
    }
    if (missing.empty()) return {};
    return refused(fmt::format(
        "lacks {}{}: set the model's options as those of the file, or take the mapping of its kind",
        missing[0], more(missing.size())));
  }

  static std::string more(size_t count) {
    return count > 1 ? fmt::format(" and {} more", count - 1) : "";
  }
  Status refused(const std::string& what) const {
    return invalid_argument(file_.path() + ": by " + mapping_.path + " it " + what);
  }

  Status check_left_over() {
    std::vector<std::string> left;
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (used_.contains(entry.name)) continue;
      GR_ASSIGN(const bool copy, is_copy(entry));
      if (copy) continue;
      const auto ignores = [&](const std::string& glob) { return glob_match(glob, entry.name); };
      if (std::any_of(mapping_.ignore.begin(), mapping_.ignore.end(), ignores)) {
        ignored_.push_back(entry.name);
      } else {
        left.push_back(entry.name);
      }
    }
    if (left.empty()) return {};
    return refused("has '" + left[0] + "'" + more(left.size()) + ", " + destination(left[0]));
  }

  /// Where an unused tensor would go, and what to do.
  std::string destination(const std::string& name) const {
    for (const WeightRule& rule : mapping_.rules) {
      const auto numbers = names_.match(rule.file, name);
      if (!numbers.has_value()) continue;
      const std::string weight = rule.model[0].fill(*numbers);
      if (weights_.contains(weight)) return "a second tensor for '" + weight + "': remove one";
      return "for '" + weight +
             "', which this model does not have: set its options as those of the file";
    }
    return "which no rule names: add a rule, or name it under `ignore`";
  }

  /// A tensor that repeats one that is used; GR_INVALID_ARGUMENT: the mapping says so, and it does
  /// not.
  Result<bool> is_copy(const SafetensorsEntry& entry) const {
    for (const auto& [copy, original] : mapping_.copies) {
      if (names_.find(copy) != &entry) continue;
      const SafetensorsEntry* const other = names_.find(original);
      const bool same = other != nullptr && other->dtype == entry.dtype &&
                        other->shape == entry.shape && same_bytes(*other, entry);
      if (same) return true;
      return refused(
          fmt::format("has '{}' as a copy of '{}', but they differ: the model has to "
                      "have a weight of its own for it (an option such as tied: false)",
                      entry.name, original));
    }
    return false;
  }

  bool same_bytes(const SafetensorsEntry& a, const SafetensorsEntry& b) const {
    return std::ranges::equal(file_.bytes(a), file_.bytes(b));
  }

  Status check_shape(const WeightBinding& binding, const SafetensorsEntry& entry) const {
    std::vector<std::vector<int64_t>> dims;
    for (const std::string& name : binding.model) dims.push_back(weights_.at(name)->dims);
    GR_ASSIGN(const std::vector<int64_t> whole, dims_in_file(binding, std::move(dims)));
    if (entry.shape != whole) {
      return refused(fmt::format(
          "has '{}' as {}, wanted {} for '{}': set the model's options as those of the file",
          entry.name, shape_text(entry.dtype, entry.shape),
          shape_text(weights_.at(binding.model[0])->dtype, whole), join(binding.model, "', '")));
    }
    for (const std::string& name : binding.model) {
      const gr_dtype_t wanted = weights_.at(name)->dtype;
      if (entry.dtype == wanted || (is_real(entry.dtype) && is_real(wanted))) continue;
      return refused(fmt::format("has '{}' as {}, wanted real numbers for '{}'", entry.name,
                                 shape_text(entry.dtype, entry.shape), name));
    }
    return {};
  }

  Status take_one(const WeightBinding& binding, const SafetensorsEntry& entry,
                  const TakeWeight& take) {
    const WeightRule& rule = *binding.rule;
    int64_t first = 0;
    for (const std::string& name : binding.model) {
      const WantedWeight& weight = *weights_.at(name);
      const bool whole = binding.model.size() == 1;
      HostTensor content;
      if (whole) {
        const auto bytes = file_.bytes(entry);
        content = {entry.dtype, entry.shape, {bytes.begin(), bytes.end()}};
      } else {
        const auto axis = static_cast<size_t>(rule.axis);
        const int64_t count = weight.dims[rule.transpose ? 1 - axis : axis];
        content = part_of(file_.bytes(entry), entry.dtype, entry.shape, rule.axis, first, count);
        first += count;
      }
      if (rule.transpose) content = transposed(content);
      if (weight.dtype != entry.dtype) ++casts_[{entry.dtype, weight.dtype}];
      GR_TRY(take(weight, content));
    }
    return {};
  }

  const WeightMapping& mapping_;
  const SafetensorsFile& file_;
  FileNames names_;
  std::vector<std::string> order_;  // names, as the model declares them
  std::map<std::string, const WantedWeight*> weights_;
  std::vector<WeightBinding> bindings_;
  std::vector<const SafetensorsEntry*> entries_;  // of each binding
  std::set<std::string> used_;
  std::vector<std::string> ignored_;
  std::map<std::pair<gr_dtype_t, gr_dtype_t>, size_t> casts_;
};

/// What the binding's weights are in the file.
Result<HostTensor> content_in_file(const WeightBinding& binding, const HostTensors& weights) {
  std::vector<std::vector<int64_t>> dims;
  for (const std::string& name : binding.model) dims.push_back(weights.find(name)->second.dims);
  GR_TRY(dims_in_file(binding, std::move(dims)).status());
  std::vector<HostTensor> parts;
  for (const std::string& name : binding.model) {
    const HostTensor& weight = weights.find(name)->second;
    parts.push_back(binding.rule->transpose ? transposed(weight) : weight);
    if (parts.back().dtype != parts[0].dtype) return do_not_fit(binding);
  }
  if (parts.size() == 1) return std::move(parts[0]);
  return side_by_side(parts, binding.rule->axis);
}

}  // namespace

Result<std::vector<WeightBinding>> bind_weights(const WeightMapping& mapping,
                                                const std::vector<std::string>& weights) {
  const std::set<std::string> names(weights.begin(), weights.end());
  std::vector<WeightBinding> bindings;
  std::map<std::string, const WeightRule*> users;  // of each tensor of the file
  for (const std::string& weight : weights) {
    GR_ASSIGN(const Match match, match_weight(mapping, weight));
    const std::string file = match.rule->file.fill(match.numbers);
    const auto [user, is_new] = users.emplace(file, match.rule);
    if (!is_new && user->second == match.rule) continue;  // another weight of its list
    if (!is_new) {
      return invalid_argument(fmt::format("{} and {}: both rules use '{}' of the file",
                                          user->second->place, match.rule->place, file));
    }
    WeightBinding binding{match.rule, file, {}};
    for (const NamePattern& pattern : match.rule->model) {
      binding.model.push_back(pattern.fill(match.numbers));
      if (names.contains(binding.model.back())) continue;
      return invalid_argument(fmt::format("{}: names '{}', which the model lacks, beside '{}'",
                                          match.rule->place, binding.model.back(), weight));
    }
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

Status read_mapped(const WeightMapping& mapping, const SafetensorsFile& file,
                   const std::vector<WantedWeight>& weights, EventSink& events,
                   const TakeWeight& take) {
  Reader reader(mapping, file, weights);
  GR_TRY(reader.check());
  GR_TRY(reader.take(take));
  reader.say(events);
  return {};
}

Result<HostTensors> as_in_file(const WeightMapping& mapping, const HostTensors& weights) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) names.push_back(name);
  GR_ASSIGN(const std::vector<WeightBinding> bindings, bind_weights(mapping, names));
  HostTensors tensors;
  for (const WeightBinding& binding : bindings) {
    GR_ASSIGN(tensors[binding.file], content_in_file(binding, weights));
  }
  return tensors;
}

Status check_needs(const WeightMapping& mapping, const Factory& factory,
                   const PluginChoice& choice) {
  OptionTable named;  // the options that the mapping speaks of
  std::vector<std::string> others = option_names(factory.options);
  others.push_back("plugin");
  for (const YamlEntry& need : mapping.needs) {
    if (need.key == "plugin" && need.value.text != factory.name) {
      return invalid_argument(fmt::format("{}: model.plugin: got {}, and {} is for {}",
                                          choice.place.text(), factory.name, mapping.path,
                                          need.value.text))
          .in_area(Area::kConfig);
    }
    for (const gr_option_t& option : factory.options) {
      if (need.key == option.name) named.push_back(option);
    }
  }
  GR_ASSIGN(const OptionValues wanted, check_options({"needs", factory.text(), others, false},
                                                     named, mapping.needs, {mapping.path, 0, 0}));
  GR_ASSIGN(const OptionValues has, plugin_options(factory, choice));
  const std::vector<std::string> lines = has.lines();
  for (const std::string& line : wanted.lines()) {
    if (contains(lines, line) || contains(lines, line + " (default)")) continue;
    return invalid_argument(fmt::format("{}: the options of model '{}': {} needs {}; set it, or "
                                        "take a copy of the mapping that does not ask for it",
                                        choice.place.text(), factory.name, mapping.path, line))
        .in_area(Area::kConfig);
  }
  return {};
}

void emit_cast(gr_dtype_t from, gr_dtype_t to, size_t count, EventSink& events) {
  const char* const from_name = safetensors_dtype_name(from);
  const char* const to_name = safetensors_dtype_name(to);
  const bool exact = to == GR_FLOAT64 || (to == GR_FLOAT32 && from != GR_FLOAT64);
  events.emit({"weights_cast",
               Level::kInfo,
               fmt::format("{} weights of dtype {} become {}{}", count, from_name, to_name,
                           exact ? "" : ", rounded"),
               {{"from", from_name}, {"to", to_name}, {"count", std::to_string(count)}}});
}

}  // namespace gradrack
