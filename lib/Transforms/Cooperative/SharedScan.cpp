//===- SharedScan.cpp - scans of shared memory by a block -----------------===//
#include "SharedScan.h"
#include "optiml/Analysis/BlockRunner.h"
#include "llvm/ADT/STLExtras.h"
#include <bitset>

using namespace optiml;

namespace {
constexpr int64_t mostElements = 4 * mostThreads;

/// Runs statements on the sets of threads whose values each place stands for.
class ScanRunner : public BlockRunner {
public:
  ScanRunner(const KernelModel &model, int64_t threads, Stmt &list, size_t first)
      : BlockRunner(model, threads), list(list), first(first), before(model, threads) {
    const ActiveThreads all(size_t(threads), true);
    for (size_t i = 0; i < first; ++i) {
      Stmt &s = *list.body[i];
      walkExprs(s, [&](const ExprRef &e) {
        if (isChange(e) && e->args[0]->kind == ExprKind::Var)
          value.variables.erase(e->args[0]->text);
      });
      if (s.kind == StmtKind::Decl && s.expr && s.dims.empty() && !s.isShared && s.type.isInt() && !s.type.isVolatile)
        value.set(s.text, s.type, s.expr, all);
    }
    before.variables = value.variables;
  }

  /// The scan, where everything that was run so far is one.
  std::optional<SharedScan> scan() const {
    if (!source || !fold || !type || !synchronizes() ||
        (hasZeros && fold->op != "+" && fold->op != "|" && fold->op != "^"))
      return std::nullopt;
    SharedScan result;
    result.fold = *fold;
    result.type = *type;
    result.source = *source;
    result.stores = stores;
    for (const auto &[name, values] : locals) {
      if (inner.count(name))
        continue;
      bool unchanged = name == source->name;
      for (size_t t = 0; t < values.size(); ++t)
        unchanged &= values[t] == Threads().set(t);
      if (unchanged)
        continue;
      if (!isScan(values, 0, false))
        return std::nullopt;
      result.results.push_back({name, -1, false});
    }
    for (const auto &[name, array] : arrays) {
      if (!llvm::is_contained(array.written, true))
        continue;
      auto place = resultOf(name, array);
      std::set<int64_t> &spoilt = result.spoilt[name];
      for (size_t i = 0; i < array.written.size(); ++i)
        if (array.written[i] && !(place && int64_t(i) >= place->first && int64_t(i) < place->first + threads))
          spoilt.insert(int64_t(i));
      if (place)
        result.results.push_back(*place);
    }
    for (const auto &[name, values] : value.variables) {
      auto old = before.variables.find(name);
      bool isChanged = old == before.variables.end() || old->second != values;
      bool alike = llvm::all_of(values, [&, &values = values](int64_t v) { return v == values.front(); });
      if (inner.count(name))
        continue;
      if (isChanged && !alike)
        return std::nullopt;
      if (alike)
        result.integers[name] = values.front();
      if (isChanged)
        result.changed.insert(name);
    }
    if (result.results.empty())
      return std::nullopt;
    return result;
  }

private:
  using Threads = std::bitset<mostThreads>;
  using Value = std::optional<Threads>; ///< nothing: not known
  struct Array {
    std::vector<Value> holds;
    SharedTouches touches;
    std::vector<bool> written;
  };

  bool declare(const Stmt &s, const ActiveThreads &active) override {
    if (!s.dims.empty() || s.isShared || s.type.isVolatile)
      return false;
    inner.insert(s.text);
    locals.erase(s.text);
    value.variables.erase(s.text);
    if (!s.expr)
      return hasType(s.type);
    if (s.type.isInt() && value.set(s.text, s.type, s.expr, active))
      return true;
    ExprRef target = var(s.text, s.type);
    if (!local(target))
      return false;
    return assignLocal(target, s.expr, active);
  }

