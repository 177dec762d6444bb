//===- ThreadCases.cpp - what one thread does, case by case ---------------===//
//
// The kernel is run on symbols. A condition splits the run in two: it is taken apart at &&, || and ! into facts, and
// runs whose facts contradict each other end.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/ThreadCases.h"
#include "optiml/Support/Error.h"
#include <algorithm>

using namespace optiml;

static constexpr size_t mostCases = 64;

std::string ThreadValue::str() const { return !pointer.empty() || !poly ? term : "{" + poly->str() + "}"; }

std::string optiml::elementTerm(const std::string &array, const Poly &index) { return array + "[" + index.str() + "]"; }

std::string optiml::operationTerm(const std::string &op, std::string a, std::string b) {
  if (b < a)
    std::swap(a, b);
  return op + "(" + a + "," + b + ")";
}

bool ThreadCases::uniform(const Poly &p) const {
  for (const std::string &name : p.atoms()) {
    if (llvm::StringRef(name).starts_with("globalIdx."))
      return false;
    auto it = atoms.find(name);
    if (it != atoms.end() && !(uniform(it->second.a) && uniform(it->second.b)))
      return false;
  }
  return true;
}

bool ThreadCase::holds(const Poly &p) const {
  if (auto constant = p.constant())
    return *constant >= 0;
  return std::any_of(facts.begin(), facts.end(), [&](const Poly &fact) {
    auto rest = (p - fact).constant();
    return rest && *rest >= 0;
  });
}

bool optiml::contradict(const std::vector<Poly> &a, const std::vector<Poly> &b) {
  for (const Poly &x : a)
    for (const Poly &y : b)
      if (auto sum = (x + y).constant(); sum && *sum < 0)
        return true;
  return false;
}

std::optional<std::vector<std::pair<std::vector<Poly>, std::vector<const ThreadCase *>>>>
ThreadCases::byArguments() const {
  std::vector<std::pair<std::vector<Poly>, std::vector<const ThreadCase *>>> result;
  for (const ThreadCase &c : cases) {
    std::vector<Poly> demands;
    for (const Poly &fact : c.facts)
      if (uniform(fact) && std::find(demands.begin(), demands.end(), fact) == demands.end())
        demands.push_back(fact);
    std::sort(demands.begin(), demands.end(), [](const Poly &a, const Poly &b) { return a.terms < b.terms; });
    auto same = std::find_if(result.begin(), result.end(), [&](const auto &g) { return g.first == demands; });
    if (same == result.end())
      same = result.insert(result.end(), {demands, {}});
    same->second.push_back(&c);
  }
  for (size_t i = 0; i < result.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!contradict(result[i].first, result[j].first))
        return std::nullopt;
  return result;
}

std::string ThreadCases::cxx(const Poly &p) const {
  std::string text;
  for (const auto &[monomial, factor] : p.terms) {
    std::string product = std::to_string(factor) + "ll";
    for (const std::string &name : monomial) {
      auto it = atoms.find(name);
      product += it == atoms.end()
                     ? " * (long long)launch." + name
                     : " * ((" + cxx(it->second.a) + ") " + it->second.op + " (" + cxx(it->second.b) + "))";
    }
    text += (text.empty() ? "" : " + ") + product;
  }
  return text.empty() ? "0ll" : text;
}

namespace {

struct Run {
  ThreadCase so;
  std::map<std::string, ThreadValue> locals;
  bool ended = false;
};

/// Its value is 0 or 1: a comparison, or conditions together.
bool isCondition(const ExprRef &e) {
  return isUnary(e, "!") ||
         (e->kind == ExprKind::Binary && (e->text == "&&" || e->text == "||" || !inverseComparison(e->text).empty()));
}

/// The first choice in it that has none in its condition: a ?:, or a condition as a value.
ExprRef firstChoice(const ExprRef &e) {
  ExprRef found;
  for (const ExprRef &arg : e->args)
    if (!found && !isCondition(e))
      found = firstChoice(arg);
  return found || (e->kind != ExprKind::Cond && !isCondition(e)) ? found : e;
}

class Walker {
public:
  explicit Walker(const Kernel &kernel) : kernel(kernel) {}

