//===- ClosureStep.cpp - one step of a closure over a semiring ------------===//
//
// Every case of the kernel's threads must do what the step does to one cell, given what the blocked algorithm asks of
// the matrix when it runs (docs/transforms/launch-loop.md):
//
//   op, with   the numbers that the matrix may hold
//   min, +     none is negative; no sum overflows
//   max, *     between 0 and 1
//   min, max   any but NaN; so with max, min
//   |, &       any
//   |, &       0 and 1, where the kernel branches on them
//
// Then a op (a with b) is a: what goes through a vertex twice is no better. So row k and column k do not change in
// step k, a case may leave such a cell alone, and the steps of a tile may use values of later steps.
//
//===----------------------------------------------------------------------===//
#include "optiml/Transforms/ClosureStep.h"
#include "optiml/Analysis/ThreadCases.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

struct Semiring {
  const char *op, *with;
};
constexpr Semiring semirings[] = {{"min", "+"}, {"max", "min"}, {"min", "max"}, {"max", "*"}, {"|", "&"}};

/// Where a thread's cell is in the matrix.
struct Cell {
  Poly row, column, pitch;
  /// Of what the kernel bounds, and how many threads there are of it, in C++.
  std::vector<std::pair<Poly, std::string>> indices;
  bool flat = false; ///< `indices` is one, of the cell in the matrix
};

std::string threadsAlongAxis(unsigned axis) {
  return "(long long)" + axisName("launch.launchGrid", axis) + " * " + axisName("launch.launchBlock", axis);
}

/// What stands for globalIdx.a in a kernel, and what that asks of a launch, in C++.
struct Axes {
  std::array<std::string, 3> threads = {threadsAlongAxis(0), threadsAlongAxis(1), threadsAlongAxis(2)};
  std::vector<std::string> when;
};

class Reader {
public:
  Reader(const Kernel &kernel, const ThreadCases &cases, Axes axes)
      : kernel(kernel), cases(cases), axes(std::move(axes)) {}

  llvm::Expected<LaunchIdiom> run() {
    const ThreadCase::Store *store = nullptr;
    for (const ThreadCase &c : cases.cases) {
      if (c.stores.empty())
        continue;
      if (c.stores.size() != 1 || (store && !(store->index == c.stores[0].index && store->array == c.stores[0].array)))
        return notApplicable("a thread writes more than its own element");
      store = &c.stores[0];
    }
    if (!store || !element(store->array))
      return notApplicable("it updates no matrix of numbers");
    for (const Cell &candidate : cells(store->index))
      for (const Param &param : kernel.params) {
        if (!param.type.isInt())
          continue;
        cell = candidate;
        step = Poly::atom(param.name);
        own = elementTerm(store->array, store->index);
        first = elementTerm(store->array, cell.row * cell.pitch + step);
        second = elementTerm(store->array, step * cell.pitch + cell.column);
        if (findForm())
          for (const Semiring &ring : semirings)
            if (isStepOf(ring))
              return idiom;
      }
    return notApplicable("it is not m[i][j] = min(m[i][j], m[i][k] + m[k][j]), or the like, for all cells");
  }

private:
  const Kernel &kernel;
  const ThreadCases &cases;
  Axes axes;
  LaunchIdiom idiom;
  Cell cell;
  Poly step;
  std::string own, first, second;
  std::vector<std::pair<Poly, Poly>> ends; ///< of the cell's indices that the kernel bounds
  std::vector<Poly> demands;               ///< of the arguments, where it writes

  bool element(const std::string &array) {
    auto p = llvm::find_if(kernel.params, [&](const Param &param) { return param.name == array; });
    if (p == kernel.params.end() || !p->type.pointee || p->type.pointee->isVolatile)
      return false;
    const Type &type = *p->type.pointee;
    if (type.cls != Type::Class::Int && !(type.isFloat() && type.bytes >= 4))
      return false;
    idiom.kind = LaunchIdiom::Kind::ClosureStep;
    idiom.in = idiom.out = array;
    idiom.element = type.text;
    idiom.isFloat = type.isFloat();
    idiom.isSigned = type.isFloat() || type.isSigned;
    idiom.bytes = type.bytes;
    return true;
  }

  /// The ways in which the index of an element is that of a cell.
  std::vector<Cell> cells(const Poly &index) const {
    std::vector<Cell> found;
    for (unsigned row = 0; row < 3; ++row)
      for (unsigned column = 0; column < 3; ++column) {
        Poly i = Poly::atom(axisName("globalIdx", row));
        Poly j = Poly::atom(axisName("globalIdx", column));
        auto pitch = index.coefficient(*i.atoms().begin());
        if (row != column && pitch && cases.uniform(*pitch) && index == *pitch * i + j)
          found.push_back({i, j, *pitch, {{i, axes.threads[row]}, {j, axes.threads[column]}}, false});
      }
    const Poly flat = Poly::atom("globalIdx.x");
    for (const auto &[name, quotient] : cases.atoms) {
      if (quotient.op != "/" || !(quotient.a == flat) || !cases.uniform(quotient.b))
        continue;
      Poly row = Poly::atom(name);
      std::vector<Poly> columns = {flat - row * quotient.b};
      for (const auto &[other, remainder] : cases.atoms)
        if (remainder.op == "%" && remainder.a == flat && remainder.b == quotient.b)
          columns.push_back(Poly::atom(other));
      for (const Poly &column : columns)
        if (index == flat || index == row * quotient.b + column)
          found.push_back({row, column, quotient.b, {{flat, axes.threads[0]}}, true});
    }
    return found;
  }

