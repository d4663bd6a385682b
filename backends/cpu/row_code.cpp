// SPDX-License-Identifier: Apache-2.0
// RowCode: see row_code.hpp. Nodes become steps in their order, except that column sums come as
// early as they can: what they read is then free to be written over.
#include "backends/cpu/row_code.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/elementwise.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::GroupSpec;
using host::NodeSpec;
using host::TensorSpec;
using Kind = RowStep::Kind;
using Where = RowValue::Kind;

constexpr int64_t kTile = 4096;       // floats of a tile's value, at most
constexpr int64_t kNearest = 8192;    // floats of all its values that fit the nearest cache
constexpr int64_t kFunctionWork = 4;  // of exp and its like

bool is_scale_grad(const NodeSpec& node) {
  return node.op == "gradrack.RMSNormalizationScaleGrad" ||
         node.op == "gradrack.LayerNormalizationScaleGrad";
}
bool is_norm_grad(const NodeSpec& node) {
  return node.op == "gradrack.RMSNormalizationGrad" || node.op == "gradrack.LayerNormalizationGrad";
}
bool is_norm(const NodeSpec& node) {
  return node.op == "RMSNormalization" || node.op == "LayerNormalization";
}

class RowCoder {
 public:
  RowCoder(const GroupSpec& group, const Simd& loops, RowCode* code)
      : group_(group), loops_(loops), code_(*code) {}

  std::string run() {
    for (const NodeSpec& node : group_.nodes) {
      for (const TensorSpec& in : node.inputs) read_inside_.insert(in.id);
      if (dims_ == nullptr && !is_scale_grad(node)) dims_ = &node.outputs[0].dims;
    }
    if (dims_ == nullptr) return "it has column sums alone";
    if (host::product(*dims_) == 0) return "it is empty";
    std::vector<const NodeSpec*> left;
    for (const NodeSpec& node : group_.nodes) left.push_back(&node);
    while (!left.empty()) {
      auto next = std::find_if(left.begin(), left.end(), [&](const NodeSpec* node) {
        return is_scale_grad(*node) && ready(node->inputs[0]) && ready(node->inputs[1]);
      });
      if (next == left.end()) next = left.begin();
      if (std::string reason = add(**next); !reason.empty()) return (*next)->op + ": " + reason;
      left.erase(next);
    }
    choose_tiles();
    find_in_place();
    return place_in_scratch();
  }

 private:
  bool ready(const TensorSpec& value) const {
    return group_.input(value.id) >= 0 || made_.count(value.id) != 0;
  }

  std::string add(const NodeSpec& node) {
    for (const auto* tensors : {&node.inputs, &node.outputs}) {
      for (const TensorSpec& tensor : *tensors) {
        if (!tensor.present() || tensor.dtype == GR_FLOAT32 || tensor.dtype == GR_BFLOAT16)
          continue;
        return "it has " + host::dtype_text(tensor.dtype);
      }
    }
    if (is_scale_grad(node)) return add_scale_grad(node);
    const TensorSpec& out = node.outputs[0];
    if (out.dims != *dims_) return "its result has another shape than that of the others";
    for (size_t k = 1; k < node.outputs.size(); ++k) {
      if (node.has_output(k)) return "only its first result is made here";
    }
    if (is_norm(node)) return add_norm(node);
    if (is_norm_grad(node)) return add_norm_grad(node);
    if (node.op == "Cast") return add_cast(node);
    RowStep step;
    step.alpha = alpha_of(node);
    if (const auto unary = unary_of(node); unary && node.inputs.size() == 1) {
      step.kind = Kind::kUnary;
      step.unary = loops_.unary[static_cast<int>(*unary)];
      code_.work += is_plain(*unary) ? 1 : kFunctionWork;
    } else if (const auto binary = binary_of(node); binary && node.inputs.size() == 2) {
      step.kind = Kind::kBinary;
      step.binary = loops_.binary[static_cast<int>(*binary)];
      code_.work += is_plain(*binary) ? 1 : kFunctionWork;
    } else {
      return "no loop over tiles for it";
    }
    if (std::string text = read(node.inputs[0], &step.a); !text.empty()) return text;
    if (step.kind == Kind::kBinary) {
      if (std::string text = read(node.inputs[1], &step.b); !text.empty()) return text;
    }
    finish(step, out);
    return {};
  }

