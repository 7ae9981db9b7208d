// What a study found, for people (a table, an HTML page) and for programs (JSON). All of it says "simulated".
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "loadtest/simulate/study.h"

namespace warmpath {

// What was simulated, in order: shown above the table and kept in the JSON.
using StudySettings = std::vector<std::pair<std::string, std::string>>;
StudySettings describe_study(const Trace& trace, const Study& study);

std::string study_table(const std::vector<StudyRow>& rows);
// One object: {"simulated": true, "settings": {...}, "policies": [{"policy", FIGURE: mean, FIGURE_interval: half
// width}]}
std::string study_json(const StudySettings& settings, const std::vector<StudyRow>& rows);
std::string study_html(const StudySettings& settings, const std::vector<StudyRow>& rows);

}  // namespace warmpath