  bool isExcluded(const ThreadCase &c) const { return contradict(c.facts, demands); }

  /// What a launch must be like to be a step over all cells.
  bool findForm() {
    const ThreadCase *writes = nullptr;
    for (const ThreadCase &c : cases.cases) {
      if (c.stores.empty())
        continue;
      std::vector<Poly> asked;
      for (const Poly &fact : c.facts)
        if (cases.uniform(fact) && !llvm::is_contained(asked, fact))
          asked.push_back(fact);
      if (writes && asked != demands)
        return false;
      demands = std::move(asked);
      writes = &c;
    }
    LaunchIdiom::Form form;
    form.when = axes.when;
    for (const Poly &demand : demands)
      form.when.push_back("(" + cases.cxx(demand) + ") >= 0");
    ends.clear();
    std::vector<std::string> extents;
    for (const auto &[index, threads] : cell.indices) {
      std::string extent = threads;
      for (const Poly &fact : writes->facts)
        if (Poly end = fact + index + Poly(1);
            cases.uniform(end) && !cases.uniform(fact) && !end.mentions(*step.atoms().begin())) {
          ends.push_back({index, end});
          extent = cases.cxx(end);
          break;
        }
      form.when.push_back(threads + " >= " + extent);
      extents.push_back(std::move(extent));
    }
    if (!cell.flat)
      form.when.push_back("(" + extents[0] + ") == (" + extents[1] + ")");
    else
      form.when.push_back("(" + extents[0] + ") == (" + cases.cxx(cell.pitch) + ") * (" + cases.cxx(cell.pitch) + ")");
    for (unsigned axis = 0; axis < 3; ++axis)
      if (llvm::none_of(cell.indices,
                        [&](const auto &i) { return i.first == Poly::atom(axisName("globalIdx", axis)); }))
        form.when.push_back(axes.threads[axis] + " == 1");
    form.pitch = cases.cxx(cell.pitch);
    form.count = cell.flat ? form.pitch : extents[0];
    form.step = cases.cxx(step);
    idiom.forms = {std::move(form)};
    return true;
  }

  bool isInside(const ThreadCase &c) const {
    return llvm::all_of(ends, [&](const auto &end) { return c.holds(end.second - end.first - Poly(1)); });
  }
  bool isOutside(const ThreadCase &c) const {
    return llvm::any_of(ends, [&](const auto &end) { return c.holds(end.first - end.second); });
  }
  /// Its cell is of row k or of column k.
  bool isOfTheStep(const ThreadCase &c) const {
    return llvm::any_of(std::initializer_list<Poly>{cell.row, cell.column},
                        [&](const Poly &index) { return c.holds(index - step) && c.holds(step - index); });
  }

  bool isStepOf(const Semiring &ring) {
    idiom.op = ring.op;
    idiom.with = ring.with;
    idiom.infinite.clear();
    tested.clear();
    if (idiom.isFloat ? ring.op == std::string("|") : ring.with == std::string("*"))
      return false;
    std::string through = operationTerm(ring.with, first, second);
    if (llvm::all_of(cases.cases, [&](const ThreadCase &c) { return isExcluded(c) || does(c, through); })) {
      idiom.infiniteAlone = !idiom.infinite.empty() && tested == std::set<std::string>{first, second};
      return true;
    }
    // Numbers that are branched on.
    idiom.infinite = "1";
    tested.clear();
    return ring.op == std::string("|") &&
           llvm::all_of(cases.cases, [&](const ThreadCase &c) { return isExcluded(c) || doesForBits(c); });
  }

  std::set<std::string> tested; ///< factors that are compared with the number for "no path"

  /// The case does what the step does.
  bool does(const ThreadCase &c, const std::string &through) {
    if (isOutside(c))
      return c.stores.empty();
    bool isLess = idiom.op == "min"; // the better one
    const std::string &a = isLess ? through : own, &b = isLess ? own : through;
    bool better = c.tests.count(a + " < " + b) || c.tests.count(a + " <= " + b);
    bool worse = c.tests.count(b + " < " + a) || c.tests.count(b + " <= " + a);
    if (c.stores.empty() || c.stores[0].value == own)
      return isOfTheStep(c) || (idiom.op != "|" && worse) || (idiom.with == "+" && hasNoPath(c));
    const std::string &value = c.stores[0].value;
    return isInside(c) &&
           (value == operationTerm(idiom.op, own, through) || (idiom.op != "|" && better && value == through));
  }

