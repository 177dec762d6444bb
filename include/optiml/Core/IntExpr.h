//===- IntExpr.h - integer expressions of launch plans ----------*- C++ -*-===//
//
// A launch plan's geometry and a variant's conditions are integer expressions over the original launch:
//
//     grid.x grid.y grid.z   block.x block.y block.z   shared        the original launch
//     NAME                                                           a scalar kernel argument, or a pointer's address
//     literals, + - * / % (C semantics, 64-bit signed), comparisons, && || !, and
//     min(a,b) max(a,b) ceildiv(a,b)
//     aligned(P, bytes)          pointer argument P is a multiple of bytes
//     disjoint(P, np, Q, nq)     [P, P+np) and [Q, Q+nq), sizes in bytes, do not overlap
//     apart(P, Q)                pointer arguments P and Q lead into different allocations
//     holds(P, bytes)            from where pointer argument P leads, its allocation goes on for so many bytes
//     within(P, bytes)           pointer argument P leads to the beginning of an allocation of at most so many bytes
//
// They are evaluated when a captured launch is replayed, and printed as C++ into the emitted dispatcher.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_INTEXPR_H
#define OPTIML_CORE_INTEXPR_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// The name under which IntExpr::evaluate looks up where the allocation begins that a pointer argument leads into.
inline std::string allocationOf(const std::string &pointer) { return "allocation:" + pointer; }
/// The same for where it ends.
inline std::string allocationEndOf(const std::string &pointer) { return "allocation end:" + pointer; }

class IntExpr {
public:
  /// Parses the language above; the error shows the place of the first mistake.
  static llvm::Expected<IntExpr> parse(llvm::StringRef text);
  /// For text written by OptiML itself: asserts that it parses.
  static IntExpr of(const std::string &text);
  static IntExpr literal(int64_t value);
  IntExpr();

  using Lookup = std::function<std::optional<int64_t>(const std::string &name)>;
  /// The value, or nothing when a name is unknown, a division is by zero, or the arithmetic overflows. apart(P, Q)
  /// looks up where the allocations begin, by allocationOf("P"), holds(P, n) where P's ends, and within(P, n)
  /// both.
  std::optional<int64_t> evaluate(const Lookup &lookup) const;

  /// The text it was parsed from, in canonical form.
  std::string str() const;
  /// As C++: names through `rename` (e.g. "grid.x" stays), arithmetic in long long, functions expanded inline.
  std::string cxx(const std::function<std::string(const std::string &)> &rename) const;
  /// Every name it mentions, in order of first appearance.
  std::vector<std::string> names() const;
  /// What it divides by, positive literals left out; what stands within another one comes first. Where these are
  /// positive, so that no division fails, C++ evaluates it as evaluate() does.
  std::vector<IntExpr> divisors() const;
  /// This expression with names replaced by expressions.
  IntExpr substitute(const std::function<std::optional<IntExpr>(const std::string &)> &replacement) const;

  bool operator==(const IntExpr &other) const { return str() == other.str(); }

  struct Node;

private:
  explicit IntExpr(std::shared_ptr<const Node> node) : node(std::move(node)) {}
  std::shared_ptr<const Node> node;
};

} // namespace optiml

#endif
