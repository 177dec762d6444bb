//===- Variations.h - recipes with other details ----------------*- C++ -*-===//
#ifndef OPTIML_LIB_PROPOSE_VARIATIONS_H
#define OPTIML_LIB_PROPOSE_VARIATIONS_H

#include "optiml/Core/Lesson.h"
#include <set>

namespace optiml {

/// The parameters that transforms which recipes rest on were tried with, by name.
using TriedParameters = std::map<std::string, std::set<Params>>;
void addParameters(TriedParameters &tried, const LearntTrial &trial);

/// Recipes that differ from `recipe` by one detail: without the steps of one transform that only trims, or with other
/// parameters, which were tried elsewhere, of a step that it rests on. Whether they apply is not known.
std::vector<Recipe> variationsOf(const Recipe &recipe, const TriedParameters &tried);

} // namespace optiml

#endif
