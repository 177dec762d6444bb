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

llvm::Error TimeStepReader::writeBody() {
  std::map<const Expr *, ExprRef> replaced;
  for (const Access &access : model->accesses()) {
    if (const TimeStep::Field *field = access.write ? fieldWritten(access.array) : nullptr;
        field && access.space == Space::Global) {
      replaced[access.node.get()] = var(field->result, access.node->type);
      continue;
    }
    auto it = places.find(&access);
    if (it == places.end())
      continue;
    ExprRef element = var(fieldRead(access.array)->now, access.root->type);
    for (size_t d = step.dims.size(); d-- > 0;) {
      const CellDistance &one = it->second[d];
      ExprRef at = add(var(step.dims[d].local, Type::makeInt()), polyExpr(*model, one.distance));
      if (one.rule) // as far from the own cell as the rule says
        at = sub(add(at, atCells(one.rule->at(polyExpr(*model, one.rule->coordinate)), step, true)),
                 var(step.dims[d].cell, Type::makeInt()));
      if (d == 2) // few planes are kept
        at = binary("%", at, var(step.names.at("slots"), Type::makeInt()));
      element = subscript(element, at, access.node->type);
    }
    replaced[access.node.get()] = inRegisters(access, it->second, element);
  }
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
    if (some && share >= 0.4 && extent[0] * extent[1] * versions * bytes <= 48 * 1024)
      result.push_back(tile);
  }
  return result;
}
