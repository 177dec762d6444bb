//===- Tree.h - a kernel as a small structured program ----------*- C++ -*-===//
//
// Transforms work on this tree: a kernel's parameters and body, read from Clang's AST (Read.h) and printed back as
// plain CUDA (Print.h). It is deliberately small: structured statements, expressions whose operators are spelled as in
// C, names unique within the kernel. What it cannot express is kept as opaque text with the names it mentions;
// transforms that would have to look inside answer NotApplicable.
//
// Expressions are immutable and shared. Statements are mutable and owned by their parent; clone before changing.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_TREE_H
#define OPTIML_ANALYSIS_TREE_H

#include "optiml/Core/Variant.h"
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace optiml {

/// A C++ type, as much of it as transforms ask about.
struct Type {
  enum class Class { Void, Bool, Int, Float, Pointer, Record, Other };
  Class cls = Class::Other;
  std::string text;   ///< as printed, without top-level const; for pointers without __restrict__
  unsigned bytes = 0; ///< sizeof
  bool isSigned = true;
  bool isConst = false, isVolatile = false; ///< top level
  bool isRestrict = false;                  ///< pointers
  bool isHalf = false;                      ///< records: a number of 16 bits, __half or __nv_bfloat16
  std::shared_ptr<const Type> pointee;      ///< pointers
  bool isInt() const { return cls == Class::Int || cls == Class::Bool; }
  bool isFloat() const { return cls == Class::Float; }
  bool isPointer() const { return cls == Class::Pointer; }
  static Type makeInt();
  static Type makeUnsigned();
  static Type makeLong(); ///< long long
  static Type makeBool();
  static Type makeVoid();
  static Type makeFloat(unsigned bytes);        ///< float, double
  static Type makePointer(const Type &pointee); ///< to elements of a class or of numbers
  Type withConst(bool constant) const;          ///< the same type, const or not
  Type unqualified() const;                     ///< neither const nor volatile
  bool sameNumber(const Type &other) const;     ///< of one class, width and signedness
};

struct Expr;
using ExprRef = std::shared_ptr<const Expr>;

enum class ExprKind {
  IntLit,    ///< value
  FloatLit,  ///< text
  Var,       ///< text: a parameter, local, or file-scope name
  Builtin,   ///< text: "threadIdx.x", "blockIdx.y", "blockDim.x", "gridDim.z"
  Unary,     ///< text: - + ! ~ * & ; args[0]
  Binary,    ///< text: arithmetic, comparison, logic, comma
  Assign,    ///< text: = += -= …; args[0] op args[1]
  IncDec,    ///< text: ++x x++ --x x--
  Cond,      ///< args[0] ? args[1] : args[2]
  Call,      ///< text: callee as written; args
  Subscript, ///< args[0][args[1]]
  Member,    ///< args[0].text  (or -> when args[0] is a pointer)
  Cast,      ///< (text)args[0]; explicit in the source
  InitList,  ///< {args…}
  Opaque     ///< text, verbatim; names: what it mentions
};

struct Expr {
  ExprKind kind;
  Type type;
  std::string text;
  int64_t value = 0;
  std::vector<ExprRef> args;
  std::set<std::string> names; ///< Opaque
  bool isAtomic = false;       ///< Call: an atomic operation of CUDA, or a function of the program that is one
  std::string folds;           ///< of an atomic call: + - & | ^ min max, where its value comes into args[0] by that
  bool isLibrary = false;      ///< Call: a function of CUDA's or the standard library's headers
  bool pure = true;            ///< Call, Opaque: neither writes memory nor reads what another thread may write
  bool isConfined = false; ///< Call, not pure: it uses and changes only what its arguments lead to: the thread's own
  bool isUnaware = false, isOfAnyBlock = false; ///< not pure: any thread, or any block, may run it in this one's place
  unsigned line = 0;                            ///< in the user's source; 0: made by OptiML
};

struct Stmt;
using StmtRef = std::shared_ptr<Stmt>;

enum class StmtKind { Block, Decl, Expr, For, While, Do, If, Barrier, Return, Break, Continue, Opaque };

/// "#pragma unroll" before a loop.
enum : int { NoUnroll = -1, FullUnroll = 0 };

struct Stmt {
  StmtKind kind;
  unsigned line = 0;
  std::string text;          ///< Decl: name; Opaque: text; Block: a comment line to print before it; For: comment
  std::vector<StmtRef> body; ///< Block: statements; For/While/Do: {body block}; If: {then block[, else block]}
  ExprRef expr;              ///< Expr; If/While/Do/For: condition; Decl: initializer; Return: null
  StmtRef init;              ///< For: Decl, Expr, or null
  ExprRef step;              ///< For
  int unroll = NoUnroll;     ///< For: FullUnroll or a factor
  Type type;                 ///< Decl: (element) type
  std::vector<ExprRef> dims; ///< Decl: array extents
  bool isShared = false, isExtern = false;
  unsigned align = 0;          ///< Decl: __align__, 0 for none
  std::set<std::string> names; ///< Opaque
  bool mayBarrier = false;     ///< Opaque: may hold a barrier or warp operation, or write memory
  bool isUnaware = false;      ///< Opaque: any thread may run it in this one's place
};

struct Param {
  std::string name;
  Type type;
  struct Field { ///< a public member of a parameter of class type
    std::string name;
    Type type;
    unsigned offset = 0; ///< bytes
  };
  std::vector<Field> fields;
};

/// A __global__ function.
struct Kernel {
  std::string name; ///< identifier it is printed under
  std::vector<Param> params;
  unsigned maxThreads = 0, minBlocks = 0; ///< __launch_bounds__
  StmtRef body;                           ///< Block
  unsigned line = 0;
  /// The least value that conditions ask of unsigned parameters (or members, "p.n"): "n - 1" is then a difference.
  std::map<std::string, int64_t> least;
  /// Unsigned differences of arguments, as polynomials, that do not wrap around, each with the condition for it.
  std::map<std::string, std::string> notNegative;
  std::set<std::string> macros; ///< the file's: no new name may be one of them
  std::shared_ptr<Kernel> clone() const;
};

/// A canonical counted loop: for (T var = lower; var < upper; var += step), var not assigned in the body.
struct CountedLoop {
  std::string var;
  Type type;
  ExprRef lower, upper; ///< upper is exclusive
  int64_t step = 1;
  Stmt *stmt = nullptr;
  std::optional<int64_t> tripCount() const; ///< iterations, where they are a compile-time constant
};
std::optional<CountedLoop> asCountedLoop(Stmt &stmt);

/// for (T var = lower; var < upper; var += step) whose step is an expression, as that of threads which take turns:
/// neither var nor what the head mentions is assigned in the body. Whether the step is positive is for the caller.
struct StridedLoop {
  std::string var;
  Type type;
  ExprRef lower, upper, step; ///< upper is exclusive
};
std::optional<StridedLoop> asStridedLoop(Stmt &stmt);

/// Brings declarations to where the values are: "int k; for (k = 0; …)" becomes a loop that declares its variable, and
/// "int i; … i = x;" a declaration with an initializer. "int k = 0; while (k < n) { …; ++k; }" becomes such a for.
void normalize(Kernel &kernel);
/// "extern __shared__ char raw[]; T *s = (T *)raw;" becomes "extern __shared__ T s[];", where raw has no other use.
void typeDynamicShared(Kernel &kernel);

// Making expressions. The arithmetic ones fold constants and neutral elements.
ExprRef intLit(int64_t value, Type type = Type::makeInt());
ExprRef var(const std::string &name, Type type);
ExprRef builtin(const std::string &name);
ExprRef unary(const std::string &op, ExprRef a, Type type);
ExprRef binary(const std::string &op, ExprRef a, ExprRef b, std::optional<Type> type = std::nullopt);
ExprRef add(ExprRef a, ExprRef b);
ExprRef sub(ExprRef a, ExprRef b);
ExprRef mul(ExprRef a, ExprRef b);
ExprRef lessThan(ExprRef a, ExprRef b);
ExprRef logicalAnd(ExprRef a, ExprRef b); ///< null operands are neutral
ExprRef logicalNot(ExprRef a);
ExprRef assign(const std::string &op, ExprRef target, ExprRef value);
ExprRef subscript(ExprRef base, ExprRef index, Type element);
ExprRef conditional(ExprRef c, ExprRef a, ExprRef b);
ExprRef castTo(Type type, ExprRef e);
/// name(args…), of a function of CUDA's; not `pure` when it writes memory or lets threads meet.
ExprRef callOf(const std::string &name, std::vector<ExprRef> args, Type type, bool pure);
std::string foldOfAtomic(const std::string &name); ///< + of CUDA's atomicAdd; empty of what is no such update
ExprRef addressOf(const ExprRef &element);
/// object.name; `offset` in bytes.
ExprRef memberExpr(ExprRef object, const std::string &name, Type type, int64_t offset = 0);
ExprRef floatLit(const std::string &text, Type type);
ExprRef listExpr(std::vector<ExprRef> items, Type type = {});
std::optional<int64_t> constantValue(const ExprRef &e);
/// The comparison that holds where `op` does not; empty when it is none.
std::string inverseComparison(const std::string &op);
bool comparisonHolds(const std::string &op, int order); ///< order < 0: a is less than b in "a op b"

// Making statements.
StmtRef block(std::vector<StmtRef> stmts = {}, std::string comment = "");
StmtRef exprStmt(ExprRef e);
StmtRef declStmt(const std::string &name, Type type, ExprRef init, std::vector<ExprRef> dims = {});
StmtRef ifStmt(ExprRef cond, StmtRef then, StmtRef otherwise = nullptr);
/// for (type var = lower; var < upper; var += step) body
StmtRef countedFor(const std::string &var, Type type, ExprRef lower, ExprRef upper, int64_t step, StmtRef body,
                   int unroll);
StmtRef barrierStmt();
/// __shared__ __align__(align) type name[dims…]; 0: as the type wants it
StmtRef sharedArray(const std::string &name, Type type, std::vector<ExprRef> dims, unsigned align = 0);
StmtRef atLine(unsigned line, StmtRef s); ///< the statement with a line of the user's source
StmtRef clone(const StmtRef &s);

// Walking and rewriting.
/// Bottom-up: `f` gets each node with rewritten operands and returns its replacement, or null to keep it.
ExprRef rewrite(const ExprRef &e, const std::function<ExprRef(const ExprRef &)> &f);
/// `e` with `f` of each operand; `e` itself where that changes none.
ExprRef mapOperands(const ExprRef &e, const std::function<ExprRef(const ExprRef &)> &f);
/// Rewrites every expression under `s` in place.
void rewriteExprs(Stmt &s, const std::function<ExprRef(const ExprRef &)> &f);
/// Every expression node, operands after their parents.
void walk(const ExprRef &e, const std::function<void(const ExprRef &)> &f);
/// Every statement, parents first.
void walk(Stmt &s, const std::function<void(Stmt &)> &f);
/// Every top-level expression of the statement itself (condition, init, step, expression), not of its children.
void ownExprs(Stmt &s, const std::function<void(ExprRef &)> &f);
/// Every expression node under `s`.
void walkExprs(Stmt &s, const std::function<void(const ExprRef &)> &f);
/// Whether `f` holds for a node of the expression, for one of those under `s`, for a statement of these.
bool anyNode(const ExprRef &e, const std::function<bool(const ExprRef &)> &f);
bool anyExpr(const Stmt &s, const std::function<bool(const ExprRef &)> &f);
bool anyStmt(const Stmt &s, const std::function<bool(const Stmt &)> &f);
ExprRef substitute(const ExprRef &e, const std::map<std::string, ExprRef> &names);
void substitute(Stmt &s, const std::map<std::string, ExprRef> &names);

// Asking what they are.
bool isVar(const ExprRef &e, std::string_view name);
bool isBuiltin(const ExprRef &e, std::string_view name);
bool isUnary(const ExprRef &e, std::string_view op);
bool isBinary(const ExprRef &e, std::string_view op);
/// An assignment, or ++ and --.
bool isChange(const ExprRef &e);
/// What a change gives its target, of whose type it is: b of a = b, a + b of a += b, a + 1 of ++a.
ExprRef newValue(const ExprRef &change);
/// A change of its first operand, or one that becomes possible: its address is taken.
bool mayChange(const ExprRef &e);
/// Reads an element, or a member through a pointer.
bool isLoad(const ExprRef &e);
/// p / i and p % i of integers, which fault where i is 0.
bool isIntDivision(const ExprRef &e);
/// Something in it assigns, counts, or calls what is not pure.
bool hasEffects(const ExprRef &e);
bool isLoop(const Stmt &s);
bool isAssignStmt(const Stmt &s, std::string_view op = "=");
/// A statement of one of the kinds is under `s`, or `s` is one.
bool holdsKind(const Stmt &s, std::initializer_list<StmtKind> kinds);
bool holdsStmt(const Stmt &s, const Stmt *wanted);
/// A break or continue (or only one of them) that belongs to the loop around `s`.
bool leavesIteration(const Stmt &s, std::initializer_list<StmtKind> kinds = {StmtKind::Break, StmtKind::Continue});
/// What a[i][j] is an element of; its name, empty when it is no variable; and i, j.
ExprRef subscriptRoot(ExprRef e);
std::string rootName(const ExprRef &e);
std::vector<ExprRef> indicesOf(const ExprRef &e);
/// The terms of a && b && c, of a + b + c, ….
std::vector<ExprRef> operandsOf(const ExprRef &e, std::string_view op);
std::set<std::string> namesDeclaredIn(const Stmt &s);
/// How often variables are changed under `s`, or their addresses taken, and mentioned; opaque text aside.
std::map<std::string, unsigned> countChanges(const Stmt &s);
std::map<std::string, unsigned> countMentions(const Stmt &s);

std::set<std::string> namesIn(const ExprRef &e); ///< that occur in `e`, opaque text included
bool mentions(const ExprRef &e, const std::string &name);
/// Opaque text in `e` or under `s` mentions one of `names`.
bool opaqueMentions(Stmt &s, const std::set<std::string> &names);
/// An atomic read-modify-write whose old value is not used: "atomicAdd(&a[i], x);" with + - min max & | ^.
bool isAtomicUpdate(const Stmt &s);
/// Contains a barrier, or what may contain one or let other threads wait. Atomic updates are neither.
bool hasBarrier(Stmt &s);
/// A name that no name in the kernel equals, made from `wish`.
std::string freshName(const Kernel &kernel, const std::string &wish);
/// The same against a set of names, to which the new one is added.
std::string freshName(std::set<std::string> &taken, const std::string &wish);
/// Renames what is declared under `s` (loop variables aside) to names that are not taken, for a copy that stands beside
/// its original. False when opaque text mentions one of them.
bool renameDeclarations(Stmt &s, std::set<std::string> &taken);
/// Every name in the kernel.
std::set<std::string> allNames(const Kernel &kernel);
/// Structural equality (types and line numbers aside).
bool equal(const ExprRef &a, const ExprRef &b);
bool equal(const Stmt &a, const Stmt &b);
bool equal(const Kernel &a, const Kernel &b);
/// C text of an expression.
std::string str(const ExprRef &e);
/// A kernel's parameters for those that print or call it.
std::vector<Parameter> parametersOf(const Kernel &kernel);
/// The kernel's definition as CUDA source, ending in a newline. `indent` is one level of the file's own style.
std::string print(const Kernel &kernel, const std::string &indent = "  ");

} // namespace optiml

#endif
