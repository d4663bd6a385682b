// SPDX-License-Identifier: Apache-2.0
// WidenedKernel: see widen.hpp.
#include "backends/common/widen.hpp"

#include <algorithm>

namespace gradrack::host {
namespace {

constexpr int64_t kAlign = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool has_dtype(const NodeSpec& node, gr_dtype_t dtype) {
  const auto narrow = [dtype](const TensorSpec& t) { return t.present() && t.dtype == dtype; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), narrow) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), narrow);
}

bool changes(const TensorSpec& tensor, const Widening& widening) {
  if (!tensor.present()) return false;
  return tensor.dtype == widening.narrow_dtype ||
         (tensor.dtype == GR_FLOAT32 && widening.widen_float != nullptr);
}

/// The node with the wider dtype. A constant's bytes are of the old one: they are withheld.
NodeSpec widened(NodeSpec node, const Widening& widening) {
  for (std::vector<TensorSpec>* side : {&node.inputs, &node.outputs}) {
    for (TensorSpec& tensor : *side) {
      if (!changes(tensor, widening)) continue;
      tensor.dtype = widening.wide;
      tensor.constant = nullptr;
    }
  }
  return node;
}

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(const NodeSpec& node, const Widening& widening, std::unique_ptr<Kernel> kernel)
      : widening_(widening), kernel_(std::move(kernel)) {
    place(node.inputs, &inputs_);
    place(node.outputs, &outputs_);
    for (size_t k = 0; k < outputs_.size(); ++k) share(k);
    kernel_offset_ = bytes_;
    bytes_ += kernel_->workspace_bytes();
  }

  int64_t workspace_bytes() const override { return bytes_; }
  /// Inputs are read before anything is written, so equal types may share where the kernel lets
  /// its wide ones share.
  int in_place(int output) const override {
    const int from = kernel_->in_place(output);
    if (from < 0) return from;
    const Place &a = inputs_[static_cast<size_t>(from)], &b = outputs_[static_cast<size_t>(output)];
    return a.dtype == b.dtype ? from : -1;
  }
  int64_t cost_ns() const override { return kernel_->cost_ns(); }

  bool cannot_fail() const override { return kernel_->cannot_fail(); }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    auto* base = static_cast<char*>(workspace);
    // As many as a node may have; the frame refuses more.
    DLTensor tensors[kMostTensors];
    const DLTensor* wide_in[kMostTensors];
    DLTensor* wide_out[kMostTensors];
    size_t used = 0;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      wide_in[k] = in[k];
      const Place& place = inputs_[k];
      if (!place.moved) continue;
      widen(place, in[k]->data, base + place.offset);
      wide_in[k] = wide_tensor(*in[k], base + place.offset, &tensors[used++]);
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      wide_out[k] = out[k];
      const Place& place = outputs_[k];
      if (place.moved) wide_out[k] = wide_tensor(*out[k], base + place.offset, &tensors[used++]);
    }
    const int32_t code = kernel_->run(wide_in, wide_out, base + kernel_offset_, err);
    if (code != GR_OK) return code;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Place& place = outputs_[k];
      if (place.moved) narrow(place, base + place.offset, out[k]->data);
    }
    return GR_OK;
  }

  /// Tensors of a node that are widened here; others of longer lists are not claimed.
  static constexpr size_t kMostTensors = 64;

 private:
  /// Where a tensor's wide copy lies.
  struct Place {
    gr_dtype_t dtype = 0;
    bool moved = false;
    int64_t count = 0, offset = 0;
  };

  void place(const std::vector<TensorSpec>& tensors, std::vector<Place>* places) {
    for (const TensorSpec& tensor : tensors) {
      Place made{tensor.dtype, changes(tensor, widening_), tensor.count, bytes_};
      if (made.moved) bytes_ += aligned(tensor.count * gr_dtype_bytes(widening_.wide));
      places->push_back(made);
    }
  }
  /// An output that may take an input's memory takes its wide copy's: it is nobody else's.
  void share(size_t output) {
    const int from = kernel_->in_place(static_cast<int>(output));
    if (from < 0 || !outputs_[output].moved || !inputs_[static_cast<size_t>(from)].moved) return;
    outputs_[output].offset = inputs_[static_cast<size_t>(from)].offset;
  }
  void widen(const Place& place, const void* from, void* to) const {
    if (place.dtype == widening_.narrow_dtype) {
      widening_.widen(static_cast<const uint16_t*>(from), to, place.count);
    } else {
      widening_.widen_float(static_cast<const float*>(from), to, place.count);
    }
  }
  void narrow(const Place& place, const void* from, void* to) const {
    if (place.dtype == widening_.narrow_dtype) {
      widening_.narrow(from, static_cast<uint16_t*>(to), place.count);
    } else {
      widening_.narrow_float(from, static_cast<float*>(to), place.count);
    }
  }
  DLTensor* wide_tensor(const DLTensor& like, void* data, DLTensor* made) const {
    *made = like;
    made->data = data;
    made->dtype = gr_dl_dtype(widening_.wide);
    made->byte_offset = 0;
    return made;
  }

  Widening widening_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Place> inputs_, outputs_;
  int64_t bytes_ = 0, kernel_offset_ = 0;
};

/// The first of `entries` that takes the widened node; otherwise nullptr and its reason.
const KernelEntry* wide_entry(const std::vector<KernelEntry>& entries, const NodeSpec& wide,
                              std::string* reason) {
  for (const KernelEntry& entry : entries) {
    *reason = entry.claim ? entry.claim(wide) : std::string();
    if (reason->empty()) return &entry;
  }
  return nullptr;
}

KernelEntry widened_entry(const std::string& op, std::vector<KernelEntry> entries,
                          const Widening& widening) {
  const auto shared = std::make_shared<const std::vector<KernelEntry>>(std::move(entries));
  const auto claim = [shared, widening](const NodeSpec& node) -> std::string {
    std::string reason;
    // Another node's reason is what the entries before this one said last.
    if (!has_dtype(node, widening.narrow_dtype)) {
      (void)wide_entry(*shared, node, &reason);
      return reason;
    }
    if (node.inputs.size() + node.outputs.size() > WidenedKernel::kMostTensors) {
      return dtype_text(widening.narrow_dtype) + " with more than 64 inputs and outputs";
    }
    (void)wide_entry(*shared, widened(node, widening), &reason);
    return reason;
  };
  const auto make = [shared, widening](const NodeSpec& node) -> std::unique_ptr<Kernel> {
    std::string reason;
    const NodeSpec wide = widened(node, widening);
    const KernelEntry* entry = wide_entry(*shared, wide, &reason);
    return std::make_unique<WidenedKernel>(node, widening, entry->make(wide));
  };
  return {op, claim, make,
          dtype_text(widening.narrow_dtype) + " computed in " + dtype_text(widening.wide)};
}

}  // namespace

void add_widened(KernelTable& table, const Widening& widening) {
  for (const std::string& op : table.ops()) {
    table.add(widened_entry(op, table.entries(op), widening));
  }
}

}  // namespace gradrack::host