  bool execute(const Stmt &s, const ActiveThreads &active) override {
    const ExprRef &e = s.expr;
    if (s.kind != StmtKind::Expr || e->kind != ExprKind::Assign)
      return false;
    const ExprRef &target = e->args[0];
    ExprRef from = newValue(e);
    if (target->kind == ExprKind::Var)
      return assignLocal(target, from, active);
    for (int64_t t = 0; t < threads; ++t)
      if (active[size_t(t)]) {
        Value v = of(from, t);
        auto place = sharedPlace(model, value, target, t);
        Array *into = v && place ? array(*place->declaration) : nullptr;
        if (!into || place->element >= int64_t(into->holds.size()) || !into->touches.touch(place->element, t, true))
          return false;
        into->holds[size_t(place->element)] = v;
        into->written[size_t(place->element)] = true;
      }
    return true;
  }

  void meet() override {
    for (auto &[name, array] : arrays)
      array.touches.meet();
  }

  bool assignLocal(const ExprRef &target, const ExprRef &from, const ActiveThreads &active) {
    for (int64_t t = 0; t < threads; ++t)
      if (active[size_t(t)]) {
        Value v = of(from, t); // may move what local() points to
        std::vector<Value> *values = v ? local(target) : nullptr;
        if (!values)
          return false;
        (*values)[size_t(t)] = v;
      }
    return true;
  }

  /// Null unless it is a local of one value; known from here on.
  std::vector<Value> *local(const ExprRef &target) {
    const Stmt *declaration = model.declaration(target->text);
    if (auto it = locals.find(target->text); it != locals.end())
      return &it->second;
    if (!declaration || declaration->isShared || !declaration->dims.empty() || !hasType(declaration->type))
      return nullptr;
    std::vector<Value> values(static_cast<size_t>(threads));
    if (auto it = value.variables.find(target->text); it != value.variables.end()) {
      if (llvm::any_of(it->second, [](int64_t v) { return v != 0; }))
        return nullptr;
      hasZeros = true;
      values.assign(size_t(threads), Threads());
      value.variables.erase(it);
    } else if (declaration->expr && !inner.count(target->text)) {
      if (!isSource(target->text, -1, declaration->type))
        return nullptr;
      for (size_t t = 0; t < values.size(); ++t)
        values[t] = Threads().set(t);
    }
    return &(locals[target->text] = std::move(values));
  }

  Value of(const ExprRef &e, int64_t thread) {
    switch (e->kind) {
    case ExprKind::IntLit: hasZeros = true; return e->value == 0 ? Value(Threads()) : std::nullopt;
    case ExprKind::FloatLit:
      hasZeros = true;
      return std::strtod(e->text.c_str(), nullptr) == 0 ? Value(Threads()) : std::nullopt;
    case ExprKind::Cast: return hasType(e->type) ? of(e->args[0], thread) : std::nullopt;
    case ExprKind::Var: {
      std::vector<Value> *values = local(e);
      return values ? (*values)[size_t(thread)] : std::nullopt;
    }
    case ExprKind::Subscript: return element(e, thread);
    case ExprKind::Cond: {
      auto c = value(e->args[0], thread);
      return c ? of(e->args[*c ? 1 : 2], thread) : std::nullopt;
    }
    case ExprKind::Binary:
      if (e->text != "+" && e->text != "*" && e->text != "&" && e->text != "|" && e->text != "^")
        return std::nullopt;
      return hasType(e->type) ? folded(of(e->args[0], thread), of(e->args[1], thread), {Fold::Kind::Operator, e->text})
                              : std::nullopt;
    case ExprKind::Call:
      if (!e->pure || e->args.size() != 2 || !isMinMax(e->text) || !hasType(e->type))
        return std::nullopt;
      return folded(of(e->args[0], thread), of(e->args[1], thread), {Fold::Kind::Call, e->text});
    default: return std::nullopt;
    }
  }

