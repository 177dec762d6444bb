//===- CanonicalForm.cpp - the same kernel, said more plainly -------------===//
#include "optiml/Canonicalize/CanonicalForm.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

// A variable for each member of a local struct

namespace {
class StructSplitter {
public:
  explicit StructSplitter(Kernel &kernel) : kernel(kernel), taken(allNames(kernel)) {}

  void run() {
    findStructs();
    if (structs.empty())
      return;
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      std::vector<StmtRef> result;
      for (const StmtRef &s : list) {
        if (s->kind != StmtKind::Decl || !structs.count(s->text)) {
          result.push_back(s);
          continue;
        }
        for (const auto &[field, type] : structs[s->text]) {
          ExprRef value;
          if (s->expr && structs.count(s->expr->text)) {
            value = var(member(s->expr->text, field), type);
          } else if (s->expr) {
            value = memberExpr(s->expr, field, type);
          }
          Type plain = type.withConst(false);
          result.push_back(atLine(s->line, declStmt(member(s->text, field), plain, value)));
        }
      }
      list = std::move(result);
    });
    rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
      bool splits = e->kind == ExprKind::Member && e->args[0]->kind == ExprKind::Var && structs.count(e->args[0]->text);
      return splits ? var(member(e->args[0]->text, e->text), e->type) : nullptr;
    });
  }

private:
  void findStructs() {
    for (const Param &p : kernel.params)
      if (p.type.cls == Type::Class::Record)
        params.insert(p.name);
    std::map<std::string, unsigned> uses, members;
    std::map<std::string, std::map<std::string, Type>> fields;
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Decl || s.type.cls != Type::Class::Record || s.isShared || !s.dims.empty() ||
          s.type.isVolatile)
        return;
      bool copies = s.expr && s.expr->kind == ExprKind::Var;
      if (!s.expr || copies)
        structs[s.text];
      if (copies)
        copyOf[s.text] = s.expr->text;
    });
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Var)
        ++uses[e->text];
      if (e->kind == ExprKind::Member && e->args[0]->kind == ExprKind::Var && !e->args[0]->type.isPointer()) {
        ++members[e->args[0]->text];
        fields[e->args[0]->text][e->text] = e->type;
      }
      if (isUnary(e, "&") && e->args[0]->kind == ExprKind::Member && e->args[0]->args[0]->kind == ExprKind::Var)
        ++uses[e->args[0]->args[0]->text]; // someone else may change it
    });
    for (const auto &[copy, source] : copyOf)
      ++members[source];
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = structs.begin(); it != structs.end();) {
        const std::string &name = it->first;
        auto source = copyOf.find(name);
        bool known = source == copyOf.end() || structs.count(source->second) || params.count(source->second);
        for (const auto &[copy, from] : copyOf) // a copy that stays needs the whole
          known &= from != name || structs.count(copy);
        if (known && uses[name] == members[name] && !opaqueMentions(*kernel.body, {name})) {
          ++it;
          continue;
        }
        it = structs.erase(it);
        changed = true;
      }
    }
    for (auto &[name, used] : structs)
      used = fields[name];
    for (size_t round = 0; round <= copyOf.size(); ++round)
      for (const auto &[copy, source] : copyOf)
        if (structs.count(copy) && structs.count(source))
          structs[source].insert(structs[copy].begin(), structs[copy].end());
  }

  std::string member(const std::string &name, const std::string &field) {
    std::string &result = names[{name, field}];
    if (result.empty())
      result = freshName(taken, name + "_" + field);
    return result;
  }

  Kernel &kernel;
  std::set<std::string> taken;
  std::set<std::string> params;                               ///< structs among them
  std::map<std::string, std::map<std::string, Type>> structs; ///< local structs: their members in use
  std::map<std::string, std::string> copyOf;
  std::map<std::pair<std::string, std::string>, std::string> names;
};
} // namespace

// A variable for each value

/// The value that "name = value;" gives it.
static ExprRef assignedTo(const Stmt &s, const std::string &name) {
  bool sets = isAssignStmt(s) && isVar(s.expr->args[0], name);
  return sets ? s.expr->args[1] : nullptr;
}

/// int i = a; … i = b; …   becomes   int i = a; … int i1 = b; …
static void splitValues(Kernel &kernel) {
  std::map<std::string, unsigned> changes = countChanges(*kernel.body);
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Stmt declared = *list[i];
      if (declared.kind != StmtKind::Decl || !declared.type.isInt() || declared.isShared || !declared.dims.empty() ||
          declared.type.isVolatile || !declared.expr || opaqueMentions(*kernel.body, {declared.text}))
        continue;
      unsigned here = 0;
      for (size_t k = i + 1; k < list.size(); ++k)
        here += assignedTo(*list[k], declared.text) != nullptr;
      if (!here || here != changes[declared.text])
        continue;
      std::map<std::string, ExprRef> current;
      for (size_t k = i + 1; k < list.size(); ++k) {
        ExprRef value = assignedTo(*list[k], declared.text);
        if (!value) {
          substitute(*list[k], current);
          continue;
        }
        StmtRef next = declStmt(freshName(taken, declared.text), declared.type, substitute(value, current));
        next->line = list[k]->line;
        list[k] = next;
        current[declared.text] = var(next->text, declared.type);
      }
    }
  });
}

