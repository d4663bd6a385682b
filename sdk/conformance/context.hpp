// SPDX-License-Identifier: Apache-2.0
// Context: what a running case has at hand: the library, its factory, options, a seed, the
// reference backend.
//
// Made once in a child and handed to each of its cases. Invariant: nothing is loaded before a case
// asks for it, so that a case can watch the loading itself. [main]
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/plugin/instance.hpp"
#include "sdk/conformance/case.hpp"
#include "sdk/conformance/host_shim.hpp"
#include "sdk/conformance/reference.hpp"
#include "sdk/conformance/subject.hpp"

namespace gradrack::conform {

/// What the command line says to every case.
struct Settings {
  uint64_t seed = 1;
  std::vector<std::string> sets;         ///< "option=value" for the factory under test
  std::vector<std::string> plugin_path;  ///< where other plugins may be looked for
};

/// Checked values of a factory's options: defaults, then `sets` ("option=value", value as YAML).
/// Sets of options that the factory does not declare are passed over. GR_INVALID_ARGUMENT.
Result<OptionValues> option_values(const Factory& factory, const std::vector<std::string>& sets);

class Context {
 public:
  Context(Target target, Settings settings);

  const Target& target() const { return target_; }
  const Settings& settings() const { return settings_; }
  uint64_t seed() const { return settings_.seed; }
  /// Random numbers that depend on the seed and on `salt` (a case's id) alone.
  std::mt19937_64 random(const std::string& salt) const;

  HostShim& host() { return *host_; }
  /// The library, opened on the first call.
  Result<Subject*> subject();
  /// entry's answer, asked once.
  Result<const gr_plugin_t*> entered();
  /// The factory under test, made for host().
  Result<const Factory*> factory();
  /// What its probe says; GR_OK without one. Asked once.
  Status usable();
  /// Options as the command line has them.
  Result<OptionValues> options();

  /// An instance with those options, or with `more` on top of them.
  template <typename Table>
  Result<Instance<Table>> make(const std::vector<std::string>& more = {});

  /// The linked reference backend's device.
  Result<Device*> reference();

  /// Which of samples.hpp's data the model under test takes; -1: not tried yet.
  int model_sample = -1;

 private:
  Target target_;
  Settings settings_;
  HostShim* host_;  // never freed: plugins keep its table
  std::unique_ptr<Subject> subject_;
  std::unique_ptr<gr_plugin_t> answer_;
  std::vector<Factory> factories_;
  std::unique_ptr<Status> usable_;
  std::unique_ptr<Reference> reference_;
};

template <typename Table>
Result<Instance<Table>> Context::make(const std::vector<std::string>& more) {
  GR_ASSIGN(const Factory* made_by, factory());
  std::vector<std::string> sets = settings_.sets;
  sets.insert(sets.end(), more.begin(), more.end());
  GR_ASSIGN(OptionValues values, option_values(*made_by, sets));
  return Instance<Table>::create(*made_by, std::move(values));
}

}  // namespace gradrack::conform
