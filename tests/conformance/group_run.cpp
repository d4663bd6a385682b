// SPDX-License-Identifier: Apache-2.0
// GroupCase: see group_run.hpp.
#include "tests/conformance/group_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/common/tensor_access.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::conformance {
namespace {

constexpr size_t kGuard = 64;
constexpr char kMark = 0x5a;

void give_workspace(GroupCase::Launch* launch) {
  launch->workspace.resize(static_cast<size_t>(launch->kernel->workspace_bytes()) + 128);
  char* start = launch->workspace.data();
  launch->scratch = start + (64 - reinterpret_cast<uintptr_t>(start) % 64);
}

}  // namespace

CaseTensor::CaseTensor(gr_dtype_t dtype, std::vector<int64_t> dims)
    : dtype_(dtype),
      dims_(std::move(dims)),
      strides_(host::row_major_strides(dims_)),
      count_(host::product(dims_)),
      memory_(static_cast<size_t>(count_ * gr_dtype_bytes(dtype)) + kGuard + 64, kMark),
      data_(memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64)) {
  tensor_.data = data_;
  tensor_.device = {kDLCPU, 0};
  tensor_.ndim = static_cast<int32_t>(dims_.size());
  tensor_.dtype = gr_dl_dtype(dtype);
  tensor_.shape = dims_.data();
  tensor_.strides = strides_.data();
}

std::vector<double> CaseTensor::numbers() const {
  std::vector<double> out;
  for (int64_t k = 0; k < count_; ++k) {
    if (dtype_ == GR_BFLOAT16) {
      out.push_back(sdk::from_bfloat16(reinterpret_cast<const uint16_t*>(data_)[k]));
      continue;
    }
    host::dispatch_any(dtype_, [&](auto zero) {
      out.push_back(static_cast<double>(reinterpret_cast<const decltype(zero)*>(data_)[k]));
    });
  }
  return out;
}

void CaseTensor::set(const std::vector<double>& numbers) {
  for (int64_t k = 0; k < count_; ++k) {
    const double number = numbers[static_cast<size_t>(k)];
    if (dtype_ == GR_BFLOAT16) {
      reinterpret_cast<uint16_t*>(data_)[k] = sdk::to_bfloat16(number);
      continue;
    }
    host::dispatch_any(dtype_, [&](auto zero) {
      reinterpret_cast<decltype(zero)*>(data_)[k] = static_cast<decltype(zero)>(number);
    });
  }
}

std::string CaseTensor::bytes() const {
  return {data_, static_cast<size_t>(count_ * gr_dtype_bytes(dtype_))};
}

void CaseTensor::set_bytes(const std::string& bytes) {
  std::memcpy(data_, bytes.data(), bytes.size());
}

bool CaseTensor::guard_is_whole() const {
  const char* end = data_ + count_ * gr_dtype_bytes(dtype_);
  return std::all_of(end, memory_.data() + memory_.size(), [](char c) { return c == kMark; });
}

GroupCase& GroupCase::input(const std::string& name, gr_dtype_t dtype, std::vector<int64_t> dims,
                            double scale, double shift) {
  values_.try_emplace(name, dtype, std::move(dims));
  scales_[name] = {scale, shift};
  order_.push_back(name);
  outside_.push_back(name);
  return *this;
}

GroupCase& GroupCase::number(const std::string& name, gr_dtype_t dtype, double number,
                             std::vector<int64_t> dims) {
  fixed_[name] = number;
  return input(name, dtype, std::move(dims));
}

GroupCase& GroupCase::node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::string& result, gr_dtype_t dtype, std::vector<int64_t> dims,
                           NodeAttrs attrs) {
  return node(op, inputs, std::vector<std::string>{result}, dtype, std::move(dims),
              std::move(attrs));
}

GroupCase& GroupCase::node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& results, gr_dtype_t dtype,
                           std::vector<int64_t> dims, NodeAttrs attrs) {
  for (const std::string& result : results) {
    values_.try_emplace(result, dtype, dims);
    order_.push_back(result);
  }
  nodes_.push_back({op, inputs, results, std::move(attrs)});
  return *this;
}

