//===- PlacedExtreme.cpp - extremes and where they are --------------------===//
//
// An iteration is run for x above m, below it, equal to it and not comparable with it (IterationCases.h). It keeps an
// extreme and what belongs to it when, in the cases in which x is better, m becomes x and each other variable a value
// from outside, and in those in which it is worse or no number, nothing changes. Where they are equal, either may be.
//
//===----------------------------------------------------------------------===//
#include "JointUpdates.h"
#include "optiml/Analysis/IterationCases.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
class ExtremeRow {
public:
  ExtremeRow(const IterationCases &all, const std::map<std::string, Type> &assigned, const std::set<std::string> &group)
      : all(all), assigned(assigned), group(group) {}
  std::optional<PlacedExtreme> match();

private:
  bool keepsAll(const IterationCase &c) const {
    return llvm::none_of(group, [&](const std::string &v) { return v != found.flag && c.changes(v); });
  }
  bool takesAll(const IterationCase &c);
  bool matches(const IterationCase &c);
  bool matchesEqual(const IterationCase &c);
  bool matchesUnordered(const IterationCase &c);

  const IterationCases &all;
  const std::map<std::string, Type> &assigned;
  const std::set<std::string> &group;
  PlacedExtreme found;
  std::optional<bool> better; ///< a greater x is
  std::optional<PlacedExtreme::Tie> tie;
  std::optional<bool> takesUnordered;
};
} // namespace

/// m becomes x, and each other variable what it becomes in all such cases.
bool ExtremeRow::takesAll(const IterationCase &c) {
  for (const std::string &v : group) {
    const IterationValue &value = c.values.at(v);
    if (v == found.flag) {
      auto set = c.flags.find(v);
      bool stays = set != c.flags.end() && set->second && !c.changes(v);
      if (!stays && !(value.number == FieldNumber::of(1)))
        return false;
    } else if (v == found.extreme) {
      bool isX = c.order == Order::Equal || (value.outside && c.compared && equal(value.outside, c.compared)) ||
                 (!c.compared && value.outside);
      if (!isX)
        return false;
    } else {
      if (!value.outside)
        return false;
      auto [it, added] = found.values.emplace(v, value.outside);
      if (!added && !equal(it->second, value.outside))
        return false;
    }
  }
  return true;
}

bool ExtremeRow::matchesEqual(const IterationCase &c) {
  bool stays = keepsAll(c), takes = !stays && takesAll(c);
  if (!stays && !takes)
    return false;
  PlacedExtreme::Tie how = stays ? PlacedExtreme::Tie::First : PlacedExtreme::Tie::Last;
  if (c.places.size() > 1)
    return false;
  if (c.places.size() == 1) {
    const auto &[text, less] = *c.places.begin();
    for (const std::string &v : group)
      if (llvm::StringRef(text).ends_with(" < " + v))
        found.decides = v;
    how = less == takes ? PlacedExtreme::Tie::Lesser : PlacedExtreme::Tie::Greater;
  }
  if (tie && *tie != how)
    return false;
  tie = how;
  return true;
}

bool ExtremeRow::matchesUnordered(const IterationCase &c) {
  bool takes = !keepsAll(c);
  if ((takes && !takesAll(c)) || (takesUnordered && *takesUnordered != takes))
    return false;
  takesUnordered = takes;
  if (takes)
    found.unordered = c.compared;
  return true;
}

bool ExtremeRow::matches(const IterationCase &c) {
  if (!c.isLeast.empty() || (c.order && c.extreme != found.extreme))
    return false;
  if (!c.flags.empty()) {
    if (c.flags.size() > 1 || (!found.flag.empty() && !c.flags.count(found.flag)))
      return false;
    found.flag = c.flags.begin()->first;
    if (found.flag == found.extreme)
      return false;
    if (!c.flags.begin()->second) // the first one
      return !c.order && takesAll(c);
    if (c.changes(found.flag) && !(c.values.at(found.flag).number == FieldNumber::of(1)))
      return false;
  }
  if (!c.order)
    return keepsAll(c) && !c.outside.empty(); // nothing comes in
  if (c.places.size() && c.order != Order::Equal)
    return false;
  switch (*c.order) {
  case Order::Unordered: return matchesUnordered(c);
  case Order::Equal: return matchesEqual(c);
  case Order::Above:
  case Order::Below: {
    bool above = *c.order == Order::Above, stays = keepsAll(c);
    bool isBetter = stays ? !above : above;
    if ((better && *better != isBetter) || (!stays && !takesAll(c)))
      return false;
    better = isBetter;
    return true;
  }
  }
  return false;
}

