// SPDX-License-Identifier: Apache-2.0
// Operator entry: Einsum, as products of matrices.
//
// Operands are joined from the left. Of two, labels that both have are batch axes where they are
// needed later, else they are summed by the product itself; a label that one has alone and nobody
// needs is summed before. So each step is one FusedMatMul of what is really left.
#include <algorithm>
#include <map>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// Labels are letters; the axes of an ellipsis get the characters from '0' on, its last axis '0'.
struct Equation {
  std::vector<std::string> operands;
  std::string output;
};

/// One term with its ellipsis written out for `rank` axes; a rank of -1: `ellipsis` axes.
Result<std::string> labels_of(const std::string& term, int64_t rank, size_t ellipsis) {
  std::string out;
  for (size_t k = 0; k < term.size(); ++k) {
    if (std::isalpha(static_cast<unsigned char>(term[k])) != 0) {
      out += term[k];
    } else if (term.compare(k, 3, "...") == 0) {
      const int64_t letters = static_cast<int64_t>(term.size()) - 3;
      const int64_t more = rank < 0 ? static_cast<int64_t>(ellipsis) : rank - letters;
      if (more < 0 || more > 9) return invalid_argument("'" + term + "' does not fit its operand");
      for (int64_t n = more; n-- > 0;) out += static_cast<char>('0' + n);
      k += 2;
    } else {
      return invalid_argument("the equation has '" + std::string(1, term[k]) + "' in '" + term +
                              "': wanted letters and '...'");
    }
  }
  if (rank >= 0 && static_cast<int64_t>(out.size()) != rank) {
    return invalid_argument("'" + term + "' names " + std::to_string(out.size()) +
                            " axes of an operand of rank " + std::to_string(rank));
  }
  return out;
}

/// Without an arrow: the ellipsis, then the letters that occur once, sorted.
std::string implied_output(const std::vector<std::string>& operands) {
  std::map<char, int> seen;
  for (const std::string& each : operands) {
    for (const char label : each) ++seen[label];
  }
  std::string digits, letters;
  for (const auto& [label, count] : seen) {
    if (std::isdigit(static_cast<unsigned char>(label)) != 0) digits.insert(digits.begin(), label);
    if (std::isalpha(static_cast<unsigned char>(label)) != 0 && count == 1) letters += label;
  }
  return digits + letters;
}

Result<Equation> parse(std::string text, const std::vector<size_t>& ranks) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  size_t ellipsis = 0;
  for (size_t k = 0; k < ranks.size(); ++k) {
    const size_t comma = left.find(',');
    const bool last = k + 1 == ranks.size();
    if (last != (comma == std::string::npos)) {
      return invalid_argument("equation '" + text + "' has another number of terms than the " +
                              std::to_string(ranks.size()) + " operands");
    }
    const std::string term = left.substr(0, comma);
    left = last ? "" : left.substr(comma + 1);
    GR_ASSIGN(const std::string labels, labels_of(term, static_cast<int64_t>(ranks[k]), 0));
    for (const char label : labels) {
      if (std::isdigit(static_cast<unsigned char>(label)) != 0) {
        ellipsis = std::max(ellipsis, static_cast<size_t>(label - '0') + 1);
      }
    }
    equation.operands.push_back(labels);
  }
  if (arrow == std::string::npos) {
    equation.output = implied_output(equation.operands);
  } else {
    GR_ASSIGN(equation.output, labels_of(text.substr(arrow + 2), -1, ellipsis));
  }
  return equation;
}

/// The dim of each label; a 1 of an ellipsis broadcasts.
Result<std::map<char, Dim>> dims_of(const Equation& equation, const std::vector<Shape>& shapes) {
  std::map<char, Dim> dims;
  for (size_t k = 0; k < shapes.size(); ++k) {
    for (size_t axis = 0; axis < shapes[k].size(); ++axis) {
      const char label = equation.operands[k][axis];
      const Dim& dim = shapes[k][axis];
      const auto [at, is_new] = dims.emplace(label, dim);
      const bool wide = std::isdigit(static_cast<unsigned char>(label)) != 0;
      if (is_new || at->second == dim || (wide && dim.is_one())) continue;
      if (!wide || !at->second.is_one()) {
        return invalid_argument("label '" + std::string(1, label) + "' is " + at->second.text() +
                                " and " + dim.text());
      }
      at->second = dim;
    }
  }
  for (const char label : equation.output) {
    if (dims.count(label) == 0 ||
        std::count(equation.output.begin(), equation.output.end(), label) != 1) {
      return invalid_argument("the output's label '" + std::string(1, label) +
                              "' must be one of the operands', once");
    }
  }
  return dims;
}

Status infer_einsum(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kReal));
  std::vector<Shape> shapes;
  std::vector<size_t> ranks;
  for (size_t k = 0; k < c.input_count(); ++k) {
    shapes.push_back(c.input(k).shape);
    ranks.push_back(shapes.back().size());
  }
  GR_ASSIGN(const Equation equation, parse(c.attrs().get_string("equation"), ranks));
  GR_ASSIGN(const auto dims, dims_of(equation, shapes));
  Shape out;
  for (const char label : equation.output) out.push_back(dims.at(label));
  c.set_output(0, {c.input(0).dtype, std::move(out)});
  return {};
}

/// A tensor whose axes have labels.
struct Labelled {
  ValueId value = GR_NO_VALUE;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// Sums the axes whose labels nobody needs.
Labelled summed(Emitter& e, Labelled x, const std::string& needed) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t k = 0; k < x.labels.size(); ++k) {
    if (has(needed, x.labels[k])) {
      kept += x.labels[k];
    } else {
      axes.push_back(static_cast<int64_t>(k));
    }
  }
  return {e.reduce_sum(x.value, axes, false), kept};
}

