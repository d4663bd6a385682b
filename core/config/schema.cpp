// SPDX-License-Identifier: Apache-2.0
// The table of host keys: see schema.hpp.
#include "core/config/schema.hpp"

#include <cmath>

namespace gradrack {
namespace {

constexpr double kInf = INFINITY;
constexpr double kMostTraced = 1000;              // a trace is in memory until it is written
constexpr double kMostAhead = 64;                 // batches in memory at once
constexpr double kWholeMax = 9007199254740992.0;  // 2^53: ranges are doubles, so stay exact

gr_option_t row(const char* name, int32_t type, const char* default_text, double min, double max,
                const char* help, const char* choices = nullptr, uint32_t flags = 0) {
  if (default_text == nullptr) flags |= GR_OPTION_REQUIRED;
  return {sizeof(gr_option_t), flags, name, type, 0, default_text, min, max, choices, help};
}

gr_option_t count(const char* name, const char* default_text, double min, const char* help) {
  return row(name, GR_OPTION_INT, default_text, min, kWholeMax, help);
}

gr_option_t words(const char* name, const char* default_text, const char* help,
                  const char* choices = nullptr) {
  return row(name, GR_OPTION_STRING, default_text, -kInf, kInf, help, choices);
}

OptionTable run_keys() {
  return {
      words("name", "", "name of the run; the config file's name when empty"),
      count("seed", "1", 0, "seed of initial weights, batches and dropout"),
      // One of the two is given: run_config.cpp sees to it.
      count("max_steps", "0", 0, "optimizer updates to make; this or max_tokens"),
      count("max_tokens", "0", 0,
            "tokens to train on, in place of max_steps: as many updates as it takes to read them"),
      count("batch_size", nullptr, 1, "rows of a microbatch"),
      count("accumulate_steps", "1", 1, "microbatches an update"),
      count("eval_interval", "0", 0, "updates between two evaluations; 0: at the end alone"),
      count("eval_batches", "0", 0, "validation batches an evaluation; 0: all"),
      count("log_interval", "10", 1, "updates between two metric lines"),
      row("output", GR_OPTION_PATH, "", -kInf, kInf, "folder for results; runs/NAME when empty"),
      row("max_grad_norm", GR_OPTION_FLOAT, ".inf", 0, kInf,
          "gradients are scaled down to this global norm; .inf: no clipping", nullptr,
          GR_OPTION_MIN_EXCLUSIVE),
      row("error_if_nonfinite", GR_OPTION_BOOL, "true", -kInf, kInf,
          "a step whose loss or gradients are not finite ends the run; false: it is skipped, with "
          "a "
          "warning. With a loss scale, that decides"),
      words("resume", "",
            "auto: go on from the newest good checkpoint of output, if there is one; never: begin "
            "anew; a path: go on from that checkpoint or run; empty: begin anew, but not where a "
            "run has not come to its end"),
      words("max_time", "",
            "stop with a checkpoint after that time, to be started again: 90s, 45m, 1h30m; empty: "
            "no limit"),
      count("plan_cache_limit", "64", 1, "most plans that are kept; those used last stay"),
      row("undo", GR_OPTION_BOOL, "true", -kInf, kInf,
          "a step that fails leaves parameters, buffers and state as they were, at the price of "
          "memory for a copy of them"),
  };
}

std::vector<SectionSchema> make_schemas() {
  std::vector<SectionSchema> all;
  all.push_back({"run", "what to run and how long", false, nullptr, run_keys()});
  all.push_back({"plugins",
                 "where to look for plugins, and which of them to trust",
                 false,
                 "",
                 {row("path", GR_OPTION_STRING_LIST, "[]", -kInf, kInf,
                      "folders with plugin libraries, searched before the bundled ones"),
                  row("allow_writable", GR_OPTION_BOOL, "false", -kInf, kInf,
                      "load libraries and folders that other users can write"),
                  row("lock", GR_OPTION_PATH, "", -kInf, kInf,
                      "the lock that names the libraries which may be loaded; plugins.lock beside "
                      "this file when empty, if it is there"),
                  words("duplicate_runtimes", "refuse",
                        "a library with a second OpenMP, protobuf or CUDA runtime: refuse or warn",
                        "refuse|warn")}});
  all.push_back({"model", "builds the graph", true, nullptr, {}});
  all.push_back({"data",
                 "gives batches",
                 true,
                 nullptr,
                 {row("prefetch", GR_OPTION_INT, "0", 0, kMostAhead,
                      "training batches that are prepared ahead while steps run; 0: each when it "
                      "is needed"),
                  row("workers", GR_OPTION_INT, "1", 1, kMostAhead,
                      "threads that prepare them, where the source allows several")}});
  all.push_back({"optimizer",
                 "updates the parameters",
                 true,
                 nullptr,
                 {row("lr", GR_OPTION_FLOAT, nullptr, 0, 1e30, "base learning rate"),
                  row("ema_decay", GR_OPTION_FLOAT, "0", 0, 0.9999999,
                      "above 0: evaluation and saved weights read an average of the parameters, "
                      "d average + (1 - d) parameter at each update")}});
  all.push_back({"lr_schedule", "learning rate by update", true, "constant", {}});
  all.push_back({"precision", "dtype of each value", true, "fp32", {}});
  all.push_back(
      {"scheduler",
       "order and stream of each task",
       true,
       "sequential",
       {row("auto_off", GR_OPTION_BOOL, "true", -kInf, kInf,
            "program order on one stream where the plugin's answer is not predicted to be "
            "2 % faster"),
        row("profile", GR_OPTION_BOOL, "true", -kInf, kInf,
            "order by task times that are measured before the first step, where several streams "
            "are asked for"),
        row("cache", GR_OPTION_STRING, "auto", -kInf, kInf,
            "folder that keeps these times for the next run; auto: schedules in the user's cache "
            "folder; empty: they are not kept")}});
  all.push_back(
      {"backend",
       "runs the tasks; a chain is used per node, in order",
       true,
       "cpu|reference",
       {words("fallback", "warn",
              "a node or backend that falls to the next of the chain: allow (say so), warn, "
              "or strict (refuse)",
              "allow|warn|strict"),
        row("record", GR_OPTION_BOOL, "true", -kInf, kInf,
            "record a step's launches and replay them, on backends that can"),
        row("fuse", GR_OPTION_STRING_LIST, "true", -kInf, kInf,
            "run nodes that match a backend's patterns as one kernel: true, false, or the names of "
            "patterns to leave out")}});
  all.push_back({"checkpoint",
                 "what a run can go on from",
                 false,
                 "",
                 {count("interval", "0", 0, "updates between two checkpoints; 0: at the end alone"),
                  count("keep_last", "3", 0, "checkpoints that are kept, the newest; 0: all"),
                  count("keep_best", "1", 0,
                        "checkpoints that are kept besides, those with the lowest validation loss; "
                        "above 0 an evaluation that is the best so far saves one"),
                  words("on_error", "continue",
                        "a checkpoint that cannot be written: continue (say so) or stop the run",
                        "continue|stop"),
                  words("grace", "",
                        "time from the first stop signal to the end of the process, saved or not: "
                        "25s; empty: as long as it takes")}});
  all.push_back({"metrics",
                 "figures on disk",
                 false,
                 "",
                 {row("file", GR_OPTION_PATH, "metrics.jsonl", -kInf, kInf,
                      "one JSON object a line; relative to run.output"),
                  count("previews", "0", 0,
                        "pictures of predictions that the data plugin draws at each evaluation"),
                  row("trace_steps", GR_OPTION_INT, "0", 0, kMostTraced,
                      "steps whose tasks are timed: trace.json, and where their time went"),
                  count("trace_from_step", "2", 1, "the first step, counted from 1, to trace")}});
  all.push_back(
      {"memory",
       "memory of the plan",
       false,
       "",
       {words("limit", "", "most bytes that a plan may use: \"512 MiB\"; empty: no limit"),
        words("recompute", "auto",
              "results of the forward pass that the backward pass makes anew: off, those of every "
              "stage but the last (stages), or as little as brings the run under the limit (auto)",
              "off|stages|auto")}});
  return all;
}

}  // namespace

const std::vector<SectionSchema>& section_schemas() {
  static const std::vector<SectionSchema>* schemas = new std::vector<SectionSchema>(make_schemas());
  return *schemas;
}

const SectionSchema* find_section(std::string_view name) {
  for (const SectionSchema& section : section_schemas()) {
    if (name == section.name) return &section;
  }
  return nullptr;
}

const OptionTable& group_keys() {
  static const OptionTable* keys = new OptionTable{
      row("match", GR_OPTION_STRING_LIST, "[]", -kInf, kInf,
          "patterns of parameter names (* and ?); one that fits is enough"),
      count("rank", "0", 1, "number of dims of the parameter"),
      words("stage", "", "pattern of the stage's dotted name"),
      words("plugin", "", "leaves them to this optimizer of the chain"),
      row("max_grad_norm", GR_OPTION_FLOAT, ".inf", 0, kInf,
          "their gradients are scaled down to this norm of their own; .inf: not at all", nullptr,
          GR_OPTION_MIN_EXCLUSIVE),
  };
  return *keys;
}

const OptionTable& objective_keys() {
  static const OptionTable* keys = new OptionTable{
      row("weight", GR_OPTION_FLOAT, "1", 0, 1e30, "factor of its mean in the loss"),
      count("every", "1", 1, "active in the steps, counted from 1, that this number divides"),
  };
  return *keys;
}

const OptionTable& freeze_keys() {
  static const OptionTable* keys = new OptionTable{
      row("match", GR_OPTION_STRING_LIST, "[]", -kInf, kInf,
          "patterns of parameter names (* and ?); one that fits is enough"),
      words("stage", "", "pattern of the stage's dotted name"),
      count("from_step", "1", 1, "the first step, counted from 1, that leaves them as they are"),
  };
  return *keys;
}

const OptionTable& init_from_keys() {
  static const OptionTable* keys = new OptionTable{
      words("file", nullptr, "a run, a checkpoint or a safetensors file"),
      words("mapping", "",
            "the mapping file that says how its names are those of the model; empty: they are"),
  };
  return *keys;
}

const OptionTable& mapping_keys() {
  static const OptionTable* keys = new OptionTable{
      words("optional_prefix", "", "names in a file may lack it"),
      row("ignore", GR_OPTION_STRING_LIST, "[]", -kInf, kInf,
          "patterns of tensors of a file (* and ?) that are no weights"),
  };
  return *keys;
}

const OptionTable& mapping_rule_keys() {
  static const OptionTable* keys = new OptionTable{
      words("file", nullptr, "the tensor's name in the file"),
      row("model", GR_OPTION_STRING_LIST, nullptr, -kInf, kInf,
          "the weight's name in the model, or a list of names"),
      row("transpose", GR_OPTION_BOOL, "false", -kInf, kInf,
          "rows in the file are columns in the model"),
      count("split", "0", 0,
            "axis of the file's tensor along which the weights of a list lie side by side"),
  };
  return *keys;
}

std::vector<std::string> option_names(const OptionTable& table) {
  std::vector<std::string> names;
  for (const gr_option_t& option : table) names.push_back(option.name);
  return names;
}

}  // namespace gradrack