std::optional<PlacedExtreme> ExtremeRow::match() {
  for (const IterationCase &c : all.cases) {
    if (found.extreme.empty() && c.order)
      found.extreme = c.extreme;
    if (found.flag.empty() && !c.flags.empty())
      found.flag = c.flags.begin()->first;
  }
  auto type = assigned.find(found.extreme);
  if (type == assigned.end() || !llvm::all_of(all.cases, [&](const IterationCase &c) { return matches(c); }) ||
      !better || !tie)
    return std::nullopt;
  found.type = type->second;
  found.isMaximum = *better;
  found.tie = *tie;
  for (const std::string &v : group)
    if (v != found.extreme && v != found.flag)
      found.kept.emplace_back(v, assigned.at(v));
  bool sameType = true; // what is rounded equals what it was made from no more
  for (const IterationCase &c : all.cases)
    if (c.compared)
      sameType &= c.compared->type.sameNumber(found.type);
  return sameType ? std::optional(found) : std::nullopt;
}

std::vector<std::set<std::string>> optiml::jointVariables(Stmt &loop, const std::map<std::string, Type> &assigned) {
  std::vector<std::set<std::string>> result;
  std::set<std::string> tried;
  for (const auto &[start, type] : assigned) {
    if (tried.count(start))
      continue;
    std::set<std::string> group = {start};
    for (size_t known = 0; known != group.size();) {
      known = group.size();
      std::set<std::string> names = group;
      updateStatements(loop, names);
      std::set<std::string> mentioned;
      for (const StmtRef &s : loop.body[0]->body) {
        std::set<std::string> here;
        walkExprs(*s, [&](const ExprRef &e) {
          if (e->kind == ExprKind::Var)
            here.insert(e->text);
        });
        walk(*s, [&](Stmt &t) {
          if (t.kind == StmtKind::Decl)
            here.insert(t.text);
        });
        if (llvm::any_of(here, [&](const std::string &n) { return names.count(n) != 0; }))
          mentioned.insert(here.begin(), here.end());
      }
      for (const auto &[v, t] : assigned)
        if (mentioned.count(v))
          group.insert(v);
    }
    tried.insert(group.begin(), group.end());
    result.push_back(group);
  }
  return result;
}

std::optional<PlacedExtreme> optiml::findPlacedExtreme(Stmt &loop, const std::map<std::string, Type> &assigned) {
  for (const std::set<std::string> &group : jointVariables(loop, assigned))
    if (auto all = casesOf(loop, group, 1))
      if (auto found = ExtremeRow(*all, assigned, group).match())
        return found;
  return std::nullopt;
}

std::optional<std::pair<std::string, Type>> optiml::findSum(Stmt &loop, const std::map<std::string, Type> &assigned) {
  for (const auto &[v, type] : assigned) {
    auto a = casesOf(loop, {v}, 1), b = casesOf(loop, {v}, 2);
    if (!a || !b || a->cases.size() != b->cases.size())
      continue;
    bool good = true, changes = false;
    for (size_t i = 0; i < a->cases.size(); ++i) { // what is added does not depend on the sum
      const IterationCase &x = a->cases[i], &y = b->cases[i];
      changes |= x.changes(v);
      good &= !x.order && x.flags.empty() && x.isLeast.empty() &&
              x.values.at(v).number - a->before(v, x) == y.values.at(v).number - b->before(v, y);
    }
    if (good && changes)
      return std::pair(v, type);
  }
  return std::nullopt;
}
