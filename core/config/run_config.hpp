// SPDX-License-Identifier: Apache-2.0
// RunConfig: a run file, typed and checked as far as the host alone can.
//
// Last step of config/. What belongs to a plugin stays as YAML entries until that plugin has been
// found (plugin/choose.hpp checks it against the declared options). Invariant: every host key is in
// its range and nothing in the file was passed over.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fallback.hpp"
#include "core/config/options.hpp"
#include "core/config/yaml.hpp"

namespace gradrack {

/// One rule over parameters: all conditions given must hold.
struct ParameterGroup {
  std::vector<std::string> match;  ///< name patterns; empty: any name
  std::optional<int64_t> rank;
  std::string stage;                 ///< stage pattern; empty: any
  std::string plugin;                ///< the optimizer of the chain that takes them; empty: any
  double max_grad_norm = 0;          ///< above 0: they are clipped by a norm of their own
  std::vector<YamlEntry> overrides;  ///< `lr` and the optimizer plugin's options
  Place place;
  std::string path;  ///< "optimizer.groups.0"
};

/// One entry of a section's chain.
struct PluginChoice {
  std::string name;
  Place place;                     ///< of the name
  std::string path;                ///< "optimizer", or "backend.1" in list form
  std::vector<YamlEntry> options;  ///< all keys but `plugin` and `groups`; host keys included
  std::shared_ptr<const OptionValues> host;  ///< host keys of the section, checked
  std::vector<ParameterGroup> groups;        ///< optimizer alone
  std::vector<PluginChoice> wrap;            ///< optimizer alone: what changes its steps, in order
  bool shares_options = false;               ///< options are common to several names of the chain
};

/// A section that holds plugins: first choice first.
struct PluginSection {
  std::string kind;
  std::vector<PluginChoice> chain;
  bool is_default = false;  ///< not in the file
};

/// What the run says of one of the model's objectives.
struct ObjectiveRule {
  std::string name;
  double weight = 1;
  int64_t every = 1;  ///< active in the steps (from 1) that it divides
  Place place;
};

/// Parameters that stay as they are from a step on: all conditions given must hold.
struct FreezeRule {
  std::vector<std::string> match;  ///< name patterns; empty: any name
  std::string stage;               ///< stage pattern; empty: any
  int64_t from_step = 1;           ///< the first step that leaves them alone
  Place place;
  std::string path;  ///< "run.freeze.0"
};

/// Weights to begin with.
struct InitFrom {
  std::string file;     ///< a run, a checkpoint or a safetensors file; empty: none
  std::string mapping;  ///< what brings its names to the model's (weight_mapping.hpp); empty: none
};

struct RunSection {
  std::string name;
  int64_t seed = 1;
  int64_t max_steps = 0;   ///< 0: of max_tokens, once the data is known
  int64_t max_tokens = 0;  ///< 0: max_steps says how long
  int64_t batch_size = 0;
  int64_t accumulate_steps = 1;
  int64_t eval_interval = 0;  ///< 0: at the end alone
  int64_t eval_batches = 0;   ///< 0: all
  int64_t log_interval = 10;
  std::string output;
  double max_grad_norm = 0;        ///< > 0; infinity: no clipping
  bool error_if_nonfinite = true;  ///< else a step without finite gradients is skipped
  bool undo = true;                ///< a failed step is undone
  std::string resume;              ///< "", "auto", "never", or a path
  InitFrom init_from;
  int64_t max_time_s = 0;  ///< 0: no limit
  int64_t plan_cache_limit = 0;
  std::vector<ObjectiveRule> objectives;  ///< those that the file names
  std::vector<FreezeRule> freeze;
};

/// Whose results the backward pass makes anew, to save memory.
enum class Recompute {
  kOff,
  kStages,  ///< those of every stage but the last
  kAuto     ///< no more than memory.limit asks for
};

/// What is saved to go on from, and how long it is kept.
struct CheckpointSection {
  int64_t interval = 0;   ///< updates; 0: at the end alone
  int64_t keep_last = 0;  ///< 0: all
  int64_t keep_best = 0;
  bool stop_on_error = false;
  int64_t grace_s = 0;  ///< 0: no limit
};

struct RunConfig {
  std::string file;
  YamlNode root;  ///< as resolved: included, merged, expanded, with --set applied
  RunSection run;
  std::vector<std::string> plugin_path;
  bool allow_writable_plugins = false;
  bool warn_of_duplicate_runtimes = false;  ///< else a library that brings one is refused
  std::string plugin_lock;                  ///< plugins.lock; empty: beside `file`, if it is there
  PluginSection model, data, optimizer, lr_schedule, precision, scheduler, backend;
  int64_t prefetch = 0;                       ///< data.prefetch
  int64_t data_workers = 1;                   ///< data.workers
  Fallback fallback = Fallback::kWarn;        ///< backend.fallback
  bool record = true;                         ///< backend.record
  bool fuse = true;                           ///< backend.fuse
  std::vector<std::string> fuse_left_out;     ///< patterns that it names
  bool auto_off = true;                       ///< scheduler.auto_off
  bool profile = true;                        ///< scheduler.profile
  std::optional<std::string> schedule_cache;  ///< scheduler.cache; absent: where the user's are
  CheckpointSection checkpoint;
  std::string metrics_file;        ///< relative to run.output
  PluginSection sinks;             ///< metrics.sinks: all of them; the chain may be empty
  int64_t previews = 0;            ///< pictures an evaluation
  int64_t trace_steps = 0;         ///< steps that are traced
  int64_t trace_from_step = 0;     ///< the first of them, from 1
  int64_t memory_limit_bytes = 0;  ///< 0: none
  Recompute recompute = Recompute::kAuto;
  std::vector<std::string> defaults;  ///< "precision: fp32", sections left out, for events

  /// Those that name one plugin or a chain of them: all but the sinks.
  std::array<const PluginSection*, 7> plugin_sections() const {
    return {&model, &data, &optimizer, &lr_schedule, &precision, &scheduler, &backend};
  }
};

/// Reads `path`, applies `sets` in order and checks. Errors are one line with place, key, got,
/// wanted; all of them exit with 2.
Result<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& sets);

/// As load_run_config, from text.
Result<RunConfig> parse_run_config(std::string_view text, const std::string& name,
                                   const std::vector<std::string>& sets = {});

/// `lr` of a chosen optimizer: the section's, before any group's override.
double base_lr(const PluginChoice& optimizer);

/// "512 MiB", "2GB", "1024" -> bytes.
Result<int64_t> parse_bytes(const std::string& text);

/// "90s", "45m", "1h30m" -> seconds > 0.
Result<int64_t> parse_duration(const std::string& text);

}  // namespace gradrack
