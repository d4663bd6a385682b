// SPDX-License-Identifier: Apache-2.0
// Settings: the options of the `onnx` model, as its parts read them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gradrack/options.hpp"

namespace gradrack::onnx {

enum class Loss { kCrossEntropy, kMse, kBceWithLogits, kNone };

struct Settings {
  std::string file;
  std::map<std::string, int64_t> dims;        ///< of symbols, or "INPUT:AXIS"
  std::map<std::string, std::string> inputs;  ///< the model's name -> the data's
  std::vector<std::string> outputs;           ///< empty: all
  std::vector<std::string> trainable, frozen, lora;
  int64_t lora_rank = 8;
  double lora_alpha = 16;
  Loss loss = Loss::kNone;
  std::string loss_output;  ///< a value of the file; empty: its first output
  std::string target;
  int64_t class_axis = 0;  ///< 0: 1 for pictures, else the last
  bool free_batch = false;
  bool batch_norm = true;
  bool dropout = true;
};

inline constexpr gr_option_t kOnnxOptions[] = {
    GR_OPT_PATH_REQUIRED("file", "the .onnx file"),
    GR_OPT_STRINGS("dims", "[]", "fixed dims: SYMBOL=NUMBER, or INPUT:AXIS=NUMBER"),
    GR_OPT_BOOL("free_batch", "false",
                "the first dim of every input is the batch, whatever number the file has there"),
    GR_OPT_STRINGS("inputs", "[]", "MODEL=DATA: which output of the data an input of the model is"),
    GR_OPT_STRINGS("outputs", "[]", "outputs that are wanted; nodes for the others are left out"),
    GR_OPT_CHOICE("loss", "cross_entropy", "cross_entropy|mse|bce_with_logits|none",
                  "what is minimised; none: the output is a loss already"),
    GR_OPT_STRING("loss_output", "", "the value that the loss reads; empty: the first output"),
    GR_OPT_STRING("target", "labels", "output of the data that the loss compares with"),
    GR_OPT_INT("class_axis", "0", 0, 7,
               "axis of the classes; 0: the last, or 1 where there are more than 3 dims"),
    GR_OPT_STRINGS("trainable", "[\"*\"]", "globs of the weights that are trained"),
    GR_OPT_STRINGS("frozen", "[]", "globs of weights that are not trained after all"),
    GR_OPT_STRINGS("lora", "[]",
                   "globs of MatMul and Gemm weights that get a low-rank adapter and stay as "
                   "they are; only adapters are trained then"),
    GR_OPT_INT("lora_rank", "8", 1, 4096, "rank of the adapters"),
    GR_OPT_FLOAT("lora_alpha", "16", -INFINITY, INFINITY,
                 "adapters are scaled by lora_alpha / lora_rank"),
    GR_OPT_CHOICE("batch_norm", "train", "train|frozen",
                  "train: by the batch, statistics are updated; frozen: as the file says"),
    GR_OPT_BOOL("dropout", "true", "drop in training where the file has a Dropout"),
};

Settings read_settings(const sdk::Options& options);

/// Does `name` match one of `globs`, in which * stands for any text and ? for one character?
bool matches_any(const std::string& name, const std::vector<std::string>& globs);
/// An error when one of `globs` matches none of `names`: it would do nothing.
void require_matches(const char* option, const std::vector<std::string>& globs,
                     const std::vector<std::string>& names);

}  // namespace gradrack::onnx
