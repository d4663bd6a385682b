// SPDX-License-Identifier: Apache-2.0
// `gradrack export`: see export_model.hpp.
#include "core/train/export_model.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "core/base/text.hpp"
#include "core/data/feed.hpp"
#include "core/device/convert.hpp"
#include "core/graph/replay.hpp"
#include "core/rewrite/simplify.hpp"
#include "core/state/run_folder.hpp"
#include "core/train/fold_weights.hpp"
#include "core/train/mapped_weights.hpp"
#include "core/train/model_graph.hpp"
#include "core/train/weights.hpp"
#include "core/train/written_model.hpp"

namespace gradrack {

namespace {

namespace fs = std::filesystem;

/// The saved ones, in the dtypes of the graph.
Result<HostTensors> saved_weights(const std::string& path, const Graph& graph) {
  GR_ASSIGN(const std::string file_name, find_weights(path));
  GR_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(file_name));
  HostTensors tensors;
  for (const Value& value : graph.values()) {
    if (!is_weight(value.source)) continue;
    const SafetensorsEntry* const entry = file.find(value.name);
    GR_ASSIGN(const std::vector<int64_t> dims, bind(value.type.shape, {}));
    if (entry == nullptr || entry->shape != dims) {
      return invalid_argument(
          fmt::format("{}: {} '{}' as the model has it: is it the weights of "
                      "another configuration?",
                      file_name, entry == nullptr ? "lacks" : "does not have", value.name));
    }
    const auto bytes = file.bytes(*entry);
    HostTensor tensor{value.type.dtype, dims, {bytes.begin(), bytes.end()}};
    if (entry->dtype != tensor.dtype) {
      GR_ASSIGN(tensor.bytes, convert_numbers(bytes, entry->dtype, tensor.dtype));
    }
    tensors[value.name] = std::move(tensor);
  }
  return tensors;
}

/// Those of somebody else's file, in the dtypes of the graph.
Result<HostTensors> mapped_weights(const InitFrom& from, Session& session,
                                   const PluginChoice& model, const Graph& graph) {
  std::vector<WantedWeight> weights;
  for (const Value& value : graph.values()) {
    if (!is_weight(value.source)) continue;
    GR_ASSIGN(std::vector<int64_t> dims, bind(value.type.shape, {}));
    weights.push_back({value.name, value.type.dtype, std::move(dims)});
  }
  HostTensors tensors;
  const auto take = [&](const WantedWeight& weight, const HostTensor& content) -> Status {
    HostTensor tensor{weight.dtype, weight.dims, content.bytes};
    if (content.dtype != weight.dtype) {
      GR_ASSIGN(tensor.bytes, convert_numbers(content.bytes, content.dtype, weight.dtype));
    }
    tensors[weight.name] = std::move(tensor);
    return {};
  };
  GR_TRY(read_by_mapping(from, session, model, weights, take));
  return tensors;
}

Result<HostTensors> weights_of(Session& session, const ExportRequest& request,
                               const Chosen<gr_model_t>& model, const Graph& graph) {
  if (request.initial) {
    const RunSection& run = session.config.run;
    if (run.init_from.file.empty()) {
      return initial_weights(model.instance, graph, static_cast<uint64_t>(run.seed));
    }
    if (run.init_from.mapping.empty()) return saved_weights(run.init_from.file, graph);
    return mapped_weights(run.init_from, session, *model.choice, graph);
  }
  const bool folder = fs::is_directory(request.run);
  const std::string run = folder ? request.run : session.config.run.output;
  return saved_weights(request.weights.empty() ? run : request.weights, graph);
}

Result<const gr_model_writer_t*> find_writer(PluginRegistry& plugins, const std::string& format) {
  std::vector<std::string> formats = {"safetensors"};
  for (const Library* library : plugins.libraries()) {
    if (library->get_extension == nullptr) continue;
    const void* const found = library->get_extension(GR_EXT_MODEL_WRITER);
    const auto* const writer = static_cast<const gr_model_writer_t*>(found);
    if (writer == nullptr) continue;
    if (!GR_HAS(writer, write) || writer->takes == nullptr || writer->write == nullptr) {
      return invalid_argument(library->path + ": its gr.model_writer/1 lacks a function")
          .in_area(Area::kPlugin);
    }
    if (format == writer->format) return writer;
    formats.push_back(writer->format);
  }
  return not_found("no plugin writes the format '" + format + "'" + did_you_mean(format, formats) +
                   "; there are: " + join(formats))
      .in_area(Area::kPlugin);
}

/// Without what only training needs, and in operators that the format has at that version.
Result<Graph> in_words_of(const Graph& model, const gr_model_writer_t& writer, int64_t version) {
  Status refused;
  const auto missing = [&](const Node& node) {
    gr_error_t err = {};
    const int32_t code =
        writer.takes(node.op->domain.c_str(), node.op->name.c_str(), version, &err);
    if (code == GR_OK) return false;
    const bool parts = code == GR_UNSUPPORTED && node.op->decompose != nullptr;
    if (!parts && refused.ok()) refused = status_from(code, err).in_area(Area::kConfig);
    return parts;
  };
  Graph graph = model;
  graph.drop_writes();
  graph.keep_objectives([](const Objective&) { return false; });
  GR_ASSIGN(graph, simplify(graph));
  GR_ASSIGN(graph, decompose_where(graph, missing));
  GR_TRY(std::move(refused));
  return simplify(graph);
}

Status write_by(const gr_model_writer_t& writer, const WrittenModel& model, int64_t version,
                const std::string& path) {
  const std::string temporary = path + ".part";
  std::error_code error;
  fs::remove(temporary, error);
  gr_error_t err = {};
  GR_TRY(status_from(writer.write(model.table(), version, temporary.c_str(), &err), err));
  fs::rename(temporary, path, error);
  if (error) return io_error(path + ": " + error.message());
  return {};
}

Status export_graph(Session& session, const ExportRequest& request,
                    const Instance<gr_model_t>& model, const Graph& built,
                    const HostTensors& weights) {
  GR_ASSIGN(const gr_model_writer_t* writer, find_writer(*session.plugins, request.format));
  const int64_t version = request.version != 0 ? request.version : writer->version;
  GR_ASSIGN(const FoldedWeights folded, fold_weights(session, built, weights));
  GR_ASSIGN(const Graph graph, in_words_of(folded.graph, *writer, version));
  GR_ASSIGN(const std::vector<ModelFact> facts, model_facts(model));
  const std::string& name = session.config.run.name;
  GR_ASSIGN(const std::unique_ptr<WrittenModel> written,
            WrittenModel::make(graph, folded.weights, name.empty() ? model.name() : name, facts));
  GR_TRY(write_by(*writer, *written, version, request.output));
  std::fputs(fmt::format("{}: {} nodes, {} outputs, version {}\n", request.output,
                         graph.nodes().size(), graph.outputs().size(), version)
                 .c_str(),
             stdout);
  return {};
}

/// Real tensors as `wanted`.
Status convert_all(gr_dtype_t wanted, EventSink& events, HostTensors* tensors) {
  std::map<gr_dtype_t, size_t> casts;
  for (auto& [name, tensor] : *tensors) {
    if (!is_real(tensor.dtype) || tensor.dtype == wanted) continue;
    GR_ASSIGN(tensor.bytes, convert_numbers(tensor.bytes, tensor.dtype, wanted));
    ++casts[tensor.dtype];
    tensor.dtype = wanted;
  }
  for (const auto& [from, count] : casts) emit_cast(from, wanted, count, events);
  return {};
}

/// `weights` under their own names, or under those of a mapping.
Status export_tensors(Session& session, const ExportRequest& request, const PluginChoice& model,
                      HostTensors weights) {
  TextMap metadata;
  if (!request.mapping.empty()) {
    GR_ASSIGN(const WeightMapping mapping, mapping_for(request.mapping, session, model));
    GR_ASSIGN(weights, as_in_file(mapping, weights));
    metadata.insert(mapping.metadata.begin(), mapping.metadata.end());
  }
  if (!request.dtype.empty()) {
    GR_ASSIGN(const gr_dtype_t wanted, real_dtype_named(request.dtype));
    GR_TRY(convert_all(wanted, session.events, &weights));
  }
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, tensor] : weights) {
    tensors.push_back({name, tensor.dtype, tensor.dims, tensor.bytes.data()});
  }
  const size_t count = tensors.size();
  GR_TRY(write_safetensors(request.output, std::move(tensors), metadata));
  std::fputs(fmt::format("{}: {} tensors\n", request.output, count).c_str(), stdout);
  return {};
}

