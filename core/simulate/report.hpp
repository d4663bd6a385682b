// SPDX-License-Identifier: Apache-2.0
// What `gradrack simulate` says: figures as text or as a page for people, as JSON for programs.
//
// Last step of simulate/. Both say the same; the keys of the JSON are in docs/formats.md.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/timeline.hpp"
#include "core/simulate/simulation.hpp"

namespace gradrack {

struct Report {
  const SimTable& table;
  const Schedule& schedule;
  const Simulation& simulation;
  std::vector<std::string> notes;
};

std::string report_text(const Report& report);
std::string report_json(const Report& report);
/// A page that needs no other file: the text, the timeline as a picture, what its colours mean.
std::string report_html(const Report& report, const Timeline& timeline);

}  // namespace gradrack
