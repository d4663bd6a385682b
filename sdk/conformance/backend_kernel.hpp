// SPDX-License-Identifier: Apache-2.0
// KernelRun: one node of a bound graph, prepared by a backend and launched in many styles.
//
// What the cells of L3 and the graph runner are made of. Every launch checks what holds for all
// kernels: guards stay whole, inputs unchanged, bools 0 or 1. Invariant: the contents given are
// those that the backend sees; what it answers comes back as bytes. Compares nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/bind.hpp"
#include "sdk/conformance/backend_rig.hpp"

namespace gradrack::conform {

/// Contents of a graph's values; constants need no entry.
using Contents = std::map<ValueId, HostArray>;

/// What a kernel must not depend on.
struct LaunchStyle {
  uint8_t guard = 0x5a;      ///< bytes around every tensor
  uint8_t output = 0x5a;     ///< bytes of outputs before the launch
  uint8_t workspace = 0xff;  ///< bytes of the workspace before the launch
  bool in_place = false;     ///< outputs share the memory of inputs where the kernel allows it
  bool odd_strides = false;  ///< dims of size 1 have strides that say nothing
};

class KernelRun {
 public:
  /// Asks the backend to prepare the node. `bound` outlives this.
  static Result<KernelRun> prepare(const Rig& rig, const BoundGraph& bound, size_t node);
  /// Asks it to prepare a match of its pattern `index`: nodes in the pattern's order. Outputs of
  /// the launch are those of outputs().
  static Result<KernelRun> prepare_match(const Rig& rig, const BoundGraph& bound,
                                         const std::vector<size_t>& nodes, uint32_t index);

  const gr_kernel_info_t& info() const { return info_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  /// "" when what prepare said of itself can be; else what cannot.
  std::string info_fault() const;
  /// True when some output may share an input's memory.
  bool allows_in_place() const;

  /// One launch in fresh memory, waited for. Broken promises are added to `faults`.
  Result<std::vector<HostArray>> launch(const Contents& contents, const LaunchStyle& style,
                                        std::vector<std::string>* faults) const;

 private:
  struct Scene;
  KernelRun(const Rig& rig, const BoundGraph& bound) : rig_(&rig), bound_(&bound) {}
  Status prepare_group(const std::vector<size_t>& nodes, uint32_t pattern,
                       const std::vector<ValueId>* roots);
  Result<HostArray> content_of(const Contents& contents, ValueId id) const;
  Status set_scene(const Contents& contents, const LaunchStyle& style, Scene* scene) const;
  Status queue(Scene* scene) const;
  Result<std::vector<HostArray>> look(const Contents& contents, const LaunchStyle& style,
                                      const Scene& scene, std::vector<std::string>* faults) const;
  int32_t shared_input(size_t output, const LaunchStyle& style) const;

  const Rig* rig_;
  const BoundGraph* bound_;
  Kernel kernel_;
  gr_kernel_info_t info_ = {};
  std::vector<ValueId> inputs_;  // at the border: present ones, in order
  std::vector<ValueId> outputs_;
};

}  // namespace gradrack::conform
