//===- TimeStepBody.cpp - what a stencil's step does for a cell -----------===//
#include "ThreadMapping.h"
#include "TimeStepReader.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"

using namespace optiml;

void TimeStepReader::name() {
  taken = allNames(*kernel);
  for (const char *wish :
       {"steps",  "step",      "most", "cell",   "cells", "from",  "first",  "second", "to",   "inside", "width",
        "height", "cellIndex", "tile", "planes", "slots", "front", "loaded", "active", "pair", "half"})
    step.names[wish] = freshName(taken, wish);
  const char *cells[] = {"cellX", "cellY", "cellZ"}, *locals[] = {"column", "row", "plane"},
             *extents[] = {"cellsX", "cellsY", "cellsZ"};
  for (size_t d = 0; d < step.dims.size(); ++d) {
    step.dims[d].cell = freshName(taken, cells[d]);
    step.dims[d].local = freshName(taken, locals[d]);
    step.dims[d].extent = freshName(taken, extents[d]);
    step.dims[d].placed = !rings.count(d) ? step.dims[d].cell : freshName(taken, std::string("placed") + char('X' + d));
  }
  for (TimeStep::Field &field : step.fields) {
    field.now = freshName(taken, field.in + "_now");
    taken.insert(field.now + "_ahead");
    field.result = freshName(taken, field.out + "_value");
  }
}

/// The value over the cells' indices and parameters alone, with locals replaced; null: it depends on something else.
ExprRef TimeStepReader::ofCell(const ExprRef &e) const {
  bool known = onlyComputes(e);
  ExprRef result = rewrite(e, [&](const ExprRef &part) -> ExprRef {
    if (part->kind != ExprKind::Var || model->param(part->text))
      return nullptr;
    const Stmt *local = model->singleAssignment(part->text);
    ExprRef value = local && local->expr && local->dims.empty() ? ofCell(local->expr) : nullptr;
    known &= value != nullptr;
    return value ? castTo(local->type.withConst(false), value) : nullptr;
  });
  known &= !anyNode(result, [&](const ExprRef &part) {
    const bool isIndex = part->kind == ExprKind::Builtin && llvm::any_of(step.dims, [&](const TimeStep::Dimension &d) {
                           return part->text == std::string("globalIdx.") + char('x' + d.axis);
                         });
    return isLoad(part) || (part->kind == ExprKind::Builtin && !isIndex) ||
           (part->kind == ExprKind::Var && !model->stable(part));
  });
  return known ? result : nullptr;
}

/// Where the statement under `body` is reached, over cells; true: everywhere; null: that is not known.
ExprRef TimeStepReader::whereReached(const Stmt &body, const Stmt *target) const {
  if (target->kind != StmtKind::Decl && target->kind != StmtKind::Expr)
    return nullptr;
  ExprRef where = intLit(1, Type::makeBool());
  const Stmt *s = &body;
  while (s != target) {
    auto inner = llvm::find_if(s->body, [&](const StmtRef &child) { return holdsStmt(*child, target); });
    ExprRef condition = s->kind == StmtKind::If ? ofCell(s->expr) : nullptr;
    if (inner == s->body.end() || (s->kind != StmtKind::Block && !condition))
      return nullptr;
    if (condition && inner != s->body.begin())
      condition = logicalNot(condition);
    if (condition)
      where = where->kind == ExprKind::IntLit ? condition : logicalAnd(where, condition);
    s = inner->get();
  }
  return where;
}

/// Branches that depend on the cell alone are decided once for all steps.
void TimeStepReader::holdConditions(Stmt &body) {
  constexpr unsigned most = 2;
  unsigned count = 0;
  std::function<void(Stmt &)> visit = [&](Stmt &s) {
    if (s.kind == StmtKind::If && count < most)
      if (ExprRef condition = ofCell(s.expr);
          condition && anyNode(condition, [](const ExprRef &part) { return part->kind == ExprKind::Builtin; })) {
        const std::string name = freshName(taken, "chosen"), text = str(atCells(condition, step, false));
        step.held.push_back({"bool", name, text});
        s.expr = subscript(var(name, Type::makeBool()), var(step.names["cell"], Type::makeInt()), Type::makeBool());
        ++count;
      }
    if (s.kind == StmtKind::Block || s.kind == StmtKind::If)
      for (const StmtRef &child : s.body)
        visit(*child);
  };
  visit(body);
}

