// SPDX-License-Identifier: Apache-2.0
// ONNX files: reading, folding, and building the graph with the host's own builder.
//
// Mutations know the wire format: fields are removed, doubled, moved, their numbers and texts
// changed, and lengths made right again, so that most inputs get past the reader.
#include <algorithm>
#include <cstring>
#include <random>

#include "core/graph/builder_api.hpp"
#include "plugins/models/onnx/facts.hpp"
#include "plugins/models/onnx/importer.hpp"
#include "tests/fuzz/files/input.hpp"
#include "tests/fuzz/files/wire_tree.hpp"

namespace {

using namespace gradrack::onnx;

void import_all(const Model& model, const Roles& roles) {
  gradrack::Graph graph;
  gradrack::BuilderApi api(graph);
  GraphBuilder builder(api.builder());
  Importer importer(model, builder, {true, true, true});
  for (const ValueMessage& input : model.inputs) {
    std::vector<gradrack::sdk::Dim> dims;
    for (const DimMessage& dim : input.dims) {
      if (dim.has_value) {
        dims.emplace_back(dim.value);
      } else {
        dims.emplace_back("n");
      }
    }
    importer.define(input.name, builder.input(("in " + input.name).c_str(),
                                              host_dtype(input.type, "input"), dims));
  }
  for (const auto& [name, tensor] : model.tensors) importer.define(name, tensor);
  for (size_t k = 0; k < model.nodes.size(); ++k) {
    if (roles.needed[k]) importer.add(model.nodes[k]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const gradrack::fuzz::InputFile file(data, size);
  gradrack::fuzz::refuse_or_read([&] {
    const Model model = load_model(file.path(), "file");
    const Roles roles = settle_roles(model, Settings{});
    (void)facts_of(model, roles);
    import_all(model, roles);
  });
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::minstd_rand random(seed);
  if (random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  gradrack::fuzz::WireTree tree(bytes);
  for (unsigned k = 0; k <= random() % 4; ++k) tree.mutate(random);
  const std::string out = tree.bytes();
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
