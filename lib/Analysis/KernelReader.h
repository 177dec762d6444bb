//===- KernelReader.h - from Clang's AST to a kernel tree -------*- C++ -*-===//
//
// One case a statement or expression class. What has no place in the tree becomes opaque text with the names it
// mentions; what cannot even be kept as text (a renamed variable inside opaque text) is NotApplicable.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_ANALYSIS_READER_H
#define OPTIML_LIB_ANALYSIS_READER_H

#include "Inlining.h"
#include "SplitRecords.h"
#include "ThreadGroups.h"
#include "optiml/Analysis/AtomicFunction.h"
#include "optiml/Analysis/Purity.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Support/Error.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecordLayout.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

namespace optiml {

namespace cl = clang;

/// Names an opaque piece mentions, and what it calls.
class Mentions : public cl::DynamicRecursiveASTVisitor {
public:
  std::vector<const cl::VarDecl *> variables;
  std::vector<const cl::VarDecl *> declared;
  bool impure = false, usesThis = false;
  unsigned lambdas = 0;
  PurityAnalysis &purity;
  explicit Mentions(PurityAnalysis &purity) : purity(purity) {}
  bool VisitDeclRefExpr(cl::DeclRefExpr *ref) override {
    if (auto *v = llvm::dyn_cast<cl::VarDecl>(ref->getDecl()))
      variables.push_back(v);
    return true;
  }
  bool VisitVarDecl(cl::VarDecl *v) override {
    declared.push_back(v);
    return true;
  }
  bool TraverseLambdaExpr(cl::LambdaExpr *e) override {
    ++lambdas;
    bool result = cl::DynamicRecursiveASTVisitor::TraverseLambdaExpr(e);
    --lambdas;
    return result;
  }
  bool VisitStmt(cl::Stmt *s) override {
    // What leaves the text by itself, or comes in.
    impure |= !lambdas && llvm::isa<cl::ReturnStmt, cl::GotoStmt, cl::IndirectGotoStmt, cl::LabelStmt>(s);
    impure |= llvm::isa<cl::GCCAsmStmt>(s);
    if (auto *call = llvm::dyn_cast<cl::CallExpr>(s))
      impure |= !purity.isPure(call->getDirectCallee());
    if (auto *op = llvm::dyn_cast<cl::BinaryOperator>(s))
      impure |= op->isAssignmentOp();
    if (auto *op = llvm::dyn_cast<cl::UnaryOperator>(s))
      impure |= op->isIncrementDecrementOp() || op->getOpcode() == cl::UO_Deref;
    // What is read from memory may be written by another thread.
    if (auto *member = llvm::dyn_cast<cl::MemberExpr>(s))
      impure |= member->isArrow() && !llvm::isa<cl::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts());
    impure |= llvm::isa<cl::ArraySubscriptExpr>(s);
    usesThis |= llvm::isa<cl::CXXThisExpr>(s);
    return true;
  }
};