  llvm::Expected<ThreadCases> run() {
    std::vector<Run> runs = stmts(kernel.body->body, {Run()});
    if (!failure.empty())
      return notApplicable("{0}", failure);
    for (Run &run : runs)
      result.cases.push_back(std::move(run.so));
    return std::move(result);
  }

private:
  const Kernel &kernel;
  ThreadCases result;
  std::string failure;

  ThreadValue fail(const std::string &why) {
    if (failure.empty())
      failure = why;
    return {Poly(0)};
  }

  std::vector<Run> stmts(const std::vector<StmtRef> &list, std::vector<Run> runs) {
    for (const StmtRef &s : list) {
      std::vector<Run> next;
      for (Run &run : runs) {
        if (run.ended) {
          next.push_back(std::move(run));
          continue;
        }
        llvm::append_range(next, stmt(*s, std::move(run)));
      }
      runs = std::move(next);
      if (runs.size() > mostCases)
        fail("it has too many cases");
      if (!failure.empty())
        break;
    }
    return runs;
  }

  std::vector<Run> stmt(const Stmt &s, Run run) {
    switch (s.kind) {
    case StmtKind::Block: return stmts(s.body, {run});
    case StmtKind::Decl: {
      if (!s.dims.empty() || s.isShared) {
        fail("an array of its own");
        return {run};
      }
      run.locals[s.text] = {Poly(0)}; // "int t;" is assigned before it is read
      if (!s.expr)
        return {run};
      return effect(assign("=", var(s.text, s.type), s.expr), run);
    }
    case StmtKind::Expr: return effect(s.expr, run);
    case StmtKind::If: {
      std::vector<Run> result;
      for (bool taken : {true, false})
        for (const Run &next : split(s.expr, taken, run)) {
          size_t branch = taken ? 0 : 1;
          llvm::append_range(result, branch < s.body.size() ? stmt(*s.body[branch], next) : std::vector<Run>{next});
        }
      return result;
    }
    case StmtKind::Return: run.ended = true; return {run};
    default:
      fail("line " + std::to_string(s.line) + ": a loop, a barrier, or something that is not understood");
      return {run};
    }
  }

  std::vector<Run> effect(const ExprRef &e, Run run) {
    if (ExprRef choice = firstChoice(e)) {
      std::vector<Run> result;
      const bool isValue = choice->kind != ExprKind::Cond;
      for (unsigned side : {1u, 2u}) {
        ExprRef taken = isValue ? intLit(side == 1, choice->type) : choice->args[side];
        ExprRef simpler = rewrite(e, [&](const ExprRef &n) { return equal(n, choice) ? taken : nullptr; });
        for (const Run &next : split(isValue ? choice : choice->args[0], side == 1, run))
          llvm::append_range(result, effect(simpler, next));
      }
      return result;
    }
    if (!isChange(e)) {
      fail("a statement that is not understood");
      return {run};
    }
    const ExprRef &target = e->args[0];
    ExprRef full = newValue(e);
    ThreadValue v = value(full, run);
    // Conversions that the source leaves to the compiler: only of integers
    // that count, and of elements to a wider integer type and back.
    bool counts = v.poly && v.pointer.empty() && target->type.isInt() && (target->type.bytes >= 4 || isSmall(*v.poly));
    bool widens = full->type.cls == Type::Class::Int && target->type.cls == Type::Class::Int && target->type.isSigned &&
                  target->type.bytes > full->type.bytes && !v.fits.empty();
    bool same = full->type.text == target->type.text || (!v.fits.empty() && v.fits == target->type.text);
    if (v.pointer.empty() && !counts && !widens && !same)
      fail("a conversion from " + full->type.text + " to " + target->type.text);
    if (target->kind == ExprKind::Var && run.locals.count(target->text)) {
      run.locals[target->text] = v;
      return {run};
    }
    auto at = place(target, run);
    if (!at || !v.pointer.empty()) {
      fail("a store that is not understood");
      return {run};
    }
    for (ThreadCase::Store &store : run.so.stores)
      if (store.array == at->first && store.index == at->second) {
        store.value = v.str();
        return {run};
      }
    run.so.stores.push_back({at->first, at->second, v.str()});
    return {run};
  }

