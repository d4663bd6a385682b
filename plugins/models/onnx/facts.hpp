// SPDX-License-Identifier: Apache-2.0
// Facts: what a model's file says of itself, for people and for files written from it.
#pragma once

#include <string>
#include <vector>

#include "model.hpp"
#include "roles.hpp"

namespace gradrack::onnx {

struct Fact {
  const char* topic;  ///< "file", "metadata", "operator", "weight", "note"
  std::string key;
  std::string value;
};

std::vector<Fact> facts_of(const Model& model, const Roles& roles);

}  // namespace gradrack::onnx
