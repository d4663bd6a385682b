// SPDX-License-Identifier: Apache-2.0
// `gradrack report`: one page about a run that needs no network and no other file.
//
// Curves, the timeline of traced steps, the memory map, configuration, environment, fallbacks and
// events. Last step of report/. Invariant: whatever text a run folder holds is shown as text; it
// never becomes a part of the page's code.
#pragma once

#include <string>

#include "core/report/run_record.hpp"

namespace gradrack {

std::string run_report_html(const RunRecord& record);

}  // namespace gradrack
