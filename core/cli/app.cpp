// SPDX-License-Identifier: Apache-2.0
// The command line: see app.hpp. The one wall around CLI11's exceptions.
#include "core/cli/app.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/exit_codes.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/cli/checkpoint_command.hpp"
#include "core/cli/config_command.hpp"
#include "core/cli/doctor.hpp"
#include "core/cli/list_commands.hpp"
#include "core/cli/new_plugin.hpp"
#include "core/cli/plugin_files.hpp"
#include "core/cli/report_command.hpp"
#include "core/cli/simulate_command.hpp"
#include "core/plugin/host_table.hpp"
#include "core/train/commands.hpp"
#include "core/train/export_model.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {
namespace {

/// What the words said; filled while parsing.
struct Arguments {
  SessionRequest session;
  std::string log_format = "text";
  bool quiet = false;
  TrainRequest train;
  ExplainRequest explain;
  EvalRequest eval;
  BenchRequest bench;
  SampleRequest sample;
  InspectDataRequest inspect_data;
  std::string plugin_name;
  NewPluginRequest new_plugin;
  bool load_all = false;
  std::string manifest_output;
  std::string lock_file;
  bool markdown = false;
  SimulateRequest simulate;
  ReportRequest report;
  bool resolved = false;
  ConvertRequest convert;
  ExportRequest export_run;
  InspectModelRequest inspect_model;
  std::string resume, max_time;
  std::optional<StopSignals> stops;  ///< of a command with a run, to the end of its output
  std::function<Status()> command;   ///< of the sub-command given
};

Status with_session(Arguments& arguments, const std::function<Status(Session&)>& run) {
  arguments.stops.emplace();
  GR_ASSIGN(const std::unique_ptr<Session> session, open_session(arguments.session));
  return run(*session);
}

Status with_registry(const Arguments& arguments,
                     const std::function<Status(PluginRegistry&, EventSink&)>& run,
                     std::optional<LockFile> lock = std::nullopt) {
  EventSink events;
  events.add(log_event);
  LoadPolicy policy;
  policy.allow_writable = arguments.session.allow_writable_plugins;
  policy.lock = std::move(lock);
  PluginRegistry registry(search_folders(arguments.session.plugin_path, {}, events), events,
                          std::move(policy));
  return run(registry, events);
}

constexpr const char* kLockName = "plugins.lock";

Status run_lock(Arguments& arguments) {
  if (arguments.session.config_path.empty()) {
    const std::string file = arguments.lock_file.empty() ? kLockName : arguments.lock_file;
    return with_registry(arguments, [&file](PluginRegistry& registry, EventSink&) {
      return write_lock(registry, nullptr, file);
    });
  }
  arguments.session.ignore_lock = true;
  return with_session(arguments, [&arguments](Session& session) {
    std::string file = arguments.lock_file;
    if (file.empty()) file = lock_path_of(session.config);
    if (file.empty()) file = (std::filesystem::path(session.config.file).parent_path() / kLockName);
    return write_lock(*session.plugins, &session.config, file);
  });
}

Status run_verify(Arguments& arguments) {
  if (arguments.session.config_path.empty()) {
    GR_ASSIGN(LockFile lock,
              load_lock_file(arguments.lock_file.empty() ? kLockName : arguments.lock_file));
    return with_registry(
        arguments, [](PluginRegistry& registry, EventSink&) { return verify_lock(registry); },
        std::move(lock));
  }
  if (!arguments.lock_file.empty()) {
    arguments.session.sets.push_back("plugins.lock=" + yaml_quoted(arguments.lock_file));
  }
  return with_session(arguments, [](Session& session) {
    if (session.plugins->policy().lock) return verify_lock(*session.plugins);
    return not_found("there is no plugins.lock beside " + session.config.file +
                     ": `gradrack plugins lock " + session.config.file + "` writes one")
        .in_area(Area::kConfig);
  });
}

// Options of `train` are keys of the run file, and win over it and over --set.
void set_run_keys(Arguments& arguments) {
  const auto set = [&](const char* key, const std::string& text) {
    if (!text.empty()) arguments.session.sets.push_back(key + ("=" + yaml_quoted(text)));
  };
  set("run.resume", arguments.resume);
  set("run.max_time", arguments.max_time);
}

Status run_validate(Session& session) {
  GR_ASSIGN(const std::vector<Selection> selections, validate_session(session));
  for (const Selection& selection : selections) {
    std::printf("%-12s %s %s (%s)\n", selection.factory->kind.c_str(),
                selection.factory->name.c_str(), selection.factory->version.c_str(),
                selection.factory->library.c_str());
  }
  std::printf("%s is valid\n", session.config.file.c_str());
  return {};
}

CLI::App* add_command(CLI::App& app, Arguments& arguments, const char* name, const char* help,
                      const std::function<Status()>& command) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->fallthrough();  // options of the program may stand after the command
  sub->callback([&arguments, command] { arguments.command = command; });
  return sub;
}