  std::vector<Run> split(const ExprRef &condition, bool taken, const Run &run) {
    const Expr &e = *condition;
    auto both = [&](const ExprRef &a, bool takenA, const ExprRef &b, bool takenB) {
      std::vector<Run> result;
      for (const Run &first : split(a, takenA, run))
        llvm::append_range(result, split(b, takenB, first));
      return result;
    };
    if (e.kind == ExprKind::Unary && e.text == "!")
      return split(e.args[0], !taken, run);
    if (e.kind == ExprKind::Binary && (e.text == "&&" || e.text == "||")) {
      bool conjunction = (e.text == "&&") == taken;
      if (conjunction)
        return both(e.args[0], taken, e.args[1], taken);
      std::vector<Run> result = split(e.args[0], taken, run);
      llvm::append_range(result, both(e.args[0], !taken, e.args[1], taken));
      return result;
    }
    ThreadValue a, b{Poly(0)};
    std::string op = "!=";
    if (e.kind == ExprKind::Binary && !inverseComparison(e.text).empty()) {
      op = e.text;
      a = value(e.args[0], run);
      b = value(e.args[1], run);
    } else {
      a = value(condition, run);
    }
    if (!taken)
      op = inverseComparison(op);
    if (!a.pointer.empty() || !b.pointer.empty())
      fail("pointers are compared");
    std::vector<Run> result;
    auto with = [&](std::vector<Poly> facts, const std::string &test = "") {
      Run next = run;
      for (const Poly &fact : facts)
        if (!fact.constant())
          next.so.facts.push_back(fact);
        else if (*fact.constant() < 0)
          return;
      if (!test.empty())
        next.so.tests.insert(test);
      if (possible(next))
        result.push_back(std::move(next));
    };
    if (a.poly && b.poly) {
      Poly d = *a.poly - *b.poly;
      Poly reverse = Poly(0) - d;
      if (op == "<")
        with({reverse - Poly(1)});
      else if (op == "<=")
        with({reverse});
      else if (op == ">")
        with({d - Poly(1)});
      else if (op == ">=")
        with({d});
      else if (op == "==")
        with({d, reverse});
      else {
        with({d - Poly(1)});
        with({reverse - Poly(1)});
      }
      return result;
    }
    const bool isComparison = e.kind == ExprKind::Binary && !inverseComparison(e.text).empty();
    if (isComparison ? e.args[0]->type.text != e.args[1]->type.text : e.type.cls != Type::Class::Int)
      fail("values of different types are compared");
    std::string x = a.str(), y = b.str();
    if (op == ">" || op == ">=") {
      std::swap(x, y);
      op = op == ">" ? "<" : "<=";
    }
    with({}, x + " " + op + " " + y);
    return result;
  }

  /// A constant that all integer types hold.
  static bool isSmall(const Poly &p) {
    auto constant = p.constant();
    return constant && *constant >= 0 && *constant <= 1;
  }