/// Reads of other arrays that every step repeats are done once for a cell.
void TimeStepReader::holdReads(Stmt &body) {
  std::map<const Expr *, ExprRef> held;
  for (const Access &access : model->accesses()) {
    ExprRef where = whereReached(body, access.stmt);
    if (!where || !access.read || access.write || access.space != Space::Global || fieldRead(access.array) ||
        !access.members().empty() || access.subscripts.size() != 1 || !model->stable(access.subscripts[0]) ||
        step.held.size() == 4)
      continue;
    const Type &type = access.node->type;
    bool plain = (type.cls == Type::Class::Int || type.isFloat()) && model->param(access.array);
    for (const std::string &atom : access.subscripts[0].atoms())
      plain &= isParameter(*model, atom) ||
               llvm::any_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.index() == Poly::atom(atom); });
    // ?: and && may leave it out.
    walk(access.stmt->expr, [&](const ExprRef &e) {
      bool chooses = e->kind == ExprKind::Cond || (e->kind == ExprKind::Binary && (e->text == "&&" || e->text == "||"));
      for (size_t i = 1; chooses && i < e->args.size(); ++i)
        walk(e->args[i], [&](const ExprRef &inner) { plain &= inner != access.node; });
    });
    if (!plain)
      continue;
    ExprRef value = atCells(elementExpr(*model, access, access.subscripts[0]), step, true);
    if (where->kind != ExprKind::IntLit)
      value = conditional(atCells(where, step, false), value, castTo(type.withConst(false), intLit(0)));
    std::string text = str(value);
    auto known = llvm::find_if(step.held, [&](const TimeStep::Held &h) { return h.value == text; });
    if (known == step.held.end())
      known = step.held.insert(known, {type.text, freshName(taken, access.array + "_held"), text});
    held[access.node.get()] = subscript(var(known->name, type), var(step.names["cell"], Type::makeInt()), type);
  }
  replaceNodes(body, held);
}

/// Its value, from the registers of the thread where it is the own cell or one above or below it.
ExprRef TimeStepReader::inRegisters(const Access &access, const std::vector<CellDistance> &distances, ExprRef element) {
  if (distances.size() > 2 || llvm::any_of(distances, [](const CellDistance &d) { return d.rule.has_value(); }) ||
      distances[0].distance.constant() != 0)
    return element;
  auto rows = distances.size() == 2 ? distances[1].distance.constant() : 0;
  if (!rows)
    return element;
  auto field = llvm::find_if(step.fields, [&](const TimeStep::Field &f) { return f.in == access.array; });
  if (field->own.empty())
    field->own = freshName(taken, field->in + "_own");
  ExprRef cell = add(var(step.names["cell"], Type::makeInt()), intLit(*rows));
  ExprRef own = subscript(var(field->own, access.node->type), cell, access.node->type);
  if (*rows == 0)
    return own;
  ExprRef isOwn = *rows < 0 ? binary(">=", cell, intLit(0), Type::makeBool())
                            : lessThan(cell, var(step.names["cells"], Type::makeInt()));
  return conditional(isOwn, own, element);
}

/// It only computes, without loops, from the fields at distances that are numbers, and from what is held: of any cell,
/// what comes out may be thrown away.
bool TimeStepReader::mayRunStraight(Stmt &body) const {
  if (step.dims.size() != 2)
    return false;
  std::set<const Expr *> fields;
  for (const auto &[access, distances] : places) {
    if (!access->write)
      fields.insert(access->node.get());
    for (const CellDistance &one : distances)
      if (one.rule || !one.distance.constant())
        return false;
  }
  std::function<bool(const ExprRef &)> isPlain = [&](const ExprRef &e) {
    if (fields.count(e.get()))
      return true;
    const bool isHeld = e->kind == ExprKind::Subscript &&
                        llvm::any_of(step.held, [&](const TimeStep::Held &h) { return h.name == rootName(e); });
    return isHeld || (e->pure && !isLoad(e) && !isIntDivision(e) && e->kind != ExprKind::Opaque && !isChange(e) &&
                      llvm::all_of(e->args, isPlain));
  };
  return !anyStmt(body, [&](const Stmt &s) {
    switch (s.kind) {
    case StmtKind::Block: return false;
    case StmtKind::If: return !isPlain(s.expr);
    case StmtKind::Decl: return s.isShared || !s.dims.empty() || (s.expr && !isPlain(s.expr));
    case StmtKind::Expr: return s.expr->kind != ExprKind::Assign || !isPlain(s.expr->args[1]);
    default: return true;
    }
  });
}