CLI::App* add_run_command(CLI::App& app, Arguments& arguments, const char* name, const char* help,
                          const std::function<Status(Session&)>& run) {
  CLI::App* sub = add_command(app, arguments, name, help, [&arguments, run] {
    set_run_keys(arguments);
    return with_session(arguments, run);
  });
  sub->add_option("config", arguments.session.config_path, "the run file")->required();
  sub->add_option("--set", arguments.session.sets, "KEY=VALUE over the run file; repeatable")
      ->allow_extra_args(false);
  return sub;
}

void add_run_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* train = add_run_command(
      app, arguments, "train", "train the model of a run file",
      [&arguments](Session& session) { return run_train(session, arguments.train); });
  train->add_option("--resume", arguments.resume,
                    "auto: go on from the newest good checkpoint; never: begin anew; PATH: a "
                    "checkpoint or a run (run.resume)");
  train->add_option("--max-time", arguments.max_time,
                    "stop after 90s, 45m, 1h30m with a checkpoint and exit code 75 (run.max_time)");
  train->add_flag("--strict-plans", arguments.train.strict_plans,
                  "fail when a plan has to be made after step 1 has begun");
  train->add_flag("--fresh-plans", arguments.train.fresh_plans,
                  "make every plan anew in each step: slow, to find out whether one that is used "
                  "again does the same");
  add_run_command(app, arguments, "validate",
                  "check a run file and its plugins, without reading data", run_validate);
  CLI::App* explain = add_run_command(
      app, arguments, "explain", "say what would run where and how much memory it takes",
      [&arguments](Session& session) { return run_explain(session, arguments.explain); });
  explain->add_flag("--order", arguments.explain.order, "print each task too");
  explain->add_flag("--plans", arguments.explain.plans,
                    "print what decides each plan, and what the cache did");
  explain->add_flag("--graph", arguments.explain.graph,
                    "print each plan's graph as it runs: nodes after precision and lowering");
  CLI::App* eval =
      add_run_command(app, arguments, "eval", "loss of saved weights on the validation split",
                      [&arguments](Session& session) { return run_eval(session, arguments.eval); });
  eval->add_option("--checkpoint", arguments.eval.checkpoint,
                   "folder or safetensors file; default: run.output");
  eval->add_option("--mapping", arguments.eval.mapping,
                   "names of the checkpoint's file are those of others: gpt2.yaml, or ./FILE");
  CLI::App* bench = add_run_command(
      app, arguments, "bench", "how long a step takes, and what of it takes how long",
      [&arguments](Session& session) { return run_bench(session, arguments.bench); });
  bench->add_option("--steps", arguments.bench.steps, "steps timed whole (default 20)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  bench->add_option("--warmup", arguments.bench.warmup, "steps before them (default 3)")
      ->check(CLI::NonNegativeNumber);
  bench->add_option("--timed", arguments.bench.timed, "steps timed by operator (default 5)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  bench->add_flag("--json", arguments.bench.json, "one JSON object");
  CLI::App* sample = add_run_command(
      app, arguments, "sample", "let saved weights write text",
      [&arguments](Session& session) { return run_sample(session, arguments.sample); });
  sample->add_option("--checkpoint", arguments.sample.checkpoint,
                     "folder or safetensors file; default: run.output");
  sample->add_option("--mapping", arguments.sample.mapping,
                     "names of the checkpoint's file are those of others: gpt2.yaml, or ./FILE");
  sample->add_option("--prompt", arguments.sample.prompt, "text to begin with");
  sample->add_option("--tokens", arguments.sample.tokens, "tokens to add (default 200)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  sample
      ->add_option("--temperature", arguments.sample.temperature,
                   "0: the likeliest token always (default 1)")
      ->check(CLI::Range(0.0, 1e6));
  sample->add_option("--top-k", arguments.sample.top_k, "draw from the k likeliest; 0: from all")
      ->check(CLI::NonNegativeNumber);
  sample->add_option("--seed", arguments.sample.seed, "seed of the draws (default 1)");
}

void add_new_command(CLI::App& plugins, Arguments& arguments) {
  CLI::App* sub = add_command(
      plugins, arguments, "new", "write a folder with a small plugin to change", [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink&) {
          return new_plugin(registry, arguments.new_plugin);
        });
      });
  sub->add_option("kind", arguments.new_plugin.kind, "optimizer, model, ...: below")->required();
  sub->add_option("name", arguments.new_plugin.name, "its name in run files")->required();
  sub->add_option("--lang", arguments.new_plugin.language, "c, cpp (default) or rust");
  sub->add_option("--into", arguments.new_plugin.into, "folder to write; default: NAME");
  sub->footer([] { return "Kinds and their languages:\n" + template_table(); });
}

