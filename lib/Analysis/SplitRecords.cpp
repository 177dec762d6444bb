//===- SplitRecords.cpp - records as their members ------------------------===//
//
// A variable is split where every mention of it names a member that is a number or pointer, or copies the whole record
// in a statement of its own: from or to a place, from a list of values, from a constructor or make_float2, or from a
// choice between such. A list of values is stored as it is made; where a member's new value needs the old one of
// another (z = z * z), the values are computed first. An array in a record becomes an array, and is split in its turn.
//
//===----------------------------------------------------------------------===//
#include "SplitRecords.h"
#include "Inlining.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::string optiml::constructorKey(const std::string &type, size_t arguments) {
  return type + "/" + std::to_string(arguments);
}

namespace {

/// More members than this are no number or vector, but a table.
constexpr size_t mostMembers = 16;

using Path = std::vector<RecordShape::Field>; ///< from a record to one of its members

class Splitter {
public:
  Splitter(Kernel &kernel, const Records &records, std::set<std::string> takenNames)
      : kernel(kernel), records(records), taken(std::move(takenNames)) {
    taken.merge(allNames(kernel));
  }

  /// False when there is nothing to split.
  bool run() {
    collect();
    if (candidates.empty())
      return false;
    for (size_t before = 0; before != candidates.size();) { // how others are copied depends on which are split
      before = candidates.size();
      refused.clear();
      used.clear();
      check(*kernel.body);
      std::erase_if(candidates, [&](const auto &c) { return refused.count(c.first) || !used.count(c.first); });
    }
    if (candidates.empty())
      return false;
    for (const auto &[name, decl] : candidates)
      for (const Path &path : leavesOf(decl->type)) {
        std::string wish = name;
        for (const RecordShape::Field &field : path)
          wish += "_" + field.name;
        parts[name][pathText(path)] = freshName(taken, wish);
      }
    split(*kernel.body);
    tidyParts(kernel, made);
    return true;
  }

private:
  Kernel &kernel;
  const Records &records;
  std::set<std::string> taken;
  std::map<std::string, const Stmt *> candidates;
  std::set<std::string> refused, used;                             ///< used: by its members
  std::map<std::string, std::map<std::string, std::string>> parts; ///< variable -> ".re" -> its variable
  std::set<std::string> made;

  static std::string pathText(const Path &path) {
    std::string text;
    for (const RecordShape::Field &field : path)
      text += "." + field.name;
    return text;
  }
  const RecordShape *shapeOf(const Type &type) const {
    if (type.cls != Type::Class::Record || type.isHalf || type.isVolatile)
      return nullptr;
    auto it = records.shapes.find(type.text);
    return it == records.shapes.end() ? nullptr : &it->second;
  }
  std::vector<Path> leavesOf(const Type &type) const {
    std::vector<Path> result;
    for (const RecordShape::Field &field : shapeOf(type)->fields) {
      if (!shapeOf(field.type) || !field.dims.empty()) {
        result.push_back({field});
        continue;
      }
      for (Path &inner : leavesOf(field.type)) {
        inner.insert(inner.begin(), field);
        result.push_back(inner);
      }
    }
    return result;
  }
  /// A record's place: the variable of a kernel, with all of its indices, then members.
  static ExprRef place(const ExprRef &e, std::vector<std::string> *members = nullptr) {
    ExprRef root = e;
    while (root->kind == ExprKind::Member && !root->args[0]->type.isPointer()) {
      if (members)
        members->insert(members->begin(), root->text);
      root = root->args[0];
    }
    return root;
  }
  /// The candidate that a place belongs to, or null.
  const Stmt *candidateAt(const ExprRef &e, unsigned *subscripts = nullptr) const {
    ExprRef root = place(e);
    unsigned depth = 0;
    for (; root->kind == ExprKind::Subscript; root = root->args[0])
      ++depth;
    if (subscripts)
      *subscripts = depth;
    auto it = root->kind == ExprKind::Var ? candidates.find(root->text) : candidates.end();
    return it == candidates.end() ? nullptr : it->second;
  }
  static bool isChain(const ExprRef &e) {
    return e->kind == ExprKind::Var || e->kind == ExprKind::Subscript || e->kind == ExprKind::Member;
  }

