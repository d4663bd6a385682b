// SPDX-License-Identifier: Apache-2.0
// The models of the goldens, with the data and options that each was made with.
#pragma once

#include "tests/golden/model_run.hpp"

namespace gradrack::testing {

/// Golden file NAME.safetensors; a failure fails the test.
SafetensorsFile open_golden(const std::string& name);

// Cases in fp32 on `backend`.
ModelCase gpt_case(const SafetensorsFile& golden, const std::string& backend);
ModelCase cnn_case(const std::string& backend);
/// With objectives box, class and point.
ModelCase pose_case(const SafetensorsFile& golden, const std::string& backend);

}  // namespace gradrack::testing