/// What the access reads, from the tile.
ExprRef TimeStepReader::elementNear(const Access &access, const std::vector<CellDistance> &distances,
                                    bool isStraight) const {
  const Type integer = Type::makeInt();
  ExprRef element = var(fieldRead(access.array)->now, access.root->type);
  for (size_t d = step.dims.size(); d-- > 0;) {
    const CellDistance &one = distances[d];
    const int64_t number = isStraight ? *one.distance.constant() : 0;
    const Poly shift = isStraight && d == 1 ? Poly(step.dims[d].low) : Poly(0); // there are rows before the first one
    ExprRef at = add(var(step.dims[d].local, integer), polyExpr(*model, one.distance + shift));
    if (one.rule) // as far from the own cell as the rule says
      at = sub(add(at, atCells(one.rule->at(polyExpr(*model, one.rule->coordinate)), step, true)),
               var(step.dims[d].cell, integer));
    if (isStraight && d == 0 && number < 0)
      at = callOf("max", {at, intLit(0)}, integer, true);
    if (isStraight && d == 0 && number > 0)
      at = callOf("min", {at, sub(var(step.names.at("width"), integer), intLit(1))}, integer, true);
    if (d == 2) // few planes are kept
      at = binary("%", at, var(step.names.at("slots"), integer));
    element = subscript(element, at, access.node->type);
  }
  return element;
}

/// Reads of the tile get names of their own, before all else, and branches that only choose a value choose among two.
void TimeStepReader::readFirst(Stmt &body, std::map<const Expr *, ExprRef> &replaced) {
  step.straight = "";
  std::map<std::string, ExprRef> known;
  walkExprs(body, [&](const ExprRef &read) { // in the order of the text
    auto found = replaced.find(read.get());
    if (found == replaced.end())
      return;
    ExprRef &element = found->second;
    if (element->kind == ExprKind::Var ||
        (element->kind == ExprKind::Subscript && element->args[0]->kind == ExprKind::Var))
      return; // results, and own cells
    const std::string text = str(element);
    if (!known.count(text)) {
      const std::string name = freshName(taken, "near");
      *step.straight += "const " + element->type.text + " " + name + " = " + text + ";\n";
      known[text] = var(name, element->type);
    }
    element = known[text];
  });
  forEachList(body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      Stmt &s = *list[i];
      if (s.kind != StmtKind::If || s.body.size() != 2)
        continue;
      const Stmt *yes = onlyStatement(*s.body[0]), *no = onlyStatement(*s.body[1]);
      auto assigns = [](const Stmt *only) {
        return only && only->kind == StmtKind::Expr && only->expr->kind == ExprKind::Assign && only->expr->text == "=";
      };
      if (!assigns(yes) || !assigns(no) || !equal(yes->expr->args[0], no->expr->args[0]))
        continue;
      const ExprRef place = yes->expr->args[0], value = yes->expr->args[1], otherwise = no->expr->args[1];
      ExprRef other = var(freshName(taken, "other"), place->type);
      list[i] = exprStmt(assign("=", place, conditional(s.expr, value, other)));
      list.insert(list.begin() + long(i), declStmt(other->text, place->type.withConst(true), otherwise));
    }
  });
}

