// SPDX-License-Identifier: Apache-2.0
// Eager: runs a graph node by node on one backend, with no plan: the oracle of gradient and plan
// tests.
//
// For each node that a wanted value needs: a view shares bytes, known integers become constants,
// what the backend claims is prepared and launched, the rest is decomposed. Invariant: it uses
// nothing of core/plan, core/exec or core/rewrite but the decompositions, so it can contradict
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "gradrack/backend.h"
#include "tests/grad/host_tensor.hpp"

namespace gradrack::test {

class Eager {
 public:
  /// Loads the backend plugin `name` ("reference") of the build's plugin folder through its header
  /// symbol, with its default options. The plugin stays loaded.
  static Result<std::unique_ptr<Eager>> open(const std::string& name);
  ~Eager();
  Eager(const Eager&) = delete;
  Eager& operator=(const Eager&) = delete;

  /// Values of `wanted` under `bindings`. `sources` holds the contents of inputs, parameters,
  /// scalars and the like by name; their dims must be what the bindings give.
  Result<std::vector<HostTensor>> run(const Graph& graph, const Bindings& bindings,
                                      const std::map<std::string, HostTensor>& sources,
                                      const std::vector<ValueId>& wanted);

  /// Operators for which `avoid` answers true are decomposed even if the backend claims them.
  void set_avoid(std::function<bool(const OpDef&)> avoid) { avoid_ = std::move(avoid); }
  const gr_backend_t& backend() const { return backend_; }

 private:
  class Pass;
  Eager() = default;

  gr_backend_t backend_ = {};
  gr_stream_t* stream_ = nullptr;
  std::function<bool(const OpDef&)> avoid_;
};

}  // namespace gradrack::test