  void collect() {
    walk(*kernel.body, [&](Stmt &block) {
      if (block.kind != StmtKind::Block)
        return;
      for (const StmtRef &s : block.body) {
        if (s->kind != StmtKind::Decl || s->isShared || s->isExtern || s->align || !shapeOf(s->type))
          continue;
        bool constant = llvm::all_of(s->dims, [](const ExprRef &d) { return d && constantValue(d).has_value(); });
        if (constant && leavesOf(s->type).size() <= mostMembers && (!s->expr || s->dims.empty()))
          candidates[s->text] = s.get();
      }
    });
    std::map<std::string, unsigned> declared;
    walk(*kernel.body, [&](Stmt &s) { declared[s.text] += s.kind == StmtKind::Decl; });
    std::erase_if(candidates, [&](const auto &candidate) {
      return declared[candidate.first] > 1 || opaqueMentions(*kernel.body, {candidate.first});
    });
  }

  // The value of a member

  /// The member of a record-valued expression, as long as its evaluation may be repeated; null when it cannot be told.
  ExprRef memberOf(const ExprRef &e, llvm::ArrayRef<RecordShape::Field> path) const {
    if (path.empty())
      return e;
    const RecordShape *shape = shapeOf(e->type);
    if (!shape || !shape->isWhole || hasEffects(e))
      return nullptr;
    size_t at = 0;
    while (at < shape->fields.size() && shape->fields[at].name != path[0].name)
      ++at;
    if (at == shape->fields.size())
      return nullptr;
    auto inItem = [&](const ExprRef &item) -> ExprRef {
      bool nested = shapeOf(shape->fields[at].type), list = item->kind == ExprKind::InitList;
      if (nested != (list || item->type.cls == Type::Class::Record)) // braces left out
        return nullptr;
      if (!list || item->type.cls == Type::Class::Record)
        return memberOf(item, path.drop_front());
      return nullptr;
    };
    switch (e->kind) {
    case ExprKind::Var:
    case ExprKind::Subscript:
    case ExprKind::Member: {
      auto member = std::make_shared<Expr>();
      member->kind = ExprKind::Member;
      member->type = path[0].type;
      member->text = path[0].name;
      member->value = path[0].offset;
      member->args = {e};
      member->line = e->line;
      return memberOf(member, path.drop_front());
    }
    case ExprKind::InitList:
      if (e->args.size() > shape->fields.size())
        return nullptr;
      for (size_t i = 0; i < e->args.size(); ++i) // one that stands for a record is one
        if ((e->args[i]->type.cls == Type::Class::Record) != (shapeOf(shape->fields[i].type) != nullptr) &&
            !e->args[i]->type.isHalf)
          return nullptr;
      return at < e->args.size() ? inItem(e->args[at]) : zeroOf(path);
    case ExprKind::Cond: {
      ExprRef a = memberOf(e->args[1], path), b = memberOf(e->args[2], path);
      if (!a || !b)
        return nullptr;
      auto choice = std::make_shared<Expr>(*e);
      choice->type = path.back().type;
      choice->args = {e->args[0], a, b};
      return choice;
    }
    case ExprKind::Call: {
      if (e->isLibrary && llvm::StringRef(e->text).starts_with("make_") && e->args.size() == shape->fields.size())
        return inItem(e->args[at]);
      auto it = records.constructors.find(constructorKey(e->text, e->args.size()));
      if (e->text != e->type.text || it == records.constructors.end() || it->second.size() != shape->fields.size())
        return nullptr;
      const ExprRef &made = it->second[at];
      auto argument = [&](const ExprRef &n) -> ExprRef {
        if (n->kind != ExprKind::Var || n->text[0] != '$')
          return nullptr;
        const ExprRef &given = e->args[std::stoul(n->text.substr(1))];
        bool same = n == made || given->type.text == n->type.text;
        return same || n->type.cls == Type::Class::Record ? given : castTo(n->type, given);
      };
      return inItem(rewrite(made, argument));
    }
    default: return nullptr;
    }
  }
  static ExprRef zeroOf(llvm::ArrayRef<RecordShape::Field> path) {
    const Type &type = path.back().type;
    return type.isInt() || type.isFloat() ? intLit(0) : nullptr;
  }
  /// Memory of other elements that is taken for records is accessed as widely as that: its values stay together.
  static bool recasts(const ExprRef &e) {
    return anyNode(e, [&](const ExprRef &n) { return n->kind == ExprKind::Cast && n->type.isPointer(); });
  }
  /// Every member of it can be told.
  bool isComposed(const ExprRef &e) const {
    return shapeOf(e->type) && !recasts(e) &&
           llvm::all_of(leavesOf(e->type), [&](const Path &path) { return memberOf(e, path) != nullptr; });
  }