  /// One of the factors is the number for "no path", or greater; which one and what that number is are noted.
  bool hasNoPath(const ThreadCase &c) {
    for (const std::string &factor : {first, second})
      for (const std::string &test : c.tests) {
        llvm::StringRef rest = test;
        bool known = rest.consume_front(factor + " == ") || rest.consume_back(" == " + factor) ||
                     rest.consume_back(" <= " + factor);
        std::string number = known ? numberText(rest) : "";
        if (number.empty() || (!idiom.infinite.empty() && idiom.infinite != number))
          continue;
        idiom.infinite = number;
        tested.insert(factor);
        return true;
      }
    return false;
  }

  /// C++ of a constant or an argument.
  std::string numberText(llvm::StringRef term) const {
    bool isInteger = term.consume_front("{") && term.consume_back("}");
    for (const Param &p : kernel.params)
      if (p.name == term && (p.type.isInt() || p.type.isFloat()))
        return "launch." + p.name;
    long long value;
    if (isInteger)
      return term.getAsInteger(10, value) ? "" : term.str() + "ll";
    bool isNumber = !term.empty() && (llvm::isDigit(term[0]) || term[0] == '.');
    return isNumber ? term.str() : "";
  }

  /// The same where all elements are 0 or 1: by trying them.
  bool doesForBits(const ThreadCase &c) const {
    if (isOutside(c))
      return c.stores.empty();
    if (isOfTheStep(c) && c.stores.empty())
      return true;
    if (!isInside(c) && !c.stores.empty())
      return false;
    for (unsigned bits = 0; bits < 8; ++bits) {
      const std::map<std::string, int> values = {
          {own, bits & 1}, {first, bits >> 1 & 1}, {second, bits >> 2 & 1}, {"{0}", 0}, {"{1}", 1}};
      bool possible = true;
      for (const std::string &test : c.tests) {
        auto holds = testOf(test, values);
        if (!holds)
          return false;
        possible &= *holds;
      }
      if (!possible)
        continue;
      int result = values.at(own);
      if (!c.stores.empty()) {
        auto stored = values.find(c.stores[0].value);
        if (stored == values.end())
          return false;
        result = stored->second;
      }
      if (result != (values.at(own) | (values.at(first) & values.at(second))))
        return false;
    }
    return true;
  }

  static std::optional<bool> testOf(const std::string &test, const std::map<std::string, int> &values) {
    for (const char *op : {" == ", " != ", " < ", " <= "}) {
      auto [a, b] = llvm::StringRef(test).split(op);
      auto x = values.find(a.str()), y = values.find(b.str());
      if (x == values.end() || y == values.end())
        continue;
      llvm::StringRef comparison = llvm::StringRef(op).trim();
      return comparison == "=="   ? x->second == y->second
             : comparison == "!=" ? x->second != y->second
             : comparison == "<"  ? x->second < y->second
                                  : x->second <= y->second;
    }
    return std::nullopt;
  }
};

/// An index that is used alone along an axis becomes the global index; where a row of threads has rows of its own
/// ("m[blockIdx.x * n + threadIdx.x]"), that is an axis more.
Axes adoptAxes(Kernel &kernel) {
  Axes axes;
  const std::set<std::string> block = {"blockIdx"}, thread = {"threadIdx"}, both = {"blockIdx", "threadIdx"};
  auto rename = [&](const std::string &from, unsigned axis) {
    substitute(*kernel.body, {{from, builtin(axisName("globalIdx", axis))}});
  };
  if (builtinsOf(kernel, 0) == both && builtinsOf(kernel, 1).empty()) {
    rename("threadIdx.x", 0);
    rename("blockIdx.x", 1);
    axes.when.push_back(threadsAlongAxis(1) + " == 1");
    axes.threads = {"(long long)launch.launchBlock.x", "(long long)launch.launchGrid.x", threadsAlongAxis(2)};
    return axes;
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    const std::set<std::string> used = builtinsOf(kernel, axis);
    if (used != block && used != thread)
      continue;
    axes.when.push_back(axisName(used == block ? "launch.launchBlock" : "launch.launchGrid", axis) + " == 1");
    rename(axisName(used.begin()->c_str(), axis), axis);
  }
  return axes;
}

} // namespace

llvm::Expected<LaunchIdiom> optiml::recognizeClosureStep(const Kernel &kernel) {
  std::shared_ptr<Kernel> normal = kernel.clone();
  normal->least.clear();
  Axes axes = adoptAxes(*normal);
  for (const AxisUse &axis : normalizeGlobalIndex(*normal, {0, 0, 0}))
    if (axis.other)
      return notApplicable("line {0}: it uses a thread's place in its block", axis.otherLine);
  auto cases = threadCases(*normal);
  if (!cases)
    return cases.takeError();
  return Reader(*normal, *cases, std::move(axes)).run();
}