class KernelReader {
public:
  /// `followReferences`: local references are read as what they refer to. `intoPrivate`: private members of classes are
  /// named as if they were public, and read() fails where such a name is left when records are split.
  KernelReader(cl::ASTContext &ast, bool followReferences, bool intoPrivate)
      : followReferences(followReferences), intoPrivate(intoPrivate), ast(ast), sm(ast.getSourceManager()), purity(ast),
        policy(ast.getLangOpts()) {
    policy.SuppressTagKeyword = true;
    policy.FullyQualifiedName = true;
    policy.Bool = true;
    policy.PrintAsCanonical = false;
    policy.SuppressUnwrittenScope = true;
  }
  llvm::Expected<std::shared_ptr<Kernel>> read(const KernelDecl &source);

private:
  bool followReferences, intoPrivate;
  cl::ASTContext &ast;
  cl::SourceManager &sm;
  PurityAnalysis purity;
  std::map<const cl::FunctionDecl *, std::string> atomicFolds;
  cl::PrintingPolicy policy;
  std::map<const cl::VarDecl *, std::string> nameOf;
  std::set<std::string> taken, closures;
  std::set<std::string> memberPointers; ///< parameters of class type that the kernel keeps: p.data is a name of its own
  Records records;
  std::set<std::string> underway;                                      ///< classes that are being described
  std::map<std::string, const cl::CXXConstructorDecl *> constructorOf; ///< by key: the one in `records`
  std::string problem, place;
  ThreadGroups groups;
  std::vector<StmtRef> sharedOfCallees; ///< shared variables of functions that were read in place of calls
  const cl::FunctionDecl *kernelDecl = nullptr;
  cl::SourceLocation stands;               ///< the new kernel, which can name what is declared before
  const cl::CompoundStmt *scope = nullptr; ///< what is being read stands in it
  // While functions are read in place of calls of them (the innermost last): what their parameters and `this` stand
  // for.
  std::map<const cl::VarDecl *, ExprRef> arguments;
  ExprRef thisObject;
  std::vector<const cl::FunctionDecl *> inlining;
  std::set<std::string> *changedByCallees =
      nullptr; ///< gets the variables that functions read in the innermost one change
  /// Where the body of a called function may go.
  struct HoistPoint {
    std::vector<StmtRef> *before = nullptr; ///< the statement that holds the call comes next; null: nowhere
    const cl::Expr *whole = nullptr;        ///< what the statement evaluates last but for storing it in a local
    const cl::Expr *statement = nullptr;    ///< all that it evaluates
  } hoist;
  const cl::UnaryOperator *counting = nullptr; ///< of the statement that is read, taken out of it afterwards
  unsigned line(cl::SourceLocation loc) { return sm.getPresumedLoc(sm.getExpansionLoc(loc)).getLine(); }
  llvm::Error fail(cl::SourceLocation loc, const std::string &why);
  void note(cl::SourceLocation loc, const std::string &why);
  unsigned evaluate(const cl::Expr *e);
  /// The kernel-wide unique name of a local or parameter.
  std::string claim(const cl::VarDecl *v, const std::string &wish) { return nameOf[v] = uniqueName(wish); }
  std::string uniqueName(const std::string &wish);

  // Types and expressions.
  std::string typeText(cl::QualType type);
  Type convert(cl::QualType type);
  /// Public ones, those of members ("shape.rows") and elements of arrays ("strides[2]") too.
  std::vector<Param::Field> fieldsOf(cl::QualType type);
  void addFields(const std::string &name, cl::QualType type, unsigned offset, std::vector<Param::Field> &into);
  /// Notes what the class is made of; false when it is none that can be split.
  bool describe(cl::QualType type, const std::string &text);
  /// Notes what the constructor makes of its arguments.
  void describe(const cl::CXXConstructExpr *x, size_t given);
  std::shared_ptr<Expr> make(ExprKind kind, const cl::Expr *source, std::string text, std::vector<ExprRef> args = {});
  ExprRef opaque(const cl::Expr *source);
  std::set<std::string> opaqueNames(Mentions &mentions, cl::SourceLocation loc);
  /// The text, with variables under their names in the kernel.
  std::string verbatim(const cl::Stmt *source, const Mentions &mentions);
  static const cl::Expr *strip(const cl::Expr *e);
  ExprRef intConstant(const cl::Expr *source);
  ExprRef reference(const cl::DeclRefExpr *ref);
  /// threadIdx.x and friends, which Clang's headers make properties.
  ExprRef builtinOf(const cl::PseudoObjectExpr *e);
  ExprRef floatLiteral(const cl::FloatingLiteral *literal);
  ExprRef expression(const cl::Expr *source);
  ExprRef unaryOperator(const cl::UnaryOperator *x);
  ExprRef binaryOperator(const cl::BinaryOperator *x);
  ExprRef member(const cl::MemberExpr *x);
  ExprRef explicitCast(const cl::ExplicitCastExpr *x);
  ExprRef initList(const cl::InitListExpr *x);
  /// A member of a parameter of class type that the kernel does not change. What lies within it is a member of the
  /// parameter itself, by name and offset: p.shape.rows, p.strides[2].
  bool isOfParameter(const ExprRef &e) const;
  ExprRef partOfParameter(const cl::Expr *source, const ExprRef &param, const std::string &name, int64_t offset);
  /// p.strides[2] with a constant index; null for all else.
  ExprRef elementOfParameter(const cl::ArraySubscriptExpr *x);
  /// __half, __nv_bfloat16, or a pair of them.
  static bool isHalf(cl::QualType type);
  /// Of what copies or moves objects: it does so bit by bit, as that of numbers of 16 bits and their pairs.
  static bool copiesBits(const cl::CXXMethodDecl &method);
  /// (float)h, __half(x); null when it is no cast of such a number.
  ExprRef halfCast(const cl::ExplicitCastExpr *x);
  ExprRef halfConversion(const cl::CXXMemberCallExpr *x);
  ExprRef halfFrom(const cl::Expr *value, cl::QualType type);
  /// Arithmetic, comparisons and assignments; null for others.
  ExprRef halfOperator(const cl::CXXOperatorCallExpr *x);
  std::map<const cl::FunctionDecl *, CalleeFacts> calleeFacts;
  /// `e` converted to the type of a parameter or result.
  ExprRef converted(const ExprRef &e, cl::QualType to);

