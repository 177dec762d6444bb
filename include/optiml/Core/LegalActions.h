//===- LegalActions.h - what may be done to a variant -----------*- C++ -*-===//
//
// Finding every legal action of a variant tries each transform at each of its sites, which takes much longer than
// applying one of them. A line of play asks for one transform at a time, so that each transform's actions on a kernel
// are found when they are asked for, once.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_LEGALACTIONS_H
#define OPTIML_CORE_LEGALACTIONS_H

#include "optiml/Core/Action.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace optiml {

/// A place where a transform applies and the parameter values that are feasible there, best guess first.
struct ActionTemplate {
  std::string transform, site;
  std::vector<Params> values; ///< joint values, not a cross product
};

/// A list of actions of which parts may still be found out. Copies share what was found. Safe to use from several
/// threads, but for push_back and defer.
class LegalActions {
public:
  using Find = std::function<std::vector<ActionTemplate>()>;

  LegalActions() = default;
  LegalActions(std::vector<ActionTemplate> actions);
  LegalActions(std::initializer_list<ActionTemplate> actions) : LegalActions(std::vector<ActionTemplate>(actions)) {}

  /// The actions of a transform on a kernel follow, once `find` is called.
  void defer(std::string kernel, std::string transform, Find find);
  /// Those of `other` on the kernel follow, found or not.
  void shareFrom(const LegalActions &other, const std::string &kernel);
  void push_back(ActionTemplate action);

  /// Of one transform.
  const std::vector<ActionTemplate> &of(const std::string &transform) const;
  bool offers(const Action &action) const;
  /// All, in the order in which they were added.
  const std::vector<ActionTemplate> &all() const;
  /// How many parts there are to find out, and one of them found out: what is asked for afterwards is there.
  size_t parts() const;
  void find(size_t part) const;
  std::vector<ActionTemplate>::const_iterator begin() const { return all().begin(); }
  std::vector<ActionTemplate>::const_iterator end() const { return all().end(); }
  bool empty() const { return all().empty(); }
  size_t size() const { return all().size(); }
  const ActionTemplate &operator[](size_t i) const { return all()[i]; }

private:
  struct Part;
  struct Shared;
  Shared &own();
  std::shared_ptr<Shared> shared;
};

} // namespace optiml

#endif
