/* SPDX-License-Identifier: Apache-2.0 */
/* A host one minor ahead: later_host LIBRARY...
 *
 * Compiled with the headers that later_headers.py writes, so that every struct it hands over is
 * larger than the libraries know, and walked with larger strides. Each library has to choose the
 * older minor, to leave what it does not know untouched, and to work. The invariant that is
 * checked: the bytes behind the old end of every struct still hold MARK after each call.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "gradrack/gradrack.h"

enum { MARK = 0x5a, MAX_OPTIONS = 32, MAX_LIST = 8 };

static const char* library = "";

#define REQUIRE(condition, what) require((condition) != 0, what, #condition, __LINE__)
static void require(int good, const char* what, const char* condition, int line) {
  if (good) return;
  fprintf(stderr, "%s: %s: %s does not hold (line %d)\n", library, what, condition, line);
  exit(1);
}

static void check_ok(int32_t status, const gr_error_t* err, const char* what) {
  if (status == GR_OK) return;
  fprintf(stderr, "%s: %s: status %d: %s\n", library, what, status, err->message);
  exit(1);
}

static int is_marked(const void* bytes, size_t count) {
  const unsigned char* at = bytes;
  for (size_t k = 0; k < count; ++k) {
    if (at[k] != MARK) return 0;
  }
  return 1;
}

/* What a later minor added must be as it was. */
#define MARK_LATER(object) memset((object).later, MARK, sizeof(object).later)
#define REQUIRE_LATER(object) \
  REQUIRE(is_marked((object).later, sizeof(object).later), "wrote behind what it knows")

static void host_log(void* context, int32_t level, const char* message) {
  (void)context;
  (void)level;
  (void)message;
}
static const void* host_extension(void* context, const char* id) {
  (void)context;
  (void)id;
  return NULL;
}

/* "[0.9, 0.999]" as numbers, after the numbers of other options. */
static void read_list(const char* text, gr_option_value_t* value) {
  static double numbers[MAX_OPTIONS * MAX_LIST];
  static size_t used = 0;
  value->floats = &numbers[used];
  while (*text == '[' || *text == ',') {
    char* end;
    const double number = strtod(text + 1, &end);
    REQUIRE(end != text + 1 && used < MAX_OPTIONS * MAX_LIST, "default of a list");
    numbers[used++] = number;
    ++value->count;
    text = end;
  }
}

/* Declared defaults as values; 0 when an option has none that can be made here. */
static int default_options(const gr_factory_t* factory, gr_option_value_t* values,
                           gr_options_t* options) {
  if (factory->option_count > MAX_OPTIONS) return 0;
  for (uint32_t k = 0; k < factory->option_count; ++k) {
    const char* row = (const char*)factory->options + (size_t)k * factory->option_stride;
    const gr_option_t* option = (const gr_option_t*)(const void*)row;
    memset(&values[k], 0, sizeof values[k]);
    values[k].name = option->name;
    values[k].type = option->type;
    values[k].is_default = 1;
    if (option->default_text == NULL) return 0;
    if (option->type == GR_OPTION_FLOAT_LIST) read_list(option->default_text, &values[k]);
    if (option->type > GR_OPTION_STRING && option->type != GR_OPTION_FLOAT_LIST) return 0;
    values[k].s = option->default_text;
    values[k].f = strtod(option->default_text, NULL);
    values[k].i = option->type == GR_OPTION_BOOL ? strcmp(option->default_text, "true") == 0
                                                 : strtoll(option->default_text, NULL, 10);
  }
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
  options->item_stride = sizeof values[0];
  options->items = values;
  options->count = factory->option_count;
  return 1;
}

static void use_lr_schedule(const gr_lr_schedule_t* table) {
  gr_lr_request_t request = {0};
  gr_error_t err = {0};
  double lr = -1;
  request.struct_size = sizeof request;
  request.update = 1;
  request.max_updates = 10;
  request.base_lr = 0.5;
  check_ok(table->value(table->self, &request, &lr, &err), &err, "value");
  REQUIRE(lr >= 0 && lr <= 0.5, "value");
}

static void use_scheduler(const gr_scheduler_t* table) {
  static const uint32_t deps[3] = {0, 0, 2};
  gr_task_t tasks[4];
  gr_schedule_request_t request = {0};
  gr_error_t err = {0};
  uint32_t streams = 0, order[4], stream[4], seen = 0;
  memset(tasks, 0, sizeof tasks);
  for (int k = 1; k < 4; ++k) {
    tasks[k].deps = &deps[k - 1];
    tasks[k].dep_count = 1;
    tasks[k].stage = -1;
  }
  check_ok(table->streams(table->self, &streams, &err), &err, "streams");
  REQUIRE(streams >= 1, "streams");
  request.struct_size = sizeof request;
  request.task_stride = sizeof tasks[0];
  request.tasks = tasks;
  request.task_count = 4;
  request.streams = streams;
  check_ok(table->schedule(table->self, &request, order, stream, &err), &err, "schedule");
  for (int k = 0; k < 4; ++k) {
    REQUIRE(order[k] < 4 && stream[k] < streams, "schedule");
    REQUIRE(order[k] == 0 || (seen >> deps[order[k] - 1] & 1) != 0, "schedule");
    seen |= 1u << order[k];
  }
  REQUIRE(seen == 15, "schedule");
}

