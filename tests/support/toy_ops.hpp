// SPDX-License-Identifier: Apache-2.0
// Toy operators and a toy backend, so that planning and execution are tested without real kernels.
//
// The operators are element-wise (one shape, float32) but for Sum and Product; the backend runs
// them through the frame that real ones in host memory use, and can refuse, fail, run on threads
// and play a device with memory of its own on demand.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/common/group.hpp"
#include "core/device/device.hpp"
#include "core/graph/graph.hpp"

namespace gradrack::toy {

/// Add, Mul, Neg (may run in place), Twice (needs a workspace), Halves (two outputs: x/2 and x/4),
/// Move (p - g, may overwrite p), Sum (to a scalar), Product (matrix product), Fail (its kernel
/// fails), Flat (a view), Square = Mul(x, x) and Poly = Add(Square(x), x) (decompositions).
const OpRegistry& ops();

/// From now on the `run`-th kernel that runs on any toy backend fails; 0: none does. Those that
/// cannot fail do not count.
void fail_kernel(int64_t run);

struct BackendOptions {
  std::string name = "toy";
  std::set<std::string> refused = {};  // operators that it does not claim
  std::set<std::string> sure = {};     // operators whose kernels cannot fail
  bool threaded = false;
  uint32_t max_streams = 8;
  int32_t memory = GR_MEMORY_HOST;            // else emulated: see emulated_device.hpp
  std::vector<host::GroupEntry> groups = {};  // patterns: see toy_group.hpp
  bool concurrent = true;                     // else without GR_BACKEND_CONCURRENT
  /// What the Device gets in place of the table; null: the table itself.
  std::function<const gr_backend_t*(const gr_backend_t*)> wrap = nullptr;
};

/// A backend and the Device over it. Counts launches of kernels.
class Backend {
 public:
  explicit Backend(BackendOptions options = {});
  ~Backend();
  Device* device() { return device_.get(); }
  gr_backend_t* table() { return &table_; }

 private:
  gr_backend_t table_ = {};
  std::unique_ptr<Device> device_;
};

/// Builds graphs with the fewest words; any error fails the test at once.
class Builder {
 public:
  Builder() : graph(ops()) {}

  ValueId source(Source source, const std::string& name, Shape shape, gr_dtype_t dtype = GR_FLOAT32,
                 gr_init_t init = {});
  ValueId input(const std::string& name, Shape shape) {
    return source(Source::kInput, name, std::move(shape));
  }
  ValueId parameter(const std::string& name, Shape shape, double value = 0) {
    return source(Source::kParameter, name, std::move(shape), GR_FLOAT32,
                  {GR_INIT_CONSTANT, 0, value, 0});
  }
  ValueId constant(Shape shape, std::vector<double> numbers);
  ValueId op(const std::string& name, std::vector<ValueId> inputs);
  std::vector<ValueId> multi(const std::string& name, std::vector<ValueId> inputs, size_t outputs);
  void output(const std::string& name, ValueId id);
  void write(ValueId target, ValueId value);

  Graph graph;
};

}  // namespace gradrack::toy
