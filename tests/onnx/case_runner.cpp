// SPDX-License-Identifier: Apache-2.0
// onnx_cases: runs operator cases through the importer and compares with the outputs they bring.
//
//   onnx_cases FOLDER BACKEND [NAME...]   one line a case: "ok NAME", "skip NAME: why", "fail NAME:
//                                         why"
//   onnx_cases --run MODEL BACKEND TENSORS OUT [KEY=VALUE...]   writes the outputs of one file
//
// FOLDER is what tests/onnx/dump_cases.py wrote. Each case runs in a child of its own, so that a
// crash or an endless loop costs that case alone.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/device/convert.hpp"
#include "tests/onnx/graph_run.hpp"

namespace gradrack::testing {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kCaseSeconds = 60;

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

Result<std::vector<double>> numbers_of(gr_dtype_t dtype, std::span<const std::byte> bytes) {
  const auto width = static_cast<size_t>(gr_dtype_bytes(dtype));
  std::vector<double> numbers(bytes.size() / width);
  for (size_t k = 0; k < numbers.size(); ++k) {
    GR_ASSIGN(numbers[k], read_number(dtype, bytes.data() + k * width));
  }
  return numbers;
}

bool near(double got, double wanted, const Tolerance& t) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (got == wanted) return true;
  return std::abs(got - wanted) <= t.absolute + t.relative * std::abs(wanted);
}

Status compare(const SafetensorsFile& file, const SafetensorsEntry& entry, const Tolerance& t,
               const HostTensors& outputs) {
  const std::string name = entry.name.substr(std::strlen("output."));
  const auto at = outputs.find(name);
  if (at == outputs.end()) return not_found("no output '" + name + "'");
  const HostTensor& got = at->second;
  if (got.dtype != entry.dtype) return invalid_argument("output '" + name + "': another dtype");
  if (got.dims != entry.shape) return invalid_argument("output '" + name + "': another shape");
  GR_ASSIGN(const auto wanted_numbers, numbers_of(entry.dtype, file.bytes(entry)));
  GR_ASSIGN(const auto got_numbers, numbers_of(got.dtype, got.bytes));
  for (size_t k = 0; k < wanted_numbers.size(); ++k) {
    if (near(got_numbers[k], wanted_numbers[k], t)) continue;
    char text[160];
    (void)std::snprintf(text, sizeof text, "': element %zu is %.9g, wanted %.9g", k, got_numbers[k],
                        wanted_numbers[k]);
    return invalid_argument("output '" + name + text);
  }
  return {};
}

Status run_case(const fs::path& folder, const std::string& backend) {
  Tolerance tolerance;
  std::ifstream(folder / "tolerance") >> tolerance.relative >> tolerance.absolute;
  GR_ASSIGN(const SafetensorsFile tensors, SafetensorsFile::open(folder / "tensors.safetensors"));
  GR_ASSIGN(const auto outputs, run_onnx({folder / "model.onnx", backend}, inputs_of(tensors)));
  for (const SafetensorsEntry& entry : tensors.entries()) {
    if (entry.name.rfind("output.", 0) != 0) continue;
    GR_TRY(compare(tensors, entry, tolerance, outputs));
  }
  return {};
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

/// Runs the case in a child; "" when it passed.
std::string verdict(const fs::path& folder, const std::string& backend) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kCaseSeconds);
    const Status status = run_case(folder, backend);
    std::string text = status.ok() ? "" : status.message();
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.empty() && !status.ok()) text = "failed without a word";
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFSIGNALED(how)) return "CRASH: signal " + std::to_string(WTERMSIG(how));
  return text;
}

int run_cases(const fs::path& folder, const std::string& backend,
              const std::vector<std::string>& wanted) {
  std::vector<std::string> names = wanted;
  if (names.empty()) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const fs::path at = folder / name;
    if (fs::exists(at / "skip")) {
      std::printf("skip %s: %s\n", name.c_str(), first_line(at / "skip").c_str());
      continue;
    }
    const std::string why = verdict(at, backend);
    std::printf(why.empty() ? "ok %s\n" : "fail %s: %s\n", name.c_str(), why.c_str());
  }
  return 0;
}

Status run_one(const std::vector<std::string>& args) {
  OnnxRun run{args[0], args[1]};
  for (size_t k = 4; k < args.size(); ++k) {
    const size_t at = args[k].find('=');
    if (at == std::string::npos) return invalid_argument("wanted KEY=VALUE, got " + args[k]);
    run.options.emplace_back(args[k].substr(0, at), args[k].substr(at + 1));
  }
  GR_ASSIGN(const SafetensorsFile inputs, SafetensorsFile::open(args[2]));
  GR_ASSIGN(const auto outputs, run_onnx(run, inputs_of(inputs)));
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, tensor] : outputs) {
    tensors.push_back({name, tensor.dtype, tensor.dims, tensor.bytes.data()});
  }
  return write_safetensors(args[3], std::move(tensors));
}

}  // namespace
}  // namespace gradrack::testing

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() >= 5 && args[0] == "--run") {
    const auto status = gradrack::testing::run_one({args.begin() + 1, args.end()});
    if (!status.ok()) std::fprintf(stderr, "onnx_cases: %s\n", status.message().c_str());
    return status.ok() ? 0 : 1;
  }
  if (args.size() < 2) {
    std::fprintf(stderr, "onnx_cases FOLDER BACKEND [NAME...]\n");
    return 2;
  }
  return gradrack::testing::run_cases(args[0], args[1], {args.begin() + 2, args.end()});
}
