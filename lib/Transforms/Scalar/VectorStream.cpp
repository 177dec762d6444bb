//===- VectorStream.cpp - elements that are accessed together -------------===//
#include "VectorStream.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Of 16 bits: "half" or "bfloat16", as CUDA's functions call them; empty for others.
static std::string halfName(const Type &type) {
  const llvm::StringRef text = llvm::StringRef(type.text).ltrim('_');
  return !type.isHalf ? "" : text == "half" ? "half" : text == "nv_bfloat16" ? "bfloat16" : "";
}

static Type ushortType() {
  Type type = Type::makeUnsigned();
  type.text = "unsigned short";
  type.bytes = 2;
  return type;
}

ExprRef VectorStream::fromVector(const ExprRef &vector, unsigned place) const {
  const std::string half = halfName(number);
  const ExprRef bits = memberExpr(vector, std::string(1, "xyzw"[place]), half.empty() ? number : ushortType());
  return half.empty() ? bits : callOf("__ushort_as_" + half, {bits}, number, /*pure=*/true);
}

ExprRef VectorStream::toVector(const ExprRef &value) const {
  const std::string half = halfName(number);
  return half.empty() ? value : callOf("__" + half + "_as_ushort", {value}, ushortType(), /*pure=*/true);
}

std::string optiml::vectorBase(const Type &type) {
  if (!halfName(type).empty())
    return "ushort"; // their bits: pairs of halves have no plain assignment, and there are no fours
  if (type.isFloat())
    return type.bytes == 4 ? "float" : type.bytes == 8 ? "double" : "";
  if (type.cls != Type::Class::Int)
    return "";
  std::string base = type.bytes == 1   ? "char"
                     : type.bytes == 2 ? "short"
                     : type.bytes == 4 ? "int"
                     : type.bytes == 8 ? "longlong"
                                       : "";
  return base.empty() || type.isSigned ? base : "u" + base;
}

Type optiml::vectorOf(const Type &number, unsigned count) {
  Type vector;
  vector.cls = Type::Class::Record;
  vector.text = vectorBase(number) + std::to_string(count);
  vector.bytes = number.bytes * count;
  return vector;
}

int64_t optiml::offsetOf(const Access &access) {
  int64_t offset = 0;
  for (const ExprRef &member : access.members())
    offset += member->value;
  return offset;
}

const Expr *optiml::storedList(const Access &access) {
  const ExprRef &e = access.stmt->expr;
  bool isStore =
      access.stmt->kind == StmtKind::Expr && e->kind == ExprKind::Assign && e->text == "=" && e->args[0] == access.node;
  return isStore && access.place == access.node && e->args[1]->kind == ExprKind::InitList && !e->args[1]->args.empty()
             ? e->args[1].get()
             : nullptr;
}

bool VectorStream::describe(const Access &access) {
  const Expr *list = storedList(access);
  Type accessed = list ? list->args[0]->type : access.place->type;
  accessed.isConst = false;
  if (list && list->args.size() * accessed.bytes != access.node->type.bytes)
    return false;
  if (list && llvm::any_of(list->args, [&](const ExprRef &e) { return !e->type.sameNumber(accessed); }))
    return false;
  if (element.bytes == 0) {
    element = access.node->type;
    element.isConst = false;
    number = accessed;
    count = number.bytes ? element.bytes / number.bytes : 0;
  }
  return !vectorBase(number).empty() && accessed.sameNumber(number) && count * number.bytes == element.bytes &&
         offsetOf(access) % number.bytes == 0;
}

bool VectorStream::findVectors(int64_t width) {
  constexpr int64_t mostNumbers = 8; // of an element: more are too many registers
  if (count > mostNumbers)
    return false;
  for (int64_t numbers : {4, 2}) {
    int64_t bytes = numbers * number.bytes;
    together = numbers;
    if (width * count % numbers == 0 && bytes >= 4 && bytes <= 16)
      return true;
  }
  return false;
}

ExprRef VectorStream::vectorAt(const Param &param, int64_t number, bool store) const {
  Type vector = vectorOf(this->number, unsigned(together)), pointer = Type::makePointer(vector.withConst(!store));
  ExprRef first = addressOf(subscript(var(array, param.type), index, element));
  return subscript(castTo(pointer, first), intLit(number), vector);
}
