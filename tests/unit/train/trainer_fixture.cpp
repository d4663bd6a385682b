// SPDX-License-Identifier: Apache-2.0
// See trainer_fixture.hpp.
#include "tests/unit/train/trainer_fixture.hpp"

#include <cstdint>
#include <fstream>
#include <limits>
#include <span>

namespace gradrack::testing {

namespace {

/// A .npy file, format 1.0: header padded so that the data begins at a multiple of 64.
template <typename T>
void write_npy(const std::filesystem::path& path, const std::string& dtype,
               const std::string& shape, const std::vector<T>& numbers) {
  std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
       << static_cast<char>(header.size() / 256) << header;
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(T)));
}

/// 40 images of 6x6 in three classes: bright rows at one of three places, and some noise.
void write_images(const std::filesystem::path& folder) {
  constexpr int kCount = 40, kSide = 6;
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  for (int n = 0; n < kCount; ++n) {
    labels.push_back(n % 3);
    for (int k = 0; k < kSide * kSide; ++k) {
      const bool bright = k / kSide / 2 == n % 3;
      pixels.push_back(static_cast<uint8_t>((bright ? 12 : 1) + (n * 7 + k * 5) % 4));
    }
  }
  write_npy(folder / "x.npy", "|u1", "40, 1, 6, 6", pixels);
  write_npy(folder / "y.npy", "<i8", "40,", labels);
}

}  // namespace

void TrainerFixture::SetUp() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  folder_ = std::filesystem::temp_directory_path() /
            (std::string("gradrack_trainer_") + test->name() + std::to_string(getpid()));
  std::filesystem::create_directories(folder_);
  std::ofstream text(folder_ / "text.txt");
  for (int k = 0; k < 60; ++k) text << "the quick brown fox jumps over the lazy dog. ";
  write_images(folder_);
}

std::unique_ptr<Trainer> TrainerFixture::trainer(const std::vector<std::string>& sets) {
  return make(gpt_text(), sets);
}

std::unique_ptr<Session> TrainerFixture::open_for(const std::vector<std::string>& sets) {
  return open(gpt_text(), sets);
}

std::string TrainerFixture::gpt_text() const {
  return "model: {plugin: gpt, layers: 1, heads: 2, dim: 16}\n"
         "data: {plugin: text, block: 8, file: " +
         (folder_ / "text.txt").string() + "}\n";
}

std::unique_ptr<Trainer> TrainerFixture::cnn_trainer(const std::vector<std::string>& sets) {
  return make("model: {plugin: cnn, channels: [4, 6]}\ndata: {plugin: arrays, features: " +
                  (folder_ / "x.npy").string() + ", labels: " + (folder_ / "y.npy").string() +
                  "}\n",
              sets);
}

namespace {
constexpr const char* kStems = "model: {plugin: stems}\ndata: {plugin: stems}\n";
}  // namespace

std::unique_ptr<Session> TrainerFixture::stems_session(const std::vector<std::string>& sets) {
  return open(kStems, sets);
}

std::unique_ptr<Trainer> TrainerFixture::stems_trainer(const std::vector<std::string>& sets,
                                                       std::shared_ptr<Machine> machine) {
  return make(kStems, sets, std::move(machine));
}

std::unique_ptr<Session> TrainerFixture::open(const std::string& model_and_data,
                                              const std::vector<std::string>& sets) {
  const std::string path = (folder_ / "run.yaml").string();
  const std::string out = (folder_ / ("out" + std::to_string(sessions_.size()))).string();
  std::ofstream(path) << "run: {seed: 3, max_steps: 100, batch_size: 2, eval_batches: 2, output: "
                      << out << "}\n"
                      << model_and_data << "optimizer: {plugin: adamw, lr: 0.01}\n";
  auto session = open_session({path, sets, {GRADRACK_PLUGIN_DIR, GRADRACK_TEST_PLUGIN_DIR}});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(*session) : nullptr;
}

std::unique_ptr<Trainer> TrainerFixture::make(const std::string& model_and_data,
                                              const std::vector<std::string>& sets,
                                              std::shared_ptr<Machine> machine) {
  std::unique_ptr<Session> session = open(model_and_data, sets);
  if (session == nullptr) return nullptr;
  sessions_.push_back(std::move(session));
  auto made = Trainer::make(*sessions_.back(), std::move(machine));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

std::vector<std::byte> TrainerFixture::parameters(Trainer& trainer) {
  std::vector<std::byte> all;
  for (const StoredTensor& tensor : trainer.programs().store().tensors()) {
    if (tensor.source == Source::kAccumulator) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    EXPECT_TRUE(trainer.programs().store().read(tensor.name, bytes).ok());
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

std::filesystem::path TrainerFixture::folder_of(Trainer& trainer) {
  return trainer.programs().run().output;
}

void TrainerFixture::steps(Trainer& trainer, int count) {
  for (int k = 0; k < count; ++k) {
    const auto report = trainer.step();
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
}

const Plan& TrainerFixture::plan_of(Trainer& trainer) {
  StepVariant variant;
  variant.active = trainer.programs().rules().all();
  auto program = trainer.programs().step(variant);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return (*program)->executor->plan();
}

void TrainerFixture::fill(Trainer& trainer, const char* name, float even, float odd) {
  Store& store = trainer.programs().store();
  std::vector<float> numbers(static_cast<size_t>(store.find(name)->bytes) / sizeof(float));
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = k % 2 == 0 ? even : odd;
  ASSERT_TRUE(store.write(name, std::as_bytes(std::span(numbers))).ok());
}

void TrainerFixture::poison(Trainer& trainer) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  fill(trainer, "norm_f.weight", nan, nan);
}

void TrainerFixture::expect_non_finite_step_changes_nothing(Trainer& trainer) {
  steps(trainer, 1);
  poison(trainer);
  const std::vector<std::byte> before = parameters(trainer);
  const auto report = trainer.step();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->updated);
  EXPECT_EQ(parameters(trainer), before);
}

void TrainerFixture::expect_non_finite_norm_is_taken_back(Trainer& trainer) {
  steps(trainer, 1);
  fill(trainer, "norm_f.weight", 0, 0);
  fill(trainer, "head.weight", 3e38f, -3e38f);
  const std::vector<std::byte> before = parameters(trainer);
  const auto report = trainer.step();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(std::isfinite(report->loss)) << report->loss;
  EXPECT_FALSE(std::isfinite(report->grad_norm)) << report->grad_norm;
  EXPECT_FALSE(report->updated);
  EXPECT_EQ(parameters(trainer), before);
}

}  // namespace gradrack::testing
