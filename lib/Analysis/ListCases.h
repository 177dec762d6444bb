//===- ListCases.h - statements on a sorted list, run case by case -*- C++ -*-===//
#ifndef OPTIML_LIB_ANALYSIS_LISTCASES_H
#define OPTIML_LIB_ANALYSIS_LISTCASES_H

#include "optiml/Analysis/KeptList.h"

namespace optiml {

/// What the statements see: a list of `length` entries at most, of which `count` are there. The first `better` of them
/// are better than the new value, the next `equal` ones equal it.
struct ListCase {
  int64_t length = 0, count = 0, better = 0, equal = 0;
  int64_t iterations = 0;   ///< the value of the loop's counter
  bool isUnordered = false; ///< the new value is no number: every comparison with it is false
};

/// Runs statements on a case. Values of the list are only compared and moved, as are places; integers that depend on
/// nothing but these are computed as C++ does.
class ListMachine {
public:
  /// Which entry a value comes from; the new one.
  static constexpr int64_t theNewOne = -1;
  struct Value {
    enum class Kind { Unknown, Integer, Entry, Place, Outside } kind = Kind::Unknown;
    int64_t number = 0; ///< the integer, the entry
    ExprRef outside;    ///< what the statements do not compute from the list
    bool operator==(const Value &o) const = default;
  };

  /// `changed`: the names that the statements declare or assign. `counter`: the loop's, if it starts at 0 and counts
  /// by 1.
  ListMachine(const KernelModel &model, const KeptList &list, std::set<std::string> changed, std::string counter);

  /// False where the statements do something else, or what they do is not known in this case.
  bool run(const std::vector<StmtRef> &statements, const ListCase &start);

  // After a run:
  std::vector<Value> values, places; ///< by entry
  Value of(const std::string &variable) const;
  /// What was compared with the list's values or came in; what was stored beside it. Null where nothing was.
  ExprRef value, place;
  /// The counter was asked for.
  bool askedForCounter = false;
  /// The integer from outside that decides, but for a constant; it stands for the length minus `lengthOffset`.
  std::optional<Poly> deciding;
  int64_t lengthOffset = 0;

private:
  enum class Flow { Next, Break, Continue };
  std::optional<Flow> execute(const Stmt &s);
  std::optional<Flow> executeLoop(const Stmt &s);
  bool declare(const Stmt &s);
  Value evaluate(const ExprRef &e);
  Value evaluateCall(const ExprRef &e);
  Value evaluateBinary(const ExprRef &e);
  Value change(const ExprRef &e);
  Value fail();
  Value *placeOf(const ExprRef &target, const Type *&type);
  std::optional<int64_t> entryAt(const ExprRef &element, bool &isValue);
  std::optional<int64_t> computeEntry(const ExprRef &element, const Access &access, const KeptList::Array &array);
  std::optional<int64_t> integer(const Value &v);
  std::optional<int64_t> outsideInteger(const Poly &p);
  std::optional<bool> truth(const ExprRef &e);
  std::optional<bool> compare(const std::string &op, const ExprRef &a, const ExprRef &b);
  /// Makes an outside value the new one, or checks that it is.
  bool admit(Value &v, ExprRef &known, Value::Kind kind);
  bool fits(const Type &type, const Value &v) const;
  bool touches(const ExprRef &e);
  ExprRef resolved(const ExprRef &e) const;

  const KernelModel &model;
  const KeptList &list;
  std::set<std::string> changed;
  std::string counter;
  ListCase now;
  std::map<std::string, Value> variables;
  std::map<const Expr *, bool> touching;
  std::map<const Expr *, Poly> polys;
  std::map<const Expr *, const Access *> accesses;
  std::map<const Expr *, Poly> entries;
  /// Entries that were found in cases of the same length, by element and the integers in its index.
  struct Index {
    std::vector<std::string> variables;
    bool isPlain = true; ///< nothing else decides
    std::map<std::vector<int64_t>, std::optional<int64_t>> known;
  };
  std::map<const Expr *, Index> indices;
  int64_t steps = 0;
  bool failed = false;
};

} // namespace optiml

#endif