GroupCase& GroupCase::shown(std::vector<std::string> names) {
  shown_ = std::move(names);
  return *this;
}

void GroupCase::draw() {
  uint64_t seed = seed_;
  for (const std::string& name : outside_) {
    std::mt19937_64 random(seed++);
    std::normal_distribution<double> normal;
    const auto [scale, shift] = scales_.at(name);
    CaseTensor& value = values_.at(name);
    std::vector<double> numbers;
    for (int64_t k = 0; k < value.count(); ++k) numbers.push_back(normal(random) * scale + shift);
    if (fixed_.count(name) != 0) std::fill(numbers.begin(), numbers.end(), fixed_.at(name));
    value.set(numbers);
  }
}

gr_value_t GroupCase::id(const std::string& name) {
  const auto at = std::find(order_.begin(), order_.end(), name);
  return at == order_.end() ? GR_NO_VALUE : static_cast<gr_value_t>(at - order_.begin());
}

gr_value_type_t GroupCase::type(const std::string& name) {
  if (name.empty()) return {GR_NO_VALUE, 0, 0, 0, nullptr, nullptr};
  const CaseTensor& value = values_.at(name);
  return {id(name), value.dtype(),       static_cast<uint32_t>(value.dims().size()),
          0,        value.dims().data(), nullptr};
}

host::NodeSpec GroupCase::node_spec(const Node& node) {
  std::vector<gr_value_type_t> in, out;
  for (const std::string& name : node.inputs) in.push_back(type(name));
  for (const std::string& name : node.results) out.push_back(type(name));
  std::vector<gr_attr_t> attrs;
  const auto attr = [&](const std::string& name, int32_t kind) -> gr_attr_t& {
    attrs.push_back({});
    attrs.back().name = name.c_str();
    attrs.back().type = kind;
    return attrs.back();
  };
  for (const auto& [name, value] : node.attrs.floats) attr(name, GR_ATTR_FLOAT).f = value;
  for (const auto& [name, value] : node.attrs.ints) attr(name, GR_ATTR_INT).i = value;
  for (const auto& [name, value] : node.attrs.texts) attr(name, GR_ATTR_STRING).s = value.c_str();
  const size_t dot = node.op.find('.');
  const std::string domain = dot == std::string::npos ? "" : node.op.substr(0, dot);
  const std::string op = dot == std::string::npos ? node.op : node.op.substr(dot + 1);
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.domain = domain.c_str();
  view.op = op.c_str();
  view.inputs = in.data();
  view.outputs = out.data();
  view.attrs = attrs.data();
  view.input_count = static_cast<uint32_t>(in.size());
  view.output_count = static_cast<uint32_t>(out.size());
  view.attr_count = static_cast<uint32_t>(attrs.size());
  return host::NodeSpec(view);
}

host::GroupSpec GroupCase::spec() {
  host::GroupSpec group;
  for (const Node& node : nodes_) group.nodes.push_back(node_spec(node));
  const auto find = [&](const std::string& name) {
    for (const host::NodeSpec& node : group.nodes) {
      for (const auto* tensors : {&node.inputs, &node.outputs}) {
        for (const host::TensorSpec& tensor : *tensors) {
          if (tensor.id == id(name)) return tensor;
        }
      }
    }
    ADD_FAILURE() << name << " is of no node";
    return host::TensorSpec();
  };
  for (const std::string& name : outside_) group.inputs.push_back(find(name));
  for (const std::string& name : shown_) group.outputs.push_back(find(name));
  return group;
}