  Value element(const ExprRef &e, int64_t thread) {
    auto place = sharedPlace(model, value, e, thread);
    Array *from = place ? array(*place->declaration) : nullptr;
    if (!from || place->element >= int64_t(from->holds.size()) || !from->touches.touch(place->element, thread, false))
      return std::nullopt;
    return from->holds[size_t(place->element)];
  }

  Value folded(const Value &a, const Value &b, Fold by) {
    if (!a || !b)
      return std::nullopt;
    if (!fold)
      fold = by;
    if (!(*fold == by) || (!by.isIdempotent() && (*a & *b).any()))
      return std::nullopt;
    return *a | *b;
  }

  Array *array(const Stmt &declaration) {
    auto [it, added] = arrays.try_emplace(declaration.text);
    Array &array = it->second;
    if (!added)
      return array.holds.empty() ? nullptr : &array;
    int64_t elements = 1;
    for (const ExprRef &dim : declaration.dims)
      elements =
          std::min(mostElements + 1, elements * (dim ? constantValue(dim).value_or(mostElements + 1) : mostElements));
    if (elements > mostElements || elements < threads || !hasType(declaration.type))
      return nullptr;
    array.holds.resize(size_t(elements));
    array.written.resize(size_t(elements));
    array.touches = SharedTouches(size_t(elements));
    if (auto from = findOwnStores(model, before, threads, list, first, declaration.text, stores);
        from && *from + threads <= elements)
      if (!source && isSource(declaration.text, *from, declaration.type))
        for (int64_t t = 0; t < threads; ++t)
          array.holds[size_t(*from + t)] = Threads().set(size_t(t));
    return &array;
  }

  /// All values come from one place.
  bool isSource(const std::string &name, int64_t from, const Type &t) {
    if (!hasType(t))
      return false;
    if (!source)
      source = SharedScan::Place{name, from, false};
    return source->name == name;
  }

  bool hasType(const Type &t) {
    if (!(t.cls == Type::Class::Int || t.isFloat()) || (t.bytes != 4 && t.bytes != 8) || t.isVolatile)
      return false;
    if (!type)
      type = t.withConst(false);
    return t.sameNumber(*type);
  }

  bool isScan(const std::vector<Value> &values, int64_t from, bool exclusive) const {
    Threads wanted;
    for (int64_t t = 0; t < threads; ++t) {
      if (!exclusive)
        wanted.set(size_t(t));
      if (values[size_t(from + t)] != wanted)
        return false;
      wanted.set(size_t(t));
    }
    return true;
  }

  std::optional<SharedScan::Place> resultOf(const std::string &name, const Array &array) const {
    for (int64_t from = 0; from + threads <= int64_t(array.holds.size()); ++from)
      for (bool exclusive : {false, true})
        if (isScan(array.holds, from, exclusive) &&
            (!exclusive || fold->kind == Fold::Kind::Operator)) // others have no neutral element here
          return SharedScan::Place{name, from, exclusive};
    return std::nullopt;
  }

  Stmt &list;
  size_t first;
  ThreadValues before;                              ///< the statements
  std::map<std::string, std::vector<Value>> locals; ///< of the scanned type
  std::set<std::string> inner;                      ///< declared by the statements
  std::map<std::string, Array> arrays;
  std::optional<SharedScan::Place> source;
  std::optional<Type> type;
  std::optional<Fold> fold;
  std::set<const Stmt *> stores;
  bool hasZeros = false;
};
} // namespace

// Values

// Statements

// What came of it

/// The longest run of statements from `first` on that is a scan.
static std::optional<SharedScan> scanAt(const KernelModel &model, Stmt &list, size_t first, int64_t threads) {
  std::optional<SharedScan> best;
  ScanRunner runner(model, threads, list, first);
  // What it declares may be used later.
  for (size_t i = first; i < list.body.size() && list.body[i]->kind != StmtKind::Decl && runner.run(*list.body[i]); ++i)
    if (auto scan = runner.scan()) {
      static_cast<StatementRange &>(*scan) = {&list, first, i + 1};
      best = std::move(scan);
    }
  return best;
}

