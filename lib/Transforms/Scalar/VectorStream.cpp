//===- VectorStream.cpp - elements that are accessed together -------------===//
#include "VectorStream.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Of 16 bits: "half" or "bfloat16", as CUDA's functions call them; empty for others.
static std::string halfName(const Type &type) {
  const llvm::StringRef text = llvm::StringRef(type.text).ltrim('_');
  return !type.isHalf ? "" : text == "half" ? "half" : text == "nv_bfloat16" ? "bfloat16" : "";
}

/// So many bits without a sign.
static Type bitsType(unsigned bytes) {
  Type type = Type::makeUnsigned();
  type.text = bytes == 1 ? "unsigned char" : bytes == 2 ? "unsigned short" : type.text;
  type.bytes = bytes;
  return type;
}

/// Numbers of a vector that has more of them than members: these are words, and several numbers share one.
static unsigned numbersOfWord(const Type &number, int64_t together) { return together > 4 ? 4 / number.bytes : 1; }

ExprRef VectorStream::fromVector(const ExprRef &vector, unsigned place) const {
  const std::string half = halfName(number);
  const Type plain = half.empty() ? number : bitsType(2);
  const unsigned perWord = numbersOfWord(number, together), bits = 8 * number.bytes * (place % perWord);
  const std::string member(1, "xyzw"[place / perWord]);
  ExprRef value = memberExpr(vector, member, perWord > 1 ? Type::makeUnsigned() : plain);
  if (perWord > 1)
    value = castTo(plain, bits ? binary(">>", value, intLit(bits)) : value);
  return half.empty() ? value : callOf("__ushort_as_" + half, {value}, number, /*pure=*/true);
}

ExprRef VectorStream::toVector(const std::vector<ExprRef> &values) const {
  const std::string half = halfName(number);
  const unsigned perWord = numbersOfWord(number, together);
  std::vector<ExprRef> members;
  for (size_t i = 0; i < values.size(); ++i) {
    ExprRef value =
        half.empty() ? values[i] : callOf("__" + half + "_as_ushort", {values[i]}, bitsType(2), /*pure=*/true);
    if (perWord > 1) {
      const unsigned bits = 8 * number.bytes * (i % perWord);
      value = castTo(Type::makeUnsigned(), number.isSigned ? castTo(bitsType(number.bytes), value) : value);
      value = bits ? binary("<<", value, intLit(bits)) : value;
    }
    if (i % perWord)
      members.back() = binary("|", members.back(), value);
    else
      members.push_back(value);
  }
  const Type vector = vectorOf(number, unsigned(together));
  return callOf("make_" + vector.text, members, vector, /*pure=*/true);
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
  const unsigned perWord = numbersOfWord(number, count);
  vector.text = (perWord > 1 ? "uint" : vectorBase(number)) + std::to_string(count / perWord);
  vector.bytes = number.bytes * count;
  return vector;
}

/// Bytes from the element's begin to what is accessed of it.
static int64_t offsetOf(const Access &access) {
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

int64_t VectorStream::numberOf(const Access &access) const {
  if (firstOf)
    return (access.subscripts[0] - *firstOf).constantTerm();
  return offsetOf(access) / number.bytes;
}

bool VectorStream::findVectors(int64_t width) {
  constexpr int64_t mostNumbers = 8, mostBytes = 128; // of a lane, and of all: more are too many registers
  if (count > mostNumbers || width * count * number.bytes > mostBytes)
    return false;
  for (int64_t numbers : {16, 8, 4, 2}) {
    int64_t bytes = numbers * number.bytes;
    together = numbers;
    if (width * count % numbers == 0 && bytes >= 4 && bytes <= 16)
      return true;
  }
  return false;
}

bool VectorStream::needsHalfOf(int64_t width) const {
  VectorStream half = *this;
  return half.findVectors(width / 2) && half.together == together;
}

ExprRef VectorStream::vectorAt(const ExprRef &first, int64_t number, bool store) const {
  Type vector = vectorOf(this->number, unsigned(together)), pointer = Type::makePointer(vector.withConst(!store));
  return subscript(castTo(pointer, addressOf(first)), intLit(number), vector);
}

ExprRef VectorStream::load(const ExprRef &first, int64_t width, std::set<std::string> &taken,
                           std::vector<StmtRef> &out) const {
  std::vector<ExprRef> numbers;
  for (int64_t i = 0; i < vectors(width); ++i) {
    ExprRef place = vectorAt(first, i, /*store=*/false);
    std::string vector = freshName(taken, array + "_vector");
    out.push_back(declStmt(vector, place->type.withConst(true), place));
    for (int64_t of = 0; of < together; ++of)
      numbers.push_back(fromVector(var(vector, place->type), unsigned(of)));
  }
  return listExpr(std::move(numbers));
}
