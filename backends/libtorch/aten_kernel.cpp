// SPDX-License-Identifier: Apache-2.0
// Frames in turn, and the wall that no exception of ATen passes: see aten_kernel.hpp.
#include "backends/libtorch/aten_kernel.hpp"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace gradrack::libtorch {
namespace {

/// A node that outlives the call which brought it: integer constants are copied.
class KeptNode {
 public:
  explicit KeptNode(NodeSpec node) : node_(std::move(node)) {
    for (TensorSpec& tensor : node_.inputs) {
      const bool ints = tensor.dtype == GR_INT64 || tensor.dtype == GR_INT32;
      if (tensor.constant == nullptr || !ints) {
        tensor.constant = nullptr;
        continue;
      }
      const auto bytes = static_cast<size_t>(tensor.count * gr_dtype_bytes(tensor.dtype));
      // One byte more, so that a list of none is a constant too.
      contents_.push_back(std::make_unique<char[]>(bytes + 1));
      std::memcpy(contents_.back().get(), tensor.constant, bytes);
      tensor.constant = contents_.back().get();
    }
  }
  const NodeSpec& get() const { return node_; }

 private:
  NodeSpec node_;
  std::vector<std::unique_ptr<char[]>> contents_;
};

std::string shapes_text(const NodeSpec& node) {
  std::string text;
  for (const TensorSpec& input : node.inputs) {
    text += text.empty() ? "(" : ", ";
    text += input.present() ? host::type_text(input) : "-";
  }
  return text.empty() ? "()" : text + ")";
}

/// The first line: what follows is where it was thrown.
std::string first_line(const char* text) { return std::string(text, std::strcspn(text, "\n")); }

/// A frame with the function that runs on it.
struct Bound {
  explicit Bound(const NodeSpec& node) : frame(node) {}
  Frame frame;
  Body body;
};

class AtenKernel final : public host::Kernel {
 public:
  AtenKernel(const NodeSpec& node, const Build& build, const EntryOptions& options)
      : node_(node), build_(build) {
    share(node, options);
    free_.reserve(kMostFrames);
    std::unique_ptr<Bound> first = make_bound();
    workspace_bytes_ = first->frame.workspace_bytes();
    next_.store(first.release());
  }
  ~AtenKernel() override { delete next_.load(); }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  int in_place(int output) const override {
    const auto k = static_cast<size_t>(output);
    return k < shared_.size() ? shared_[k] : -1;
  }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    try {
      const c10::InferenceMode no_autograd;
      std::unique_ptr<Bound> bound = take();
      bound->frame.bind(in, out, workspace);
      bound->body({in, out});
      give_back(std::move(bound));
      return GR_OK;
    } catch (const DataError& e) {
      return gr_fail(err, e.code, op(), e.what());
    } catch (const c10::Error& e) {
      return fail(e, err);
    }
  }

 private:
  static constexpr size_t kMostFrames = 64;  // kept for runs that overlap

  const char* op() const { return node_.get().op.c_str(); }

  std::unique_ptr<Bound> make_bound() const {
    const c10::InferenceMode no_autograd;
    auto bound = std::make_unique<Bound>(node_.get());
    bound->body = build_(node_.get(), bound->frame);
    return bound;
  }
  /// One exchange where runs do not overlap.
  std::unique_ptr<Bound> take() const {
    std::unique_ptr<Bound> bound(next_.exchange(nullptr, std::memory_order_acquire));
    if (bound != nullptr) return bound;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        bound = std::move(free_.back());
        free_.pop_back();
        return bound;
      }
    }
    return make_bound();
  }
  void give_back(std::unique_ptr<Bound> bound) const {
    Bound* none = nullptr;
    if (next_.compare_exchange_strong(none, bound.get(), std::memory_order_release)) {
      (void)bound.release();
      return;
    }
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMostFrames) free_.push_back(std::move(bound));
  }

  int32_t fail(const c10::Error& e, gr_error_t* err) const {
    const std::string what = first_line(e.what_without_backtrace());
    const bool memory = what.find("can't allocate memory") != std::string::npos ||
                        dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr;
    const std::string text = "ATen, on " + shapes_text(node_.get()) + ": " + what;
    return gr_fail(err, memory ? GR_OUT_OF_MEMORY : GR_INTERNAL, op(), text.c_str());
  }

  void share(const NodeSpec& node, const EntryOptions& options) {
    const auto fits = [&](int input, size_t output) {
      if (input < 0 || !node.has_input(static_cast<size_t>(input))) return false;
      const TensorSpec& a = node.inputs[static_cast<size_t>(input)];
      return node.has_output(output) && a.dtype == node.outputs[output].dtype &&
             a.dims == node.outputs[output].dims;
    };
    shared_.push_back(-1);
    for (const int input : options.in_place) {
      if (shared_[0] < 0 && fits(input, 0)) shared_[0] = input;
    }
    for (size_t k = 0; k < options.in_place_after.size(); ++k) {
      shared_.push_back(fits(options.in_place_after[k], k + 1) ? options.in_place_after[k] : -1);
    }
  }

  const KeptNode node_;
  const Build build_;
  std::vector<int> shared_;
  int64_t workspace_bytes_ = 0;
  mutable std::atomic<Bound*> next_{nullptr};
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Bound>> free_;
};

std::string refuse_nameless(const NodeSpec& node) {
  for (const std::vector<TensorSpec>* side : {&node.inputs, &node.outputs}) {
    for (const TensorSpec& tensor : *side) {
      if (!tensor.present() || scalar_type(tensor.dtype) != at::ScalarType::Undefined) continue;
      return "ATen has no " + host::dtype_text(tensor.dtype);
    }
  }
  return {};
}

}  // namespace

void add(host::KernelTable& table, const std::string& op, Claim claim, Build build,
         EntryOptions options) {
  const auto checked = [claim = std::move(claim)](const NodeSpec& node) {
    std::string reason = refuse_nameless(node);
    return reason.empty() ? claim(node) : reason;
  };
  const auto make = [build = std::move(build), options = std::move(options)](const NodeSpec& node) {
    return std::make_unique<AtenKernel>(node, build, options);
  };
  table.add({op, checked, make});
}

bool is_real(gr_dtype_t dtype) {
  return dtype == GR_FLOAT32 || dtype == GR_FLOAT64 || dtype == GR_BFLOAT16 || dtype == GR_FLOAT16;
}

std::string claim_reals(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (!is_real(dtype)) return "input 0 is " + host::dtype_text(dtype);
  return host::refuse_reals_except(node, {dtype});
}

std::string claim_wide(const NodeSpec& node) {
  return host::refuse_reals_except(node, {GR_FLOAT32, GR_FLOAT64});
}

std::string claim_any(const NodeSpec&) { return {}; }

std::string claim_numbers(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  return dtype == GR_BOOL ? "input 0 is " + host::dtype_text(dtype) : std::string();
}

}  // namespace gradrack::libtorch