bool optiml::mayStart(const Stmt &s) {
  return s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::If || s.kind == StmtKind::Expr;
}

std::vector<SharedScan> optiml::findScans(Kernel &kernel, const KernelModel &model, int64_t threads) {
  std::vector<SharedScan> result;
  if (threads < 2 || threads > mostThreads)
    return result;
  walk(*kernel.body, [&](Stmt &list) {
    if (list.kind != StmtKind::Block || !hasBarrier(list))
      return;
    for (size_t i = 0; i < list.body.size(); ++i)
      if (mayStart(*list.body[i]))
        if (auto scan = scanAt(model, list, i, threads)) {
          i = scan->end - 1;
          result.push_back(std::move(*scan));
        }
  });
  return result;
}

// Uses

/// Local integers whose values after the range are still theirs wherever they are read.
static ThreadValues valuesAfter(const SharedScan &scan, Kernel &kernel, const KernelModel &model, int64_t threads) {
  ThreadValues value(model, threads);
  for (const auto &[name, last] : scan.integers)
    value.variables[name] = std::vector<int64_t>(size_t(threads), last);
  std::set<const Stmt *> within;
  for (size_t i = scan.first; i < scan.end; ++i)
    walk(*scan.list->body[i], [&](Stmt &s) { within.insert(&s); });
  walk(*kernel.body, [&](Stmt &s) {
    if (within.count(&s))
      return;
    ownExprs(s, [&](ExprRef &own) {
      walk(own, [&](const ExprRef &e) {
        if (isChange(e) && e->args[0]->kind == ExprKind::Var)
          value.variables.erase(e->args[0]->text);
      });
    });
  });
  return value;
}

/// Whether a read after the range may be of what the original's steps would have left there.
static bool readsSpoilt(const std::set<int64_t> &spoilt, const ExprRef &node, const KernelModel &model,
                        const ThreadValues &value, int64_t threads) {
  if (spoilt.empty())
    return false;
  // The column may be anything: all of the row counts.
  ExprRef row = node;
  int64_t width = 1;
  const Stmt *declaration = model.declaration(subscriptedArray(node)->text);
  if (declaration->dims.size() == 2 && declaration->dims[1] && node->args[0]->kind == ExprKind::Subscript) {
    row = subscript(node->args[0], intLit(0), node->type);
    width = constantValue(declaration->dims[1]).value_or(0);
  }
  for (int64_t t = 0; t < threads; ++t) {
    auto at = sharedPlace(model, value, row, t);
    if (!at)
      return true;
    auto next = spoilt.lower_bound(at->element);
    if (next != spoilt.end() && *next < at->element + width)
      return true;
  }
  return false;
}

llvm::Error optiml::checkUses(const SharedScan &scan, Kernel &kernel, const KernelModel &model, int64_t threads,
                              const std::set<const Stmt *> &known) {
  ThreadValues value = valuesAfter(scan, kernel, model, threads);
  std::set<const Stmt *> after;
  for (size_t i = scan.end; i < scan.list->body.size(); ++i)
    walk(*scan.list->body[i], [&](Stmt &s) { after.insert(&s); });
  for (const auto &[array, spoilt] : scan.spoilt) {
    if (!isOpenlyUsed(kernel, model, array))
      return notApplicable("'{0}' is used in a way that hides what is accessed", array);
    for (const Access &access : model.accesses())
      if (access.array == array && !known.count(access.stmt) &&
          (access.write || !after.count(access.stmt) || readsSpoilt(spoilt, access.node, model, value, threads)))
        return notApplicable("'{0}' is used for something else than its scan (line {1})", array, access.stmt->line);
  }
  return llvm::Error::success();
}