void add_lock_commands(CLI::App& plugins, Arguments& arguments) {
  const auto add = [&](const char* name, const char* help, Status (*run)(Arguments&)) {
    CLI::App* sub =
        add_command(plugins, arguments, name, help, [&arguments, run] { return run(arguments); });
    sub->add_option("config", arguments.session.config_path,
                    "a run file: its plugins, its lock; without one: all in reach");
    sub->add_option("--file", arguments.lock_file,
                    "the lock; default: beside the run file, else ./plugins.lock");
  };
  add("lock", "write down by hash which plugin libraries may be loaded", run_lock);
  add("verify", "compare the libraries in reach with a lock", run_verify);
  CLI::App* manifest = add_command(
      plugins, arguments, "manifest", "write the manifest of a plugin library", [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink&) {
          return write_manifest(arguments.plugin_name, arguments.manifest_output, registry);
        });
      });
  manifest->add_option("library", arguments.plugin_name, "path of the library")->required();
  manifest->add_option("--output", arguments.manifest_output,
                       "file to write; default: NAME.plugin.yaml beside the library");
}

void add_list_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* plugins = app.add_subcommand("plugins", "what is there to be named in a run file");
  plugins->fallthrough();
  plugins->require_subcommand(1);
  CLI::App* list = add_command(
      *plugins, arguments, "list", "every plugin found, and every library refused", [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink&) {
          return list_plugins(registry, arguments.load_all);
        });
      });
  list->add_flag("--load", arguments.load_all,
                 "load every library: say also what cannot work on this machine");
  add_lock_commands(*plugins, arguments);
  CLI::App* inspect = add_command(
      *plugins, arguments, "inspect", "a plugin's options with types, defaults and ranges",
      [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink&) {
          return inspect_plugin(registry, arguments.plugin_name);
        });
      });
  inspect->add_option("name", arguments.plugin_name, "NAME, KIND/NAME, or the path of a library")
      ->required();
  add_new_command(*plugins, arguments);
  CLI::App* ops = add_command(
      app, arguments, "ops", "every operator: gradient, decomposition, backends", [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink& events) {
          return list_operators(registry, events, arguments.markdown);
        });
      });
  ops->add_flag("--markdown", arguments.markdown, "the text of docs/operators.md");
}