  // Which variables

  /// A place: its indices are ordinary expressions.
  void checkPlace(const ExprRef &e) {
    for (ExprRef root = place(e); root->kind == ExprKind::Subscript; root = root->args[0])
      check(root->args[1]);
  }
  void check(const ExprRef &e) {
    if (isChain(e)) {
      unsigned subscripts = 0;
      if (const Stmt *decl = candidateAt(e, &subscripts)) {
        if (subscripts != decl->dims.size() || (e->type.cls == Type::Class::Record && !e->type.isHalf))
          refused.insert(decl->text);
        used.insert(decl->text);
        return checkPlace(e);
      }
    }
    for (const ExprRef &arg : e->args)
      check(arg);
  }
  /// A value of which each member is taken.
  void checkValue(const ExprRef &e) {
    if (isChain(e)) {
      unsigned subscripts = 0;
      const Stmt *decl = candidateAt(e, &subscripts);
      if (!decl)
        return check(e);
      if (subscripts != decl->dims.size())
        refused.insert(decl->text);
      return checkPlace(e);
    }
    if (e->kind == ExprKind::Cond) {
      check(e->args[0]);
      checkValue(e->args[1]);
      return checkValue(e->args[2]);
    }
    for (const ExprRef &arg : e->args)
      if (shapeOf(arg->type))
        checkValue(arg);
      else
        check(arg);
  }
  void check(Stmt &s) {
    if (s.kind == StmtKind::Decl && s.expr && s.dims.empty() && shapeOf(s.type)) {
      if (isComposed(s.expr)) {
        if (!isChain(s.expr))
          used.insert(s.text);
        // What stays a record gets a list of the members, which only an aggregate takes.
        if (!candidates.count(s.text) && (!shapeOf(s.type)->isAggregate || !isChain(s.expr)))
          check(s.expr);
        else
          checkValue(s.expr);
      } else {
        refused.insert(s.text);
        check(s.expr);
      }
    } else if (isRecordCopy(s)) {
      const ExprRef &target = s.expr->args[0], &value = s.expr->args[1];
      unsigned subscripts = 0;
      const Stmt *decl = candidateAt(target, &subscripts);
      if (decl && (subscripts != decl->dims.size() || !isComposed(target))) // of an array no member is a value
        refused.insert(decl->text);
      if (decl && !isChain(value))
        used.insert(decl->text);
      if (recasts(value)) {
        if (decl)
          refused.insert(decl->text);
        check(value);
      } else if (!isComposed(value) || recasts(target))
        check(value);
      else if (!decl && !(shapeOf(target->type)->isAggregate && isChain(value)) &&
               (placeLoads(target) || refersTo(value, target)))
        check(value); // stored member by member, the place must stay the same
      else
        checkValue(value);
      checkPlace(target);
      if (!decl)
        check(target);
    } else {
      ownExprs(s, [&](ExprRef &e) { check(e); });
    }
    if (s.init)
      check(*s.init);
    for (const StmtRef &child : s.body)
      check(*child);
  }
  bool isRecordCopy(const Stmt &s) const {
    return isAssignStmt(s) && isChain(s.expr->args[0]) && shapeOf(s.expr->args[0]->type);
  }
  /// The value of a store member by member may name what it stores to.
  static bool refersTo(const ExprRef &value, const ExprRef &target) {
    ExprRef root = place(target);
    while (root->kind == ExprKind::Subscript || root->kind == ExprKind::Member)
      root = root->args[0];
    return root->kind != ExprKind::Var || mentions(value, root->text);
  }

  // Rewriting

  /// The variable of a member of a split record (or the element of its array); null for anything else.
  ExprRef partAt(const ExprRef &e) const {
    if (e->kind != ExprKind::Member || shapeOf(e->type))
      return nullptr;
    std::vector<std::string> members;
    std::vector<ExprRef> indices;
    ExprRef root = place(e, &members);
    for (; root->kind == ExprKind::Subscript; root = root->args[0])
      indices.insert(indices.begin(), root->args[1]);
    auto it = root->kind == ExprKind::Var ? parts.find(root->text) : parts.end();
    if (it == parts.end())
      return nullptr;
    std::string path;
    for (const std::string &member : members)
      path += "." + member;
    Type type = e->type;
    ExprRef part = var(it->second.at(path), type);
    for (const ExprRef &index : indices)
      part = subscript(part, index, type);
    return part;
  }
  ExprRef withParts(const ExprRef &e) const {
    return rewrite(e, [&](const ExprRef &n) { return partAt(n); });
  }
  bool mentionsSplit(const ExprRef &e) const {
    return llvm::any_of(parts, [&](const auto &p) { return mentions(e, p.first); });
  }
  ExprRef listOf(const ExprRef &record, const Type &type, Path path) const {
    std::vector<ExprRef> items;
    for (const RecordShape::Field &field : shapeOf(type)->fields) {
      Path inner = path;
      inner.push_back(field);
      items.push_back(shapeOf(field.type) ? listOf(record, field.type, inner) : withParts(memberOf(record, inner)));
    }
    return listExpr(std::move(items), type);
  }

