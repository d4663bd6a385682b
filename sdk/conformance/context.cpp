// SPDX-License-Identifier: Apache-2.0
// What cases have at hand: see context.hpp.
#include "sdk/conformance/context.hpp"

#include <algorithm>

#include "core/config/yaml.hpp"
#include "core/plugin/choose.hpp"

namespace gradrack::conform {
namespace {

// FNV-1a, so that a salt gives the same numbers on every machine.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * UINT64_C(0x100000001b3);
  }
  return hash;
}

}  // namespace

Result<OptionValues> option_values(const Factory& factory, const std::vector<std::string>& sets) {
  YamlNode root;
  root.kind = YamlNode::Kind::kMap;
  for (const std::string& set : sets) {
    if (!factory.declares(set.substr(0, set.find('=')))) continue;
    GR_TRY(apply_set(root, set));
  }
  OptionScope scope;
  scope.path = factory.kind;
  scope.owner = factory.kind + " '" + factory.name + "'";
  return check_options(scope, factory.options, root.entries, Place{"--set", 0, 0});
}

Context::Context(Target target, Settings settings)
    : target_(std::move(target)), settings_(std::move(settings)), host_(new HostShim) {}

std::mt19937_64 Context::random(const std::string& salt) const {
  return std::mt19937_64(seed() * UINT64_C(0x9e3779b97f4a7c15) ^ hash_of(salt));
}

Result<Subject*> Context::subject() {
  if (subject_ == nullptr) {
    GR_ASSIGN(subject_, Subject::open(target_.library));
  }
  return subject_.get();
}

Result<const gr_plugin_t*> Context::entered() {
  if (answer_ == nullptr) {
    GR_ASSIGN(Subject * library, subject());
    GR_ASSIGN(const gr_plugin_t answer, library->enter(host_->get()));
    answer_ = std::make_unique<gr_plugin_t>(answer);
  }
  return static_cast<const gr_plugin_t*>(answer_.get());
}

Result<const Factory*> Context::factory() {
  if (factories_.empty()) {
    GR_ASSIGN(const gr_plugin_t* answer, entered());
    GR_ASSIGN(factories_, subject_->factories(*answer, host_->get()));
  }
  const auto at = std::find_if(factories_.begin(), factories_.end(), [&](const Factory& factory) {
    return factory.kind == target_.kind && factory.name == target_.name;
  });
  if (at == factories_.end()) {
    return not_found("the library offers no " + target_.kind + " '" + target_.name + "'");
  }
  return static_cast<const Factory*>(&*at);
}

Status Context::usable() {
  if (usable_ == nullptr) {
    GR_ASSIGN(const Factory* made_by, factory());
    usable_ = std::make_unique<Status>(probe_plugin(*made_by));
  }
  return *usable_;
}

Result<OptionValues> Context::options() {
  GR_ASSIGN(const Factory* made_by, factory());
  return option_values(*made_by, settings_.sets);
}

Result<Device*> Context::reference() {
  if (reference_ == nullptr) {
    GR_ASSIGN(reference_, Reference::make());
  }
  return reference_->device();
}

}  // namespace gradrack::conform