  std::string add_norm(const NodeSpec& node) {
    RowStep step;
    step.kind = Kind::kNorm;
    step.norm = {node.get_float("epsilon", 1e-5), node.op == "LayerNormalization"};
    if (std::string text = set_norm_width(node); !text.empty()) return text;
    if (std::string text = read(node.inputs[0], &step.a); !text.empty()) return text;
    if (std::string text = read_row(node.inputs[1], &step.b); !text.empty()) return text;
    if (node.has_input(2)) {
      if (std::string text = read_row(node.inputs[2], &step.c); !text.empty()) return text;
    }
    step.statistics = statistics_of(step.a, step.norm);
    code_.work += kFunctionWork;
    finish(step, node.outputs[0]);
    return {};
  }

  std::string add_norm_grad(const NodeSpec& node) {
    RowStep step;
    step.kind = Kind::kNormGrad;
    step.norm = {node.get_float("epsilon", 1e-5), node.op == "gradrack.LayerNormalizationGrad"};
    if (std::string text = set_norm_width(node); !text.empty()) return text;
    if (std::string text = read(node.inputs[0], &step.a); !text.empty()) return text;
    if (std::string text = read(node.inputs[1], &step.b); !text.empty()) return text;
    if (std::string text = read_row(node.inputs[2], &step.c); !text.empty()) return text;
    step.statistics = statistics_of(step.b, step.norm);
    code_.work += kFunctionWork;
    finish(step, node.outputs[0]);
    return {};
  }

  std::string add_scale_grad(const NodeSpec& node) {
    RowStep step;
    step.kind = Kind::kScaleGrad;
    step.norm = {node.get_float("epsilon", 1e-5),
                 node.op == "gradrack.LayerNormalizationScaleGrad"};
    if (node.inputs[1].dims != *dims_) return "its rows are not those of the others";
    if (group_.output(node.outputs[0].id) < 0 || read_inside_.count(node.outputs[0].id) != 0) {
      return "its result is read inside the group";
    }
    if (std::string text = set_norm_width(node); !text.empty()) return text;
    if (std::string text = read(node.inputs[0], &step.a); !text.empty()) return text;
    if (std::string text = read(node.inputs[1], &step.b); !text.empty()) return text;
    step.statistics = statistics_of(step.b, step.norm);
    step.place = static_cast<int>(code_.sums.size());
    code_.sums.push_back(group_.output(node.outputs[0].id));
    code_.work += kFunctionWork;
    code_.steps.push_back(step);
    return {};
  }

  // Rows of a normalisation: those of x, from `axis` on.
  std::string set_norm_width(const NodeSpec& node) {
    const size_t x = is_norm(node) ? 0 : 1;
    const Dims& dims = node.inputs[x].dims;
    code_.whole_rows = true;
    return set_width(host::product(dims, node.get_axis("axis", dims.size(), -1), dims.size()));
  }

  std::string set_width(int64_t width) {
    if (width_ != 0 && width_ != width) return "its rows are not as long as those of the others";
    width_ = width;
    return {};
  }

  std::string add_cast(const NodeSpec& node) {
    const TensorSpec& from = node.inputs[0];
    const TensorSpec& to = node.outputs[0];
    const int place = group_.output(to.id);
    code_.work += 1;
    // bfloat16 that comes from outside is widened to where float32 is wanted anyway.
    if (place >= 0 && from.dtype == GR_BFLOAT16 && to.dtype == GR_FLOAT32 &&
        group_.input(from.id) >= 0 && made_.count(from.id) == 0) {
      const int value = make_value(Where::kOutput, place);
      widen(group_.input(from.id), value);
      made_[from.id] = made_[to.id] = value;
      return {};
    }
    RowStep step;
    step.kind = Kind::kCopy;
    if (std::string text = read(from, &step.a); !text.empty()) return text;
    if (place < 0 && (from.dtype == to.dtype || to.dtype == GR_FLOAT32)) {
      made_[to.id] = step.a;  // as it is
      return {};
    }
    if (to.dtype == GR_BFLOAT16 && place >= 0 && read_inside_.count(to.id) == 0) {
      step.kind = Kind::kNarrow;
      step.place = place;
      code_.steps.push_back(step);
      return {};
    }
    finish(step, to);
    return {};
  }