/// What only one format has.
Status check_request(const ExportRequest& request) {
  if (!request.dtype.empty())
    GR_TRY(real_dtype_named(request.dtype).status().with_context("--dtype"));
  if (request.format == "safetensors" || (request.mapping.empty() && request.dtype.empty())) {
    return {};
  }
  return invalid_argument(std::string(request.mapping.empty() ? "--dtype" : "--mapping") +
                          ": is for --format safetensors, got --format " + request.format);
}

}  // namespace

std::string config_of_run(const std::string& run) {
  return fs::is_directory(run) ? run + "/config.yaml" : run;
}

Status run_export(Session& session, const ExportRequest& request) {
  GR_TRY(check_request(request));
  const RunConfig& config = session.config;
  GR_ASSIGN(const Chosen<gr_data_t> data,
            choose<gr_data_t>(*session.plugins, config.data, session.events));
  GR_ASSIGN(const Chosen<gr_model_t> model,
            choose<gr_model_t>(*session.plugins, config.model, session.events));
  GR_ASSIGN(const Feed feed, Feed::make(data.instance.table(), data.instance.name(), 1));
  GR_ASSIGN(const Graph graph, build_model(model.instance, GraphUse::kExport, &feed.info()));
  GR_ASSIGN(HostTensors weights, weights_of(session, request, model, graph));
  if (request.format == "safetensors") {
    return export_tensors(session, request, *model.choice, std::move(weights));
  }
  return export_graph(session, request, model.instance, graph, weights);
}

}  // namespace gradrack