llvm::Error TimeStepReader::writeBody() {
  const Access *store = nullptr;
  bool wide = false;
  for (const Access &access : model->accesses())
    if (access.space == Space::Global && (fieldRead(access.array) || fieldWritten(access.array))) {
      if (access.write)
        store = &access;
      wide |= access.wideIndex;
      walk(access.node->args.back(), [&](const ExprRef &e) {
        wide |= e->type.isInt() && e->type.bytes == 4 && !e->type.isSigned && e->kind != ExprKind::Builtin;
      });
    }
  ExprRef index = polyExpr(*model, store->subscripts[0]);
  step.index = str(atCells(wide ? wideExpr(index) : index, step, true));
  // Guards that say which cells are computed are known to hold.
  StmtRef body = kernel->body;
  AccessRegions sets(*model, layout, [&](const Poly &p) { return withoutWrapping(p, {}); });
  auto storesAll = [&](const Stmt &s) {
    return llvm::any_of(step.fields, [&](const TimeStep::Field &f) { return isStoreTo(s, f.out); });
  };
  sets.dropGuards(*body, storesAll);
  if (step.dims.size() < 3) { // where a thread stays with its cells
    holdReads(*body);
    holdConditions(*body);
  }
  const bool isStraight = mayRunStraight(*body);
  std::map<const Expr *, ExprRef> replaced;
  for (const Access &access : model->accesses()) {
    const TimeStep::Field *field = access.write ? fieldWritten(access.array) : nullptr;
    if (field && access.space == Space::Global)
      replaced[access.node.get()] = var(field->result, access.node->type);
    else if (auto it = places.find(&access); it != places.end())
      replaced[access.node.get()] = inRegisters(access, it->second, elementNear(access, it->second, isStraight));
  }
  if (isStraight)
    readFirst(*body, replaced);
  replaceNodes(*body, replaced);
  rewriteExprs(*body, [&](const ExprRef &e) { return atCell(e, step, false); });
  walk(*body, [&](Stmt &s) { // int x = (unsigned)cell; says the same as int x = cell;
    if (s.kind == StmtKind::Decl && s.expr && s.expr->kind == ExprKind::Cast && s.type.isInt() && s.type.bytes == 4 &&
        s.expr->type.isInt() && s.expr->type.bytes == 4 && s.expr->args[0]->kind == ExprKind::Var)
      s.expr = s.expr->args[0];
  });
  for (const TimeStep::Field &field : step.fields) {
    bool left = false;
    walkExprs(*body, [&](const ExprRef &e) {
      left |= e->kind == ExprKind::Var && (e->text == field.in || e->text == field.out);
    });
    if (left || opaqueMentions(*body, {field.in, field.out}))
      return notApplicable("'{0}' is used in other ways than by its elements", field.in);
  }
  Kernel alone;
  alone.name = "body";
  alone.body = body;
  removeUnused(alone);
  std::string text = print(alone);
  size_t begin = text.find("{\n") + 2, end = text.rfind('}');
  step.body = text.substr(begin, end - begin);
  Kernel others;
  for (Param param : kernel->params) {
    if (fieldRead(param.name) || fieldWritten(param.name))
      continue;
    step.constants.push_back(param.name);
    if (param.type.isPointer() && !model->writesArray(param.name))
      param.type.isRestrict = param.type.pointee->isConst || param.type.isRestrict;
    others.params.push_back(param);
  }
  step.parameters = parametersOf(others);
  return llvm::Error::success();
}

std::vector<TimeTile> optiml::timeTiles(const TimeStep &step) {
  const size_t dims = step.dims.size();
  unsigned bytes = 0;
  for (const TimeStep::Field &field : step.fields)
    bytes += field.bytes;
  std::vector<TimeTile> candidates;
  if (dims == 1)
    candidates = {{8, {256, 1}, 4}, {32, {256, 1}, 4}, {16, {128, 1}, 4}, {4, {256, 1}, 4}};
  else if (dims == 2)
    candidates = {{8, {64, 16}, 4}, {6, {64, 8}, 8}, {4, {64, 8}, 8},  {8, {64, 8}, 8},
                  {2, {64, 8}, 4},  {4, {32, 8}, 6}, {3, {32, 16}, 4}, {2, {32, 8}, 4}};
  else
    candidates = {
        {2, {64, 8}, 3, 64}, {2, {64, 8}, 2, 32}, {3, {64, 8}, 2, 64}, {2, {32, 8}, 3, 32}, {2, {32, 8}, 2, 16}};
  std::vector<TimeTile> result;
  for (const TimeTile &tile : candidates) {
    unsigned extent[2] = {tile.threads[0] * (dims == 1 ? tile.cells : 1),
                          tile.threads[1] * (dims == 1 ? 1 : tile.cells)};
    unsigned versions = dims < 3 ? 2 : unsigned(tile.steps * (step.dims[2].low + step.dims[2].high + 2));
    double share = 1;
    for (size_t d = 0; d < std::min<size_t>(2, dims); ++d)
      share *= 1 - double(tile.steps * (step.dims[d].low + step.dims[d].high)) / extent[d];
    bool some = true;
    for (size_t d = 0; d < std::min<size_t>(2, dims); ++d)
      some &= tile.steps * (step.dims[d].low + step.dims[d].high) < extent[d];
    // Cells that several blocks compute are lost: less than half of a tile is not worth it.
    const unsigned rows = extent[1] + (step.straight ? unsigned(step.dims[1].low + step.dims[1].high) : 0);
    if (some && share >= 0.4 && extent[0] * rows * versions * bytes <= 48 * 1024)
      result.push_back(tile);
  }
  return result;
}
