//===- Answers.h - what tools say ------------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_AGENT_ANSWERS_H
#define OPTIML_LIB_AGENT_ANSWERS_H

#include "Workspace.h"
#include "optiml/Agent/McpServer.h"

namespace optiml::agent {

/// Verdict, time beside the original's, what limits it, registers; the reason where it is refused.
nlohmann::json answerOf(const Measurement &measurement, const Measurement &baseline);
/// Of whole programs: what differs, and on which inputs; the predicted speed-up where it is not 0.
nlohmann::json answerOf(const VerifyReport &report, double speedup);
/// Counters of both, and the times of launches.
nlohmann::json profileOf(const Measurement &measurement, const Measurement &baseline);
/// One line a site: "unroll[k/j]" with its values. `filter`: a part of "transform[site]".
nlohmann::json actionsOf(const SearchState &state, const std::string &filter);
/// New kernels, their launches, and the conditions under which they run.
nlohmann::json rewritesOf(const Variant &variant);
/// The part of a text that begins at `offset`, and how to get the rest.
nlohmann::json pageOf(const std::string &text, uint64_t offset);
/// The last attempts, and the best.
nlohmann::json historyOf(const Workspace &workspace, size_t last);
Attempt attemptOf(const Recipe &recipe, const Measurement &measurement, const Measurement &baseline);

} // namespace optiml::agent

#endif
