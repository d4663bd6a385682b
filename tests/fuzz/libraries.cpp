// SPDX-License-Identifier: Apache-2.0
// What a library is and says before an instance is made: header, file, options, factories, tables.
#include "core/config/options.hpp"
#include "core/plugin/elf_file.hpp"
#include "core/plugin/instance.hpp"
#include "tests/fuzz/draw.hpp"

namespace gradrack::fuzz {
namespace {

std::string& library_bytes() {
  static std::string bytes;
  return bytes;
}

gr_option_t option(Draw& draw) {
  gr_option_t row = {};
  row.struct_size = draw.one_in(3) ? draw.struct_size() : uint32_t{sizeof row};
  row.flags = draw.mostly<uint32_t>(0);
  row.name = draw.text(draw.one_in(2) ? "lr" : "betas");
  row.type = draw.mostly<int32_t>(static_cast<int32_t>(1 + draw.below(8)));
  row.list_length = draw.mostly<int32_t>(0);
  row.default_text = draw.text("0.5");
  row.min = draw.one_in(2) ? draw.real() : -INFINITY;
  row.max = draw.one_in(2) ? draw.real() : INFINITY;
  row.choices = draw.one_in(2) ? nullptr : draw.text("a|b|c");
  row.help = draw.text("help");
  return row;
}

constexpr uint32_t kRows = 4;

// A stride may be larger than a row, so the rows lie in room for 4096 bytes each.
struct Rows {
  alignas(8) unsigned char bytes[kRows * 4096 + sizeof(gr_option_t)] = {};
  uint32_t stride = sizeof(gr_option_t);

  explicit Rows(Draw& draw) {
    if (draw.one_in(2)) stride = draw.struct_size();
    for (uint32_t k = 0; k < kRows; ++k) {
      const gr_option_t row = option(draw);
      std::memcpy(bytes + size_t{k} * stride, &row, sizeof row);
    }
  }
  const gr_option_t* first() const { return reinterpret_cast<const gr_option_t*>(bytes); }
};

void destroy(void*) {}

template <typename Table>
int32_t create(const gr_host_t*, const gr_options_t*, void* instance, gr_error_t* err) {
  Draw& draw = current();
  Table table = {};
  std::memcpy(&table, instance, sizeof table);
  if (draw.one_in(2)) table.struct_size = draw.struct_size();
  table.flags = draw.number<uint32_t>();
  table.destroy = draw.one_in(8) ? nullptr : destroy;
  std::memcpy(instance, &table, sizeof table);
  return draw.status(err);
}

template <typename Table>
void make(Draw&) {
  Factory factory;
  factory.kind = kind_info<Table>().kind;
  factory.name = "fuzz";
  factory.library = "fuzz.so";
  factory.create = create<Table>;
  (void)Instance<Table>::create(factory, OptionValues());
}

// The lists that a fuzzed entry gives live as long as the case.
struct Offer {
  gr_factory_t factories[3] = {};
  const gr_factory_t* list[3] = {};
  uint32_t count = 0;
};
Offer* offered = nullptr;

int32_t entry(const gr_host_t*, gr_plugin_t* out, gr_error_t* err) {
  Draw& draw = current();
  if (draw.one_in(2)) out->struct_size = draw.struct_size();
  out->flags = draw.number<uint32_t>();
  out->abi_minor = draw.mostly<uint32_t>(0);
  out->factory_count = offered->count;
  out->factories = draw.one_in(10) ? nullptr : offered->list;
  out->id = draw.text("org.example.fuzz");
  out->version = draw.text("1.0.0");
  return draw.status(err);
}

}  // namespace

void set_library_bytes(std::string bytes) { library_bytes() = std::move(bytes); }

void fuzz_header(Draw& draw) {
  gr_plugin_header_t header = {};
  if (draw.one_in(3)) {
    draw.bytes(&header, sizeof header);
  } else {
    header.magic = draw.mostly<uint64_t>(GR_PLUGIN_MAGIC);
    header.struct_size = draw.struct_size();
    header.abi_major = draw.mostly<uint32_t>(GR_ABI_MAJOR);
    header.abi_min_minor = draw.mostly<uint32_t>(0);
    header.abi_max_minor = draw.mostly<uint32_t>(0);
  }
  (void)check_plugin_header(header);
}

void fuzz_elf(Draw& draw) {
  const std::string& whole = library_bytes();
  std::string bytes = whole.substr(0, draw.one_in(4) ? draw.below(whole.size() + 1) : whole.size());
  // The headers and tables that steer a reader are at both ends of the file.
  const uint64_t changes = draw.below(16);
  for (uint64_t k = 0; k < changes && !bytes.empty(); ++k) {
    const uint64_t near = draw.below(std::min<uint64_t>(bytes.size(), 1024));
    const uint64_t at = draw.one_in(2) ? near : draw.below(bytes.size());
    if (draw.one_in(2) && at + 8 <= bytes.size()) {
      const auto number = draw.number<uint64_t>();
      std::memcpy(bytes.data() + at, &number, sizeof number);
    } else {
      bytes[at] = static_cast<char>(draw.below(256));
    }
  }
  const auto elf = parse_elf(bytes);
  if (elf.ok()) (void)check_elf_header(*elf);
}

void fuzz_options(Draw& draw) {
  const Rows rows(draw);
  const auto count = static_cast<uint32_t>(draw.below(kRows + 1));
  const auto table =
      read_option_table(draw.one_in(10) ? nullptr : rows.first(), count, rows.stride);
  if (table.ok()) (void)check_options({"optimizer", "fuzz", {}, false}, *table, {}, {});
}

void fuzz_library(Draw& draw) {
  Offer offer;
  const Rows rows(draw);
  for (size_t k = 0; k < 3; ++k) {
    gr_factory_t& factory = offer.factories[k];
    factory.struct_size = draw.one_in(3) ? draw.struct_size() : uint32_t{sizeof factory};
    factory.flags = draw.number<uint32_t>();
    factory.kind = draw.text("optimizer");
    factory.name = draw.text(k == 0 ? "first" : "other");
    factory.version = draw.text("1.0.0");
    factory.help = draw.text("help");
    factory.options = draw.one_in(10) ? nullptr : rows.first();
    factory.option_count = static_cast<uint32_t>(draw.below(kRows + 1));
    factory.option_stride = rows.stride;
    factory.create = draw.one_in(8) ? nullptr : create<gr_optimizer_t>;
    offer.list[k] = draw.one_in(12) ? nullptr : &factory;
  }
  offer.count = static_cast<uint32_t>(draw.below(4));
  offered = &offer;
  gr_plugin_header_t header = {GR_PLUGIN_MAGIC, sizeof header, GR_ABI_MAJOR, 0, 0, entry};
  Library library;
  library.path = "fuzz.so";
  (void)enter_library(header, &library);
  offered = nullptr;
}

void fuzz_instance(Draw& draw) {
  void (*const makers[])(Draw&) = {
      make<gr_model_t>,     make<gr_data_t>,      make<gr_optimizer_t>, make<gr_lr_schedule_t>,
      make<gr_precision_t>, make<gr_scheduler_t>, make<gr_backend_t>,   make<gr_metrics_t>};
  makers[draw.below(8)](draw);
}

}  // namespace gradrack::fuzz