void add_data_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* data = app.add_subcommand("data", "what a run learns from");
  data->fallthrough();
  data->require_subcommand(1);
  InspectDataRequest& request = arguments.inspect_data;
  CLI::App* inspect =
      add_run_command(*data, arguments, "inspect", "the first batches, as text and shapes",
                      [&request](Session& session) { return run_inspect_data(session, request); });
  inspect->add_option("--batches", request.batches, "batches to show (default 1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  inspect->add_option("--rows", request.rows, "rows of each to show, at most (default 4)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  inspect->add_option("--first", request.first, "number of the first batch, from 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 52));
  inspect->add_flag("--validation", request.validation, "of the validation split");
}

void add_simulate_command(CLI::App& app, Arguments& arguments) {
  SimulateRequest& request = arguments.simulate;
  CLI::App* sub = add_command(
      app, arguments, "simulate", "run a scheduler on a task table and say what it comes to",
      [&arguments] {
        return with_registry(arguments, [&arguments](PluginRegistry& registry, EventSink&) {
          return run_simulate(registry, arguments.simulate);
        });
      });
  sub->add_option("table", request.table, ".json, .csv: tasks; .yaml: a recipe for them")
      ->required();
  sub->add_option("--scheduler", request.scheduler, "a scheduler plugin");
  sub->add_option("--order", request.order, "an order that the host brings along: below");
  sub->add_option("--set", request.sets, "KEY=VALUE, an option of either; repeatable")
      ->allow_extra_args(false);
  sub->add_option("--recipe", request.recipe_sets,
                  "KEY=VALUE over the recipe, as pipeline.stages=4; repeatable")
      ->allow_extra_args(false);
  sub->add_option("--streams", request.streams, "of every device; default: the table's")
      ->check(CLI::Range(int64_t{1}, int64_t{64}));
  sub->add_option("--memory-limit", request.memory_limit,
                  "of every device, as 512MiB; default: the table's");
  sub->add_option("--html", request.html, "write figures and timeline as a page");
  sub->add_option("--svg", request.svg, "write the timeline as a picture");
  sub->add_option("--trace", request.trace, "write it for chrome://tracing or Perfetto");
  sub->add_option("--write-table", request.write_table, "write the table as JSON, every task");
  sub->add_flag("--json", request.json, "the figures as one JSON object");
  sub->footer([] { return "Orders:\n" + order_table(); });
}

void add_config_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* config = app.add_subcommand("config", "run files, for people and for editors");
  config->fallthrough();
  config->require_subcommand(1);
  CLI::App* show = add_run_command(
      *config, arguments, "show", "print a run file with includes, variables and --set resolved",
      [&arguments](Session& session) { return show_config(session, arguments.resolved); });
  show->add_flag("--resolved", arguments.resolved, "with every default, also of the plugins");
  add_command(*config, arguments, "schema", "print the JSON schema of run files, for editors",
              [&arguments] { return with_registry(arguments, print_schema); });
}

void add_look_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* report =
      add_command(app, arguments, "report", "write a page about a run: curves, streams, memory",
                  [&arguments] { return run_report(arguments.report); });
  report->add_option("run", arguments.report.folder, "the folder that run.output named")
      ->required();
  report->add_option("--output", arguments.report.output,
                     "file to write; default: report.html in the folder");
  report->add_option("--metrics", arguments.report.metrics_file,
                     "name of the metrics file in the folder (default metrics.jsonl)");
  add_command(app, arguments, "doctor", "machine, limits and plugins, and what may be in the way",
              [&arguments] {
                return with_registry(arguments, [](PluginRegistry& registry, EventSink&) {
                  return run_doctor(registry);
                });
              });
}

void add_checkpoint_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* group = app.add_subcommand("checkpoint", "what lies in a run's checkpoints");
  group->fallthrough();
  group->require_subcommand(1);
  std::string& path = arguments.convert.path;
  const auto add = [&](const char* name, const char* help, const std::function<Status()>& run) {
    CLI::App* sub = add_command(*group, arguments, name, help, run);
    sub->add_option("path", path, "a checkpoint, a run folder, or a folder of checkpoints")
        ->required();
    return sub;
  };
  add("list", "a line each, as their manifests say",
      [&path] { return list_run_checkpoints(path); });
  add("verify", "read every byte against the manifests",
      [&path] { return verify_run_checkpoints(path); });
  add("show", "numbers and tensors of the newest", [&path] { return show_checkpoint(path); });
  CLI::App* convert = add("convert", "write its weights as one safetensors file",
                          [&arguments] { return convert_checkpoint(arguments.convert); });
  convert->add_option("output", arguments.convert.output, "the file to write")->required();
  convert->add_option("--dtype", arguments.convert.dtype, "of floating tensors: F32, F64, BF16")
      ->check(CLI::IsMember({"F32", "F64", "BF16"}));
  convert->add_flag("--raw", arguments.convert.raw,
                    "parameters as training has them, not the averages that stand for them");
}

void add_export_command(CLI::App& app, Arguments& arguments) {
  ExportRequest& request = arguments.export_run;
  CLI::App* sub = add_command(
      app, arguments, "export", "write a run's model as a file for others", [&arguments, &request] {
        arguments.session.config_path = config_of_run(request.run);
        return with_session(arguments,
                            [&request](Session& session) { return run_export(session, request); });
      });
  sub->add_option("run", request.run, "a run folder, or a run file")->required();
  sub->add_option("--format", request.format, "onnx (default), safetensors, or another plugin's");
  sub->add_option("--output", request.output, "the file to write")->required();
  sub->add_option("--opset", request.version, "version of the format's operators");
  sub->add_option("--weights", request.weights,
                  "a safetensors file, a checkpoint or a run; default: the run's");
  sub->add_flag("--initial", request.initial, "the weights that the run begins with");
  sub->add_option("--mapping", request.mapping,
                  "safetensors: names and layout of others, such as gpt2.yaml or ./FILE");
  sub->add_option("--dtype", request.dtype, "safetensors: F32, F64, BF16 or F16");
  sub->add_option("--set", arguments.session.sets, "KEY=VALUE over the run file; repeatable")
      ->allow_extra_args(false);
}