  ThreadValue value(const ExprRef &e, const Run &run) {
    switch (e->kind) {
    case ExprKind::IntLit: return {Poly(e->value)};
    case ExprKind::FloatLit: return {std::nullopt, e->text, "", ""};
    case ExprKind::Builtin:
      if (!llvm::StringRef(e->text).starts_with("globalIdx."))
        return fail("the kernel uses " + e->text + " other than as the global index");
      return {Poly::atom(e->text)};
    case ExprKind::Var: {
      if (auto it = run.locals.find(e->text); it != run.locals.end())
        return it->second;
      for (const Param &p : kernel.params)
        if (p.name == e->text) {
          if (p.type.isPointer())
            return {Poly(0), "", p.name, ""};
          if (p.type.isInt())
            return {Poly::atom(p.name)};
          return {std::nullopt, p.name, "", ""};
        }
      return fail("'" + e->text + "' is neither a parameter nor a local variable");
    }
    case ExprKind::Cast: {
      ThreadValue v = value(e->args[0], run);
      if (e->type.isInt() && e->type.bytes >= 4 && v.poly && v.pointer.empty())
        return v;
      if (e->args[0]->type.text == e->type.text || (v.poly && v.pointer.empty() && isSmall(*v.poly) && e->type.isInt()))
        return v;
      const Type &from = e->args[0]->type;
      bool widens = from.cls == Type::Class::Int && e->type.cls == Type::Class::Int && from.bytes < e->type.bytes &&
                    (e->type.isSigned || !from.isSigned);
      return widens ? v : fail("a conversion to " + e->text);
    }
    case ExprKind::Subscript: return loadAt(e, run);
    case ExprKind::Unary: {
      if (e->text == "*")
        return loadAt(e, run);
      ThreadValue v = value(e->args[0], run);
      if (e->text == "+" || (e->text == "-" && v.poly && v.pointer.empty() && e->type.isSigned))
        return e->text == "+" ? v : ThreadValue{Poly(0) - *v.poly};
      return fail("the operator " + e->text);
    }
    case ExprKind::Binary: return binaryValue(e, run);
    case ExprKind::Call: return callValue(e, run);
    default: return fail("an expression that is not understood");
    }
  }

  ThreadValue binaryValue(const ExprRef &e, const Run &run) {
    ThreadValue a = value(e->args[0], run), b = value(e->args[1], run);
    if ((!a.pointer.empty() || !b.pointer.empty()) && (e->text == "+" || e->text == "-")) {
      if (!a.pointer.empty() && b.pointer.empty() && b.poly)
        return {e->text == "+" ? *a.poly + *b.poly : *a.poly - *b.poly, "", a.pointer, ""};
      if (a.pointer.empty() && a.poly && e->text == "+")
        return {*a.poly + *b.poly, "", b.pointer, ""};
      return fail("pointer arithmetic that is not understood");
    }
    if (a.poly && b.poly)
      return integer(e, a, b, run);
    if (e->args[0]->type.text != e->args[1]->type.text)
      return fail("operands of different types");
    static const std::set<std::string> commute = {"+", "*", "&", "|", "^"};
    std::string x = a.str(), y = b.str();
    if (commute.count(e->text) && y < x)
      std::swap(x, y);
    return {std::nullopt, e->text + "(" + x + "," + y + ")", "", ""};
  }

  ThreadValue callValue(const ExprRef &e, const Run &run) {
    static const std::map<std::string, std::string> known = {{"min", "min"},   {"max", "max"},   {"::min", "min"},
                                                             {"::max", "max"}, {"fminf", "min"}, {"fmaxf", "max"},
                                                             {"fmin", "min"},  {"fmax", "max"}};
    auto it = known.find(e->text);
    if (it != known.end() && e->args.size() == 2) {
      if (e->args[0]->type.text != e->args[1]->type.text)
        return fail("operands of different types");
      ThreadValue a = value(e->args[0], run), b = value(e->args[1], run);
      return {std::nullopt, operationTerm(it->second, a.str(), b.str()), "", a.fits == b.fits ? a.fits : ""};
    }
    return fail("a call of " + e->text);
  }