static void use_optimizer(const gr_optimizer_t* table) {
  static const int64_t dims[2] = {3, 4};
  gr_parameter_info_t info = {0};
  gr_state_t states[GR_MAX_STATES];
  gr_error_t err = {0};
  uint32_t count = 99;
  memset(states, 0, sizeof states);
  info.struct_size = sizeof info;
  info.dtype = GR_FLOAT32;
  info.name = "layer.weight";
  info.stage = "layer";
  info.dims = dims;
  info.rank = 2;
  check_ok(table->declare_state(table->self, &info, states, &count, &err), &err, "declare_state");
  REQUIRE(count <= GR_MAX_STATES, "declare_state");
  for (uint32_t k = 0; k < count; ++k) REQUIRE(states[k].name != NULL, "declare_state");
}

static void use_backend(const gr_backend_t* table) {
  static const int64_t dims[1] = {4};
  gr_device_info_t device = {0};
  gr_node_view_t nodes[3];
  gr_claim_t claims[3];
  gr_value_type_t inputs[2] = {{0}}, output = {0};
  gr_error_t err = {0};
  device.struct_size = sizeof device;
  MARK_LATER(device);
  check_ok(table->device_info(table->self, &device, &err), &err, "device_info");
  REQUIRE_LATER(device);
  REQUIRE(device.alignment > 0 && device.description != NULL, "device_info");
  output.id = 2;
  output.dtype = GR_FLOAT32;
  output.rank = 1;
  output.dims = dims;
  inputs[0] = inputs[1] = output;
  for (int k = 0; k < 3; ++k) {
    memset(&nodes[k], 0, sizeof nodes[k]);
    nodes[k].struct_size = sizeof nodes[k];
    nodes[k].domain = "";
    nodes[k].op = k == 1 ? "NoSuchOperator" : "Add";
    nodes[k].inputs = inputs;
    nodes[k].outputs = &output;
    nodes[k].input_count = 2;
    nodes[k].output_count = 1;
    memset(&claims[k], 0, sizeof claims[k]);
    claims[k].struct_size = sizeof claims[k];
    MARK_LATER(claims[k]);
  }
  check_ok(table->claim(table->self, nodes, sizeof nodes[0], 3, claims, sizeof claims[0], &err),
           &err, "claim");
  for (int k = 0; k < 3; ++k) {
    REQUIRE_LATER(claims[k]);
    REQUIRE(claims[k].verdict == (k == 1 ? GR_CLAIM_NO : GR_CLAIM_YES), "claim");
  }
}

/* Makes an instance in a table that is larger than the library knows, uses it, destroys it. */
#define USE(kind_name, type, use)                                                      \
  if (strcmp(factory->kind, kind_name) == 0) {                                         \
    type table = {0};                                                                  \
    table.struct_size = sizeof table;                                                  \
    MARK_LATER(table);                                                                 \
    check_ok(factory->create(host, &options, &table, &err), &err, factory->name);      \
    REQUIRE_LATER(table);                                                              \
    REQUIRE(table.struct_size < sizeof table, "says it filled what it does not know"); \
    use(&table);                                                                       \
    table.destroy(table.self);                                                         \
    return 1;                                                                          \
  }

static int use_factory(const gr_host_t* host, const gr_factory_t* factory) {
  gr_option_value_t values[MAX_OPTIONS];
  gr_options_t options;
  gr_error_t err = {0};
  if (!default_options(factory, values, &options)) return 0;
  USE("lr_schedule", gr_lr_schedule_t, use_lr_schedule)
  USE("scheduler", gr_scheduler_t, use_scheduler)
  USE("optimizer", gr_optimizer_t, use_optimizer)
  USE("backend", gr_backend_t, use_backend)
  return 0;
}

static void use_library(const char* path) {
  void* loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const gr_plugin_header_t* header = loaded != NULL ? dlsym(loaded, GR_ENTRY_SYMBOL) : NULL;
  gr_host_t host = {0};
  gr_plugin_t plugin = {0};
  gr_error_t err = {0};
  uint32_t used = 0;
  library = path;
  REQUIRE(header != NULL, "does not load");
  REQUIRE(header->magic == GR_PLUGIN_MAGIC && header->abi_major == GR_ABI_MAJOR, "header");
  REQUIRE(header->abi_max_minor < GR_ABI_MAX_MINOR, "is not behind this host");
  host.struct_size = sizeof host;
  host.abi_major = GR_ABI_MAJOR;
  host.abi_max_minor = GR_ABI_MAX_MINOR;
  host.name = "later_host";
  host.version = "1.1.0";
  host.log = host_log;
  host.get_extension = host_extension;
  plugin.struct_size = sizeof plugin;
  MARK_LATER(plugin);
  check_ok(header->entry(&host, &plugin, &err), &err, "entry");
  REQUIRE_LATER(plugin);
  REQUIRE(plugin.abi_minor == header->abi_max_minor, "chose another minor than the newest shared");
  for (uint32_t k = 0; k < plugin.factory_count; ++k) {
    const gr_factory_t* factory = plugin.factories[k];
    REQUIRE(factory->struct_size < sizeof *factory, "factory is as large as a later one");
    used += (uint32_t)use_factory(&host, factory);
  }
  printf("%s: minor %u, used %u of %u\n", path, plugin.abi_minor, used, plugin.factory_count);
  REQUIRE(used > 0, "nothing in it could be used");
}

int main(int argc, char** argv) {
  for (int k = 1; k < argc; ++k) use_library(argv[k]);
  return argc > 1 ? 0 : 1;
}