// Conditions that only end a loop

/// The two values that `e` is the lesser of.
static std::optional<std::pair<ExprRef, ExprRef>> lesser(const KernelModel &model, const ExprRef &e) {
  if (e->kind == ExprKind::Var)
    if (const Stmt *d = model.singleAssignment(e->text))
      return lesser(model, d->expr);
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= e->args[0]->type.bytes)
    return lesser(model, e->args[0]);
  if (e->kind == ExprKind::Call && (e->text == "min" || e->text == "std::min") && e->isLibrary && e->args.size() == 2)
    return std::pair(e->args[0], e->args[1]);
  if (e->kind == ExprKind::Cond && e->args[0]->kind == ExprKind::Binary &&
      (e->args[0]->text == "<" || e->args[0]->text == "<=") && equal(e->args[0]->args[0], e->args[1]) &&
      equal(e->args[0]->args[1], e->args[2]))
    return std::pair(e->args[1], e->args[2]);
  return std::nullopt;
}

/// for (k = 0; k < 16 && t + k < n; ++k)   becomes   for (k = 0; k < 16; ++k) if (t + k < n)
static void splitLoopConditions(Kernel &kernel) {
  KernelModel model(kernel);
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::For || !s.expr || s.expr->kind != ExprKind::Binary || !s.init ||
        s.init->kind != StmtKind::Decl)
      return;
    std::string counter = s.init->text;
    ExprRef first, second;
    if (s.expr->text == "&&") {
      first = s.expr->args[0];
      second = s.expr->args[1];
    } else if (auto bounds = s.expr->text == "<" ? lesser(model, s.expr->args[1]) : std::nullopt) {
      if (!bounds->first->type.isSigned || !bounds->second->type.isSigned || !s.expr->args[0]->type.isSigned)
        return;
      first = lessThan(s.expr->args[0], bounds->first);
      second = lessThan(s.expr->args[0], bounds->second);
    } else {
      return;
    }
    auto trips = [&](const ExprRef &condition) {
      Stmt loop = s;
      loop.expr = condition;
      auto counted = asCountedLoop(loop);
      return counted ? counted->tripCount() : std::nullopt;
    };
    if (!trips(first))
      std::swap(first, second);
    // What held no longer does not hold again, as the counter grows.
    std::vector<Poly> says;
    if (trips(first) && second->kind == ExprKind::Binary &&
        (second->text == "<" || second->text == ">" || second->text == "<=" || second->text == ">=")) {
      bool plain = true; // nothing in the loop changes anything but the counter
      walk(second, [&](const ExprRef &e) { plain &= e->kind != ExprKind::Subscript && e->pure && !isChange(e); });
      for (const std::string &name : namesIn(second))
        plain &= name == counter || model.stable(var(name, Type::makeInt()));
      Poly low = model.poly(second->args[second->text[0] == '>' ? 1 : 0]),
           high = model.poly(second->args[second->text[0] == '>' ? 0 : 1]);
      if (plain && second->args[0]->type.isInt() && second->args[1]->type.isInt())
        says.push_back(high - low);
    }
    auto slope = says.empty() ? std::nullopt : says[0].coefficient(counter);
    auto falls = slope ? slope->constant() : std::nullopt;
    if (!falls || *falls > 0)
      return;
    for (const std::string &atom : says[0].atoms()) // nor does something that is not understood grow with it
      if (ExprRef e = model.atomExpr(atom); e && mentions(e, counter))
        return;
    s.expr = first;
    s.body[0] = block({ifStmt(second, s.body[0])});
  });
}

void optiml::canonicalize(Kernel &kernel) {
  StructSplitter(kernel).run();
  normalize(kernel); // the members' declarations go to where their values are
  splitValues(kernel);
  rewriteExprs(*kernel.body, [](const ExprRef &e) -> ExprRef {
    bool address = isUnary(e, "&") && e->type.isPointer() && e->args[0]->kind == ExprKind::Subscript &&
                   e->args[0]->args[0]->type.isPointer() && e->args[0]->args[0]->kind != ExprKind::Subscript &&
                   e->args[0]->args[0]->type.text.find('[') == std::string::npos;
    if (!address)
      return nullptr;
    const ExprRef &base = e->args[0]->args[0];
    return binary("+", base, e->args[0]->args[1], base->type);
  });
  splitLoopConditions(kernel);
}