  // The value that a step makes: to its output, or to a tile that is rounded where need be.
  void finish(RowStep step, const TensorSpec& out) {
    const int place = group_.output(out.id);
    const bool narrow = out.dtype == GR_BFLOAT16;
    step.y =
        !narrow && place >= 0 ? make_value(Where::kOutput, place) : make_value(Where::kTile, -1);
    made_[out.id] = step.y;
    const bool rounds = narrow && step.kind == Kind::kCopy;
    if (rounds) step.kind = Kind::kRound;
    code_.steps.push_back(step);
    if (!narrow) return;
    RowStep after;
    after.a = step.y;
    if (place >= 0) {
      after.kind = Kind::kNarrow;
      after.place = place;
      code_.steps.push_back(after);
    }
    if (rounds || read_inside_.count(out.id) == 0) return;
    after.kind = Kind::kRound;
    after.y = step.y;
    after.place = -1;
    code_.steps.push_back(after);
  }

  int make_value(Where kind, int place) {
    RowValue value;
    value.kind = kind;
    value.place = place;
    code_.values.push_back(value);
    return static_cast<int>(code_.values.size()) - 1;
  }

  void widen(int place, int y) {
    RowStep step;
    step.kind = Kind::kWiden;
    step.place = place;
    step.y = y;
    code_.steps.push_back(step);
  }

  std::string read(const TensorSpec& in, int* value) {
    const auto known = made_.find(in.id);
    if (known != made_.end()) {
      *value = known->second;
      return {};
    }
    const int place = group_.input(in.id);
    const bool narrow = in.dtype == GR_BFLOAT16;
    Where kind = Where::kInput;
    if (std::string reason = find_repeats(in.dims, &kind); !reason.empty()) return reason;
    if (kind == Where::kInput && narrow) {
      *value = make_value(Where::kTile, -1);
      widen(place, *value);
    } else {
      *value = make_value(kind, place);
      code_.values.back().narrow = narrow;
    }
    made_[in.id] = *value;
    return {};
  }

  // A scale or bias. With one row in all it has the shape of the data.
  std::string read_row(const TensorSpec& in, int* value) {
    if (in.count != width_) return "its scale is not as long as a row";
    if (group_.input(in.id) < 0) return "its scale is made inside the group";
    return read(in, value);
  }

  // How an input of `dims` repeats over the shape of the group.
  std::string find_repeats(const Dims& dims, Where* kind) {
    const int64_t count = host::product(dims);
    *kind = Where::kInput;
    if (count == host::product(*dims_)) return {};
    *kind = Where::kNumber;
    if (count == 1) return {};
    const Dims strides = host::broadcast_strides(dims, *dims_);
    int64_t inner = 1;  // elements of the last dims that are walked alike
    size_t d = dims_->size();
    const auto repeats = [&](size_t k) { return strides[k] == 0; };
    while ((*dims_)[d - 1] == 1) --d;
    const bool column = repeats(d - 1);
    for (; d > 0 && ((*dims_)[d - 1] == 1 || repeats(d - 1) == column); --d) {
      inner *= (*dims_)[d - 1];
    }
    for (; d > 0; --d) {
      if ((*dims_)[d - 1] != 1 && repeats(d - 1) == column) {
        return "an input repeats along dims that are no rows or columns";
      }
    }
    *kind = column ? Where::kColumn : Where::kRow;
    return set_width(inner);
  }

  int statistics_of(int x, RowNorm norm) {
    for (const RowStep& step : code_.steps) {
      if (step.kind == Kind::kStatistics && step.a == x && step.norm.center == norm.center &&
          step.norm.epsilon == norm.epsilon) {
        return step.statistics;
      }
    }
    RowStep step;
    step.kind = Kind::kStatistics;
    step.a = x;
    step.norm = norm;
    step.statistics = code_.statistics++;
    code_.steps.push_back(step);
    return step.statistics;
  }

  void choose_tiles() {
    const int64_t count = host::product(*dims_);
    code_.width = width_ == 0 ? count : width_;
    code_.rows = count / code_.width;
    int64_t tiles = 1;
    for (const RowValue& value : code_.values) tiles += value.kind == Where::kTile ? 1 : 0;
    const int64_t wanted = std::max<int64_t>(512, std::min(kTile, kNearest / tiles));
    code_.whole_rows = code_.whole_rows || code_.width <= wanted;
    code_.tile_width = code_.whole_rows ? code_.width : wanted / 64 * 64;
    code_.tile_rows =
        code_.whole_rows ? std::clamp<int64_t>(wanted / code_.width, 1, kTileRows) : 1;
    code_.tile_rows = std::min(code_.tile_rows, code_.rows);
  }

