// SPDX-License-Identifier: Apache-2.0
// Roles: what each tensor of a model becomes in a graph that trains, and which nodes are needed.
//
// Settled once, from the model and the options, so that all graphs of it declare the same.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model.hpp"
#include "settings.hpp"

namespace gradrack::onnx {

enum class Role {
  kUnused,     // no node that is needed reads it
  kConstant,   // part of the graph
  kParameter,  // trained
  kBuffer,     // running statistics, and large weights that stay as they are
  kAdapted     // stays as it is, and has an adapter: a buffer
};

struct Roles {
  std::vector<bool> needed;                ///< by node
  std::set<std::string> inputs;            ///< that needed nodes or outputs read
  std::vector<std::string> outputs;        ///< names, in order
  std::map<std::string, Role> of;          ///< by tensor
  std::map<std::string, int32_t> purpose;  ///< of parameters: GR_ROLE_*
  std::string loss_value;                  ///< what the loss reads; "": there is none
  bool loss_before_softmax = false;        ///< loss_value is what the file's last Softmax reads
};

/// GR_INVALID_ARGUMENT names an option that fits nothing in the file.
Roles settle_roles(const Model& model, const Settings& settings);

}  // namespace gradrack::onnx