  void splitDecl(const Stmt &s, std::vector<StmtRef> &out) {
    for (const Path &path : leavesOf(s.type)) {
      Type type = path.back().type;
      type.isConst = s.type.isConst;
      const std::string &name = parts.at(s.text).at(pathText(path));
      std::vector<ExprRef> dims = s.dims;
      dims.insert(dims.end(), path.back().dims.begin(), path.back().dims.end());
      StmtRef decl = declStmt(name, type, s.expr ? withParts(memberOf(s.expr, path)) : nullptr, dims);
      decl->line = s.line;
      made.insert(name);
      out.push_back(decl);
    }
  }
  void splitCopy(const Stmt &s, std::vector<StmtRef> &out) {
    const ExprRef &target = s.expr->args[0];
    ExprRef value = s.expr->args[1];
    auto store = [&](const ExprRef &to, const ExprRef &what) {
      StmtRef stored = exprStmt(assign("=", to, what));
      stored->line = s.line;
      out.push_back(stored);
    };
    if (!candidateAt(target) && isChain(value) && shapeOf(target->type)->isAggregate)
      return store(withParts(target), listOf(value, target->type, {}));
    if (!isComposed(value)) { // a call: its result has a name
      Type type = target->type.withConst(true);
      std::string name = freshName(taken, "result");
      out.push_back(atLine(s.line, declStmt(name, type, withParts(value))));
      value = var(name, type);
    }
    std::vector<ExprRef> targets, values;
    for (const Path &path : leavesOf(target->type)) {
      targets.push_back(withParts(memberOf(target, path)));
      values.push_back(withParts(memberOf(value, path)));
    }
    std::set<std::string> changed;
    bool inMemory = !candidateAt(target);
    for (size_t i = 0; i < targets.size(); ++i) {
      if (llvm::any_of(changed, [&](const std::string &name) { return mentions(values[i], name); }) ||
          (inMemory && i > 0 && loadsMemory(values[i]))) {
        Type type = targets[i]->type.withConst(true);
        std::string name = freshName(taken, placeOf(targets[i]) + "_next");
        out.push_back(atLine(s.line, declStmt(name, type, values[i])));
        values[i] = var(name, targets[i]->type);
      }
      changed.insert(placeOf(targets[i]));
    }
    for (size_t i = 0; i < targets.size(); ++i)
      store(targets[i], values[i]);
  }

  void split(Stmt &s) {
    if (s.init)
      split(*s.init);
    if (s.kind != StmtKind::Block) {
      ownExprs(s, [&](ExprRef &e) { e = withParts(e); });
      for (const StmtRef &child : s.body)
        split(*child);
      return;
    }
    std::vector<StmtRef> out;
    for (const StmtRef &child : s.body) {
      if (child->kind == StmtKind::Decl && parts.count(child->text)) {
        splitDecl(*child, out);
      } else if (child->kind == StmtKind::Decl && child->expr && child->dims.empty() && shapeOf(child->type) &&
                 isChain(child->expr) && candidateAt(child->expr)) {
        child->expr = listOf(child->expr, child->type, {});
        out.push_back(child);
      } else if (isRecordCopy(*child) && (candidateAt(child->expr->args[0]) ||
                                          (isComposed(child->expr->args[1]) && mentionsWhole(child->expr->args[1])))) {
        splitCopy(*child, out);
      } else {
        split(*child);
        out.push_back(child);
      }
    }
    s.body = std::move(out);
  }
  /// A split record is taken as a whole.
  bool mentionsWhole(const ExprRef &e) const { return mentionsSplit(withParts(e)); }
};

} // namespace

void optiml::splitRecords(Kernel &kernel, const Records &records, std::set<std::string> taken) {
  constexpr unsigned deepest = 4; // arrays of records in records
  for (unsigned depth = 0; depth < deepest && Splitter(kernel, records, taken).run(); ++depth)
    ;
}