  // An output may take the memory of an input of its type that nothing reads after it is written.
  void find_in_place() {
    code_.in_place.assign(group_.outputs.size(), -1);
    std::set<int> taken;
    for (size_t s = 0; s < code_.steps.size(); ++s) {
      const int output = written_by(code_.steps[s]);
      if (output < 0) continue;
      const TensorSpec& out = group_.outputs[static_cast<size_t>(output)];
      for (size_t k = 0; k < group_.inputs.size() && code_.in_place[size_t(output)] < 0; ++k) {
        const TensorSpec& in = group_.inputs[k];
        const int place = static_cast<int>(k);
        if (in.dtype != out.dtype || in.dims != out.dims || taken.count(place) != 0) continue;
        if (last_read_of(place) > static_cast<int64_t>(s)) continue;
        code_.in_place[size_t(output)] = place;
        taken.insert(place);
      }
    }
  }

  int written_by(const RowStep& step) const {
    if (step.kind == Kind::kNarrow) return step.place;
    if (step.y < 0) return -1;
    const RowValue& y = code_.values[static_cast<size_t>(step.y)];
    return y.kind == Where::kOutput ? y.place : -1;
  }

  int64_t last_read_of(int input) const {
    int64_t last = -1;
    for (size_t s = 0; s < code_.steps.size(); ++s) {
      const RowStep& step = code_.steps[s];
      bool reads = step.kind == Kind::kWiden && step.place == input;
      for (const int v : {step.a, step.b, step.c}) {
        if (v < 0) continue;
        const RowValue& value = code_.values[static_cast<size_t>(v)];
        reads = reads || (value.place == input && value.kind != Where::kOutput &&
                          value.kind != Where::kTile);
      }
      if (reads) last = static_cast<int64_t>(s);
    }
    return last;
  }

  // Tiles share scratch where one is not needed any more when the other is made.
  std::string place_in_scratch() {
    if (code_.statistics > kRowStatistics) return "it has too many normalisations";
    const int64_t tile = (code_.tile_rows * code_.tile_width + 15) / 16 * 16;
    for (RowValue& value : code_.values) {
      if (value.kind != Where::kRow && value.kind != Where::kColumn &&
          value.kind != Where::kNumber) {
        continue;
      }
      // One row at a time needs no copies side by side.
      if (value.kind == Where::kRow && !value.narrow && code_.tile_rows == 1) continue;
      value.at = code_.scratch;
      code_.scratch += value.kind == Where::kNumber ? 16 : tile;
    }
    std::vector<int64_t> last(code_.values.size(), -1);
    for (size_t s = 0; s < code_.steps.size(); ++s) {
      const RowStep& step = code_.steps[s];
      for (const int v : {step.a, step.b, step.c, step.y}) {
        if (v >= 0) last[static_cast<size_t>(v)] = static_cast<int64_t>(s);
      }
    }
    std::vector<int64_t> free;
    for (size_t s = 0; s < code_.steps.size(); ++s) {
      const RowStep& step = code_.steps[s];
      std::set<int> ending;
      for (const int v : {step.a, step.b, step.c}) {
        if (v >= 0 && v != step.y && last[static_cast<size_t>(v)] == static_cast<int64_t>(s) &&
            code_.values[static_cast<size_t>(v)].kind == Where::kTile) {
          ending.insert(v);
        }
      }
      // Every loop may write where it reads, so what ends here is free for what is made here.
      for (const int v : ending) free.push_back(code_.values[static_cast<size_t>(v)].at);
      if (step.y < 0) continue;
      RowValue& y = code_.values[static_cast<size_t>(step.y)];
      if (y.kind != Where::kTile || y.at >= 0) continue;
      if (free.empty()) {
        free.push_back(code_.scratch);
        code_.scratch += tile;
      }
      y.at = free.back();
      free.pop_back();
    }
    return code_.scratch <= kRowScratch ? "" : "its values in a tile take too much memory";
  }

  const GroupSpec& group_;
  const Simd& loops_;
  RowCode& code_;
  const Dims* dims_ = nullptr;  // of the results
  int64_t width_ = 0;           // of rows; 0: nothing asks for one
  std::set<gr_value_t> read_inside_;
  std::map<gr_value_t, int> made_;  // values so far
};

}  // namespace

std::string make_row_code(const GroupSpec& group, const Simd& loops, RowCode* code) {
  *code = {};
  return RowCoder(group, loops, code).run();
}

}  // namespace gradrack::cpu