void add_onnx_commands(CLI::App& app, Arguments& arguments) {
  CLI::App* group = app.add_subcommand("onnx", "models in ONNX files");
  group->fallthrough();
  group->require_subcommand(1);
  InspectModelRequest& request = arguments.inspect_model;
  CLI::App* inspect = add_command(
      *group, arguments, "inspect", "operators, weights, inputs, what is trained and what runs",
      [&arguments, &request] {
        request.plugin = "onnx";
        return with_registry(arguments, [&request](PluginRegistry& registry, EventSink& events) {
          return inspect_model(registry, events, request);
        });
      });
  inspect->add_option("file", request.file, "the .onnx file")->required();
  inspect->add_flag("--weights", request.weights, "list every tensor");
  inspect
      ->add_option("--set", request.sets,
                   "KEY=VALUE, an option of the model as in a run file; repeatable")
      ->allow_extra_args(false);
}

void define_app(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", "gradrack " + host_version());
  app.require_subcommand(1);
  app.add_option("--plugin-path", arguments.session.plugin_path,
                 "folder with plugin libraries, searched first; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--allow-writable-plugins", arguments.session.allow_writable_plugins,
               "load libraries and folders that other users can write");
  app.add_option("--log-format", arguments.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--quiet", arguments.quiet, "warnings and errors alone");
  app.footer(
      "Exit codes: 0 done, 1 internal error, 2 command line or run file, 3 plugin,\n"
      "4 data or file, 5 training stopped (non-finite loss), 75 out of time: start again,\n"
      "129/130/143 signal.");
  add_run_commands(app, arguments);
  add_list_commands(app, arguments);
  add_data_commands(app, arguments);
  add_simulate_command(app, arguments);
  add_config_commands(app, arguments);
  add_look_commands(app, arguments);
  add_checkpoint_commands(app, arguments);
  add_export_command(app, arguments);
  add_onnx_commands(app, arguments);
}

// CLI11 says "a subcommand is required" of a misspelt one: name it and its neighbour instead.
std::string usage_error(const CLI::App& app, const std::string& reason, int argc,
                        const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  const std::string word = argc > 1 ? argv[1] : "";
  const bool command = std::find(names.begin(), names.end(), word) != names.end();
  if (word.empty() || word[0] == '-' || command) return reason + " (see gradrack --help)";
  return "unknown command '" + word + "'" + did_you_mean(word, names) + "; known: " + join(names);
}

void report(const Status& status) { log_event({"error", Level::kError, status.message(), {}}); }

int finish(const Status& status) {
  if (status.code() == GR_CANCELLED && stop_signal() != 0) {
    report(status);
    return 128 + stop_signal();
  }
  // Output that could not be written (a full disk behind a pipe) must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    report(status.ok() ? io_error("stdout cannot be written") : status);
    return status.ok() ? kExitData : exit_code(status);
  }
  if (!status.ok()) report(status);
  return exit_code(status);
}

int run_command(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app("Trains models put together from plugins by a YAML file.", "gradrack");
  define_app(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return finish({});
    }
    report(invalid_argument(usage_error(app, error.what(), argc, argv)));
    return kExitUsage;
  }
  start_logging(
      {arguments.log_format == "json" ? LogFormat::kJson : LogFormat::kText, arguments.quiet});
  // What a command does is set-up and planning; a step opens the scope of its own role.
  const ThreadRole role(GR_THREAD_MAIN | GR_THREAD_PLAN);
  return finish(arguments.command());
}

}  // namespace

int run_cli(int argc, const char* const* argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    return finish(Status(GR_OUT_OF_MEMORY, "out of memory"));
  } catch (const std::exception& error) {
    return finish(
        internal_error(std::string("a bug: an exception left a command: ") + error.what()));
  }
}

}  // namespace gradrack