  // Functions in place of their calls.
  /// `source` where it stands, as it may not run, or several times: no function's body can go before it.
  ExprRef inPlace(const cl::Expr *source);
  /// The expression of a statement that is going to be appended to `out`.
  ExprRef hoisted(const cl::Expr *source, std::vector<StmtRef> &out);
  HoistPoint hoistPoint(const cl::Expr *source, std::vector<StmtRef> &out);
  const CalleeFacts &factsOf(const cl::FunctionDecl *definition);
  bool isSplittable(cl::QualType type);
  /// Records are passed by value: split, they are read in place.
  bool takesRecord(const cl::FunctionDecl *fn);
  /// The definition that could be read in place of the call, as far as it alone decides; or null.
  const cl::FunctionDecl *readable(const cl::CallExpr *x);
  /// The body as [if (c) return a;]… return b;  with the conditions and values in order. Empty when it is anything
  /// else.
  static std::vector<const cl::Expr *> returnedValues(const cl::FunctionDecl *fn);
  /// A call's arguments: the object, and an expression or a new local for every parameter.
  struct Binding {
    ExprRef object;
    std::map<const cl::VarDecl *, ExprRef> values;
    std::vector<std::pair<const cl::ParmVarDecl *, ExprRef>> locals;
    std::set<std::string> changed; ///< variables of the caller that the function changes
    bool loads = false;            ///< it takes a load to find a place that a reference stands for
  };
  /// The lambda's copies of variables equal the variables.
  bool capturesHold(const cl::CXXRecordDecl *lambda);
  std::optional<Binding> bindObject(const cl::CallExpr *x, const cl::FunctionDecl *fn, unsigned &firstArgument);
  static bool isTemporary(const cl::Expr *e);
  /// The same whenever it is evaluated while the function runs, and short enough to be written several times.
  bool isSimple(const ExprRef &e);
  /// p + i with an i that only computes: a[k] is then p[i + k].
  bool isOffset(const ExprRef &e);
  /// A lambda as an argument, or a parameter that stands for one.
  bool isClosure(cl::QualType type, const cl::Expr *argument);
  bool bindParameter(const cl::ParmVarDecl *param, const cl::Expr *argument, const CalleeFacts &facts,
                     bool oneExpression, Binding &binding);
  std::optional<Binding> bindArguments(const cl::CallExpr *x, const cl::FunctionDecl *fn, bool oneExpression);
  /// [if (c) return a;]… return b;  as  c ? a : b
  ExprRef valueOfReturns(const std::vector<const cl::Expr *> &parts, cl::QualType type);
  void returnValue(const cl::ReturnStmt *source, std::vector<StmtRef> &out);
  StmtRef local(const std::string &name, cl::QualType type, ExprRef value, const cl::Stmt *source);
  /// The statements of the function's body into `out`, and its value (null for none).
  std::optional<ExprRef> bodyInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn, std::vector<StmtRef> &out);
  /// `changed`: gets the variables of the caller that the function changes.
  std::optional<ExprRef> readInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn, std::vector<StmtRef> &made,
                                     std::set<std::string> &changed);
  /// Whether the expression itself stands for the variable, or something of it.
  bool names(const cl::Expr *e, const std::string &name);
  /// How many calls in `statement` change the variable; 0 where something else names it too.
  unsigned callsThatChange(const std::string &name, const cl::Expr *statement);
  /// A thread's own variable that `statement` names nowhere but in calls that change it: nothing else there sees it
  /// change.
  bool changesAlone(const std::string &name, const cl::Expr *statement);
  /// It is the same before and after any call: made of constants and the thread's own variables that no call can reach.
  bool keepsItsValue(const cl::Expr *e);
  /// All else of the value that is evaluated keeps its value, or waits for the call: "!f(p)", "f(p) > 0 && p[0] > 1".
  bool runsFirst(const cl::CallExpr *x, const cl::Expr *value);
  /// atomicFold, asked once.
  const std::string &foldOfFunction(const cl::FunctionDecl *fn) {
    auto [it, added] = atomicFolds.try_emplace(fn);
    return added ? it->second = atomicFold(fn) : it->second;
  }
  /// The value of a call whose function is read in its place (null for none); nothing where it stays a call.
  std::optional<ExprRef> inlined(const cl::CallExpr *x);
  /// A call as a statement of its own, whose value nobody uses.
  bool inlinedStatement(const cl::CallExpr *x, const StmtRef &statement, std::vector<StmtRef> &out);
  /// T(a, b) of a class that is copied byte by byte and whose constructor only computes, as a call; null for others.
  ExprRef construction(const cl::CXXConstructExpr *x);
  /// A default constructor that does nothing, nor do those of the members: they have no values after it.
  static bool leavesUnset(const cl::CXXConstructExpr *made);
  /// "T v(a, b);" as a declaration without a value and what the constructor does then; false, and nothing is done,
  /// where it has to stay whole.
  bool constructInPlace(const cl::VarDecl *v, const cl::CXXConstructExpr *x, const StmtRef &declared,
                        std::vector<StmtRef> &out);
  /// T{a, b} of a class without constructors, as a list; null for others.
  ExprRef aggregate(const cl::ExplicitCastExpr *x);
  /// a = b of structs that are copied byte by byte.
  ExprRef recordAssignment(const cl::CXXOperatorCallExpr *x);
  /// How the kernel calls a function that one of another scope calls `written`.
  std::string nameInKernel(const cl::FunctionDecl *fn, const std::string &written);
  ExprRef call(const cl::CallExpr *x);

  // Statements.
  StmtRef newStmt(StmtKind kind, const cl::Stmt *source);
  StmtRef body(const cl::Stmt *source);
  void declaration(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out);
  /// "const T &r = a[i];" where a[i] is the same element as long as r lives: r is read as a[i].
  bool reference(const cl::VarDecl *v, std::vector<StmtRef> &out);
  /// The same where the place may be another one later, but nothing changes in memory while r lives: r is a copy of its
  /// value.
  bool referenceCopy(const cl::VarDecl *v, std::vector<StmtRef> &out);
  /// A lambda, kept verbatim as long as something names it. Its own names stay within it.
  void closure(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out);
  void removeUnusedClosures(Kernel &kernel);
  void opaqueStmt(const cl::Stmt *source, std::vector<StmtRef> &out);
  static int unrollHint(const cl::AttributedStmt *attributed);
  void loop(const cl::ForStmt *source, std::vector<StmtRef> &out, int unroll);
  StmtRef loop(StmtKind kind, const cl::Stmt *source, const cl::Expr *condition, const cl::Stmt *inner);
  void declarations(const cl::DeclStmt *x, std::vector<StmtRef> &out);
  void branch(const cl::IfStmt *x, std::vector<StmtRef> &out);
  void expressionStatement(const cl::Expr *x, std::vector<StmtRef> &out);
  void statement(const cl::Stmt *source, std::vector<StmtRef> &out);
  /// A switch whose cases neither fall through nor are left from within, as an if; false for others.
  bool readSwitch(const cl::SwitchStmt *source, std::vector<StmtRef> &out);
  /// sincosf(x, &a, &b) as two assignments; false for other calls.
  bool sineAndCosine(const cl::CallExpr *x, std::vector<StmtRef> &out);
  /// Of a cooperative group: its rank, a shuffle, its barrier; null or false of other calls.
  ExprRef groupValue(const cl::CallExpr *x);
  bool groupBarrier(const cl::CallExpr *x, std::vector<StmtRef> &out);
  /// What the pointer leads to; null where it is not read as a whole.
  ExprRef pointedToBy(const cl::Expr *pointer);
  /// Of __ldg and __stcs, and their like; null or false of others.
  ExprRef cachedLoad(const cl::CallExpr *x);
  bool cachedStore(const cl::CallExpr *x, std::vector<StmtRef> &out);
  /// The "n++" of a statement like "a[n++] = x" that may as well be counted after it; null: there is none.
  const cl::UnaryOperator *countingOf(const cl::Expr *source);
  /// Reads what the statement evaluates, into it. True: countAfter() follows, once the statement stands in `out`.
  bool readCounting(Stmt &s, const cl::Expr *source, std::vector<StmtRef> &out);
  /// Moves the only step of a variable in `s` behind it, into `out`, where `s` stands.
  void countAfter(const StmtRef &s, std::vector<StmtRef> &out);
  /// A declaration that `declaration` keeps as a tree (so that one of several in a statement can stand alone).
  bool simple(const cl::VarDecl *v);
};

} // namespace optiml

#endif