/// One axis for each label: of a label that occurs twice, the diagonal.
Labelled diagonal(Emitter& e, Labelled x) {
  for (size_t second = 0; second < x.labels.size(); ++second) {
    const size_t first = x.labels.find(x.labels[second]);
    if (first == second) continue;
    const size_t rank = x.labels.size();
    const auto a = static_cast<int64_t>(first), b = static_cast<int64_t>(second);
    const ValueId rows = places_along(e, dim_of(e, x.value, a), a, rank);
    const ValueId columns = places_along(e, dim_of(e, x.value, b), b, rank);
    const ValueId on = e.op("Equal", {rows, columns});
    const ValueId kept = e.where(on, x.value, e.like(x.value, 0.0));
    x.value = e.reduce_sum(kept, {b}, false);
    x.labels.erase(second, 1);
    return diagonal(e, std::move(x));
  }
  return x;
}

/// x with its axes in the order of `labels`; those it lacks become axes of 1.
ValueId arranged(Emitter& e, const Labelled& x, const std::string& labels) {
  std::vector<int64_t> perm, missing;
  for (size_t k = 0; k < labels.size(); ++k) {
    const size_t at = x.labels.find(labels[k]);
    if (at == std::string::npos) {
      missing.push_back(static_cast<int64_t>(k));
    } else {
      perm.push_back(static_cast<int64_t>(at));
    }
  }
  return e.unsqueeze(e.transpose(x.value, perm), missing);
}

/// [batch..., rest...] with the rest as one axis for rows and one for columns.
ValueId as_matrices(Emitter& e, ValueId x, size_t batch, size_t rows) {
  std::vector<ValueId> dims;
  for (size_t k = 0; k < batch; ++k) dims.push_back(dim_of(e, x, static_cast<int64_t>(k)));
  const auto product = [&](size_t first, size_t last) {
    ValueId size = e.ints({1});
    for (size_t k = first; k < last; ++k) {
      const ValueId dim = dim_of(e, x, static_cast<int64_t>(k));
      size = k == first ? dim : e.mul(size, dim);
    }
    return size;
  };
  dims.push_back(product(batch, batch + rows));
  dims.push_back(product(batch + rows, e.rank(x)));
  return e.op("Reshape", {x, shape_from(e, std::move(dims))}, {{"allowzero", int64_t{1}}});
}

/// The product of two, summed over the labels that `needed` lacks.
Labelled joined(Emitter& e, Labelled a, Labelled b, const std::string& needed) {
  a = summed(e, std::move(a), needed + b.labels);
  b = summed(e, std::move(b), needed + a.labels);
  std::string batch, inner, rows, columns;
  for (const char label : a.labels) {
    const bool both = has(b.labels, label);
    (both ? (has(needed, label) ? batch : inner) : rows) += label;
  }
  for (const char label : b.labels) {
    if (!has(a.labels, label)) columns += label;
  }
  const ValueId left = arranged(e, a, batch + rows + inner);
  const ValueId right = arranged(e, b, batch + inner + columns);
  const ValueId y = e.matmul(as_matrices(e, left, batch.size(), rows.size()),
                             as_matrices(e, right, batch.size(), inner.size()));
  std::vector<ValueId> dims;
  for (size_t k = 0; k < batch.size(); ++k) dims.push_back(dim_of(e, y, static_cast<int64_t>(k)));
  for (size_t k = 0; k < rows.size(); ++k) {
    dims.push_back(dim_of(e, left, static_cast<int64_t>(batch.size() + k)));
  }
  for (size_t k = 0; k < columns.size(); ++k) {
    dims.push_back(dim_of(e, right, static_cast<int64_t>(batch.size() + inner.size() + k)));
  }
  const std::string labels = batch + rows + columns;
  const Attrs zero_ok{{"allowzero", int64_t{1}}};
  const ValueId shape = dims.empty() ? e.ints({}) : shape_from(e, std::move(dims));
  return {e.op("Reshape", {y, shape}, zero_ok), labels};
}

void decompose_einsum(DecomposeContext& d) {
  Emitter& e = d.e();
  std::vector<size_t> ranks;
  for (size_t k = 0; k < d.input_count(); ++k) ranks.push_back(e.rank(d.input(k)));
  const auto equation = parse(d.attrs().get_string("equation"), ranks);
  if (!equation.ok()) return e.fail(equation.status());
  std::vector<std::string> needed(d.input_count(), equation->output);  // behind each operand
  for (size_t k = d.input_count() - 1; k-- > 0;) {
    needed[k] = needed[k + 1] + equation->operands[k + 1];
  }
  Labelled x = diagonal(e, {d.input(0), equation->operands[0]});
  for (size_t k = 1; k < d.input_count() && e.status().ok(); ++k) {
    x = joined(e, x, diagonal(e, {d.input(k), equation->operands[k]}), needed[k]);
  }
  x = summed(e, x, equation->output);
  const ValueId y = arranged(e, x, equation->output);
  d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
}

}  // namespace

Status add_einsum_ops(OpRegistry& ops) {
  OpDef op = define("Einsum", "Inputs*", "Output",
                    "The sum of products that `equation` names, as numpy's einsum: letters, '...', "
                    "repeated labels for diagonals, an output that may be implied.");
  op.attrs = {required_attr("equation", GR_ATTR_STRING)};
  op.infer = infer_einsum;
  op.decompose = decompose_einsum;
  return ops.add(std::move(op));
}

}  // namespace gradrack