  ThreadValue integer(const ExprRef &e, const ThreadValue &a, const ThreadValue &b, const Run &run) {
    const std::string &op = e->text;
    if (op == "+")
      return {*a.poly + *b.poly};
    if (op == "*")
      return {*a.poly * *b.poly};
    if (op == "-") { // an unsigned difference is one where it is known not to be negative
      if (!e->type.isSigned && !run.so.holds(*a.poly - *b.poly))
        return fail("an unsigned difference that may be negative");
      return {*a.poly - *b.poly};
    }
    if (op == "&" &&
        b.poly->constant() == 1) // of what is not negative, as all indices and counts are where this is used
      return atom("%", *a.poly, Poly(2));
    if (op == "/" || op == "%" || op == "<<" || op == ">>")
      return atom(op, *a.poly, *b.poly);
    return fail("the operator " + op);
  }

  ThreadValue load(const std::string &array, const Poly &index, const Run &run) {
    for (const ThreadCase::Store &store : run.so.stores) {
      if (store.array != array)
        continue;
      if (!(store.index == index))
        return fail("an element is read after another one of the same array was written");
      return {std::nullopt, store.value, "", ""};
    }
    std::string type;
    for (const Param &p : kernel.params)
      if (p.name == array && p.type.pointee)
        type = p.type.pointee->text;
    return {std::nullopt, elementTerm(array, index), "", type};
  }

  /// The element that a subscript or *p stands for.
  std::optional<std::pair<std::string, Poly>> place(const ExprRef &e, const Run &run) {
    bool deref = isUnary(e, "*");
    if (!deref && e->kind != ExprKind::Subscript)
      return std::nullopt;
    ThreadValue base = value(e->args[0], run);
    ThreadValue index = deref ? ThreadValue{Poly(0)} : value(e->args[1], run);
    if (base.pointer.empty() || !index.poly)
      return std::nullopt;
    return std::make_pair(base.pointer, *base.poly + *index.poly);
  }

  ThreadValue loadAt(const ExprRef &e, const Run &run) {
    auto at = place(e, run);
    return at ? load(at->first, at->second, run) : fail("an access that is not understood");
  }

  ThreadValue atom(const std::string &op, const Poly &a, const Poly &b) {
    auto x = a.constant(), y = b.constant();
    if (x && y) {
      if (op == "<<" && *x >= 0 && *x < 1 << 20 && *y >= 0 && *y < 32)
        return {Poly(*x << *y)};
      if ((op == "/" || op == "%") && *y > 0)
        return {Poly(op == "/" ? *x / *y : *x % *y)};
    }
    std::string name = "(" + a.str() + " " + op + " " + b.str() + ")";
    result.atoms.try_emplace(name, ThreadAtom{op, a, b});
    return {Poly::atom(name)};
  }

  bool possible(const Run &run) const {
    const std::vector<Poly> &facts = run.so.facts;
    auto negative = [](const Poly &p) {
      auto c = p.constant();
      return c && *c < 0;
    };
    for (size_t i = 0; i < facts.size(); ++i) {
      for (const auto &[name, atom] : result.atoms) // a remainder of what is not negative
        if (auto divisor = atom.op == "%" ? atom.b.constant() : std::nullopt)
          if (facts[i].mentions(name) && negative(facts[i].substitute(name, Poly(0))) &&
              negative(facts[i].substitute(name, Poly(*divisor - 1))))
            return false;
      if (auto c = facts[i].constant(); c && *c < 0)
        return false;
      for (const char *index : {"globalIdx.x", "globalIdx.y", "globalIdx.z"})
        if (facts[i] == Poly::atom(index) * Poly(-1) - Poly(1))
          return false; // an index is not negative
      for (size_t j = 0; j < i; ++j)
        if (auto sum = (facts[i] + facts[j]).constant(); sum && *sum < 0)
          return false;
    }
    return true;
  }
};

} // namespace

llvm::Expected<ThreadCases> optiml::threadCases(const Kernel &kernel) { return Walker(kernel).run(); }