std::vector<GroupCase::Launch> GroupCase::launches_of_nodes(const host::KernelTable& table) {
  std::vector<Launch> all;
  for (const Node& node : nodes_) {
    const host::NodeSpec spec = node_spec(node);
    std::string reason;
    const host::KernelEntry* entry = table.match(spec, &reason);
    if (entry == nullptr) {
      ADD_FAILURE() << node.op << ": " << reason;
      continue;
    }
    Launch launch;
    launch.kernel = entry->make(spec);
    for (const std::string& name : node.inputs) {
      launch.in.push_back(name.empty() ? nullptr : values_.at(name).tensor());
    }
    for (const std::string& name : node.results) launch.out.push_back(values_.at(name).tensor());
    give_workspace(&launch);
    all.push_back(std::move(launch));
  }
  return all;
}

GroupCase::Launch GroupCase::launch_of_group(const host::KernelTable& table,
                                             const std::string& entry, bool in_place,
                                             std::string* refusal) {
  Launch launch;
  const auto& groups = table.groups();
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& group) { return group->name == entry; });
  if (found == groups.end()) {
    ADD_FAILURE() << "no group " << entry;
    return launch;
  }
  const host::GroupSpec group = spec();
  const std::string reason = (*found)->claim ? (*found)->claim(group) : "";
  if (refusal != nullptr) *refusal = reason;
  if (!reason.empty()) {
    if (refusal == nullptr) ADD_FAILURE() << entry << " is refused: " << reason;
    return launch;
  }
  launch.kernel = (*found)->make(group);
  for (const std::string& name : outside_) launch.in.push_back(values_.at(name).tensor());
  for (size_t k = 0; k < shown_.size(); ++k) {
    const int shared = in_place ? launch.kernel->in_place(static_cast<int>(k)) : -1;
    launch.out.push_back(shared >= 0 ? values_.at(outside_[static_cast<size_t>(shared)]).tensor()
                                     : values_.at(shown_[k]).tensor());
  }
  give_workspace(&launch);
  return launch;
}

void GroupCase::run(const host::KernelTable& table, const std::string& entry, bool in_place,
                    std::string* refusal) {
  draw();
  gr_error_t err = {};
  expected_.clear();
  actual_.clear();
  for (const Launch& launch : launches_of_nodes(table)) {
    ASSERT_EQ(launch.run(&err), GR_OK) << err.message;
  }
  for (const std::string& name : shown_) expected_[name] = values_.at(name).bytes();
  for (const Node& node : nodes_) {  // nothing may be taken from the first run
    for (const std::string& name : node.results) {
      values_.at(name).set_bytes(std::string(values_.at(name).bytes().size(), '\x7f'));
    }
  }
  const Launch launch = launch_of_group(table, entry, in_place, refusal);
  if (launch.kernel == nullptr) return;
  ASSERT_EQ(launch.run(&err), GR_OK) << err.message;
  for (size_t k = 0; k < shown_.size(); ++k) {
    const int shared = in_place ? launch.kernel->in_place(static_cast<int>(k)) : -1;
    const std::string& where = shared >= 0 ? outside_[static_cast<size_t>(shared)] : shown_[k];
    EXPECT_TRUE(values_.at(where).guard_is_whole()) << "wrote behind " << where;
    actual_[shown_[k]] = values_.at(where).bytes();
  }
}

void GroupCase::expect_same_bits() {
  for (const std::string& name : shown_) {
    const std::string &wanted = expected_.at(name), &got = actual_.at(name);
    const auto first = std::mismatch(wanted.begin(), wanted.end(), got.begin()).first;
    EXPECT_TRUE(wanted == got) << name << " of " << host::type_text(spec().outputs[0])
                               << " has other bits from byte " << first - wanted.begin();
  }
}

void GroupCase::expect_near(double relative, double absolute) {
  for (const std::string& name : shown_) {
    CaseTensor& value = values_.at(name);
    value.set_bytes(expected_.at(name));
    const std::vector<double> wanted = value.numbers();
    value.set_bytes(actual_.at(name));
    const std::vector<double> got = value.numbers();
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_LE(std::abs(got[k] - wanted[k]), absolute + relative * std::abs(wanted[k]))
          << name << "[" << k << "]: " << got[k] << ", one by one " << wanted[k];
    }
  }
}

}  // namespace gradrack::conformance
