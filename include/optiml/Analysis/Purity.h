//===- Purity.h - device functions without side effects ---------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_PURITY_H
#define OPTIML_ANALYSIS_PURITY_H

#include <map>

namespace clang {
class ASTContext;
class CallExpr;
class FunctionDecl;
class GCCAsmStmt;
class SourceLocation;
class SourceManager;
} // namespace clang

namespace optiml {

/// Answers whether calling a function is like evaluating an operator: it writes nothing but its own locals, reads no
/// memory that another thread may write, and does not synchronize. Judged from its body; the CUDA math library is pure.
class PurityAnalysis {
public:
  explicit PurityAnalysis(clang::ASTContext &ast) : ast(ast) {}
  /// Null (an indirect call) is not pure.
  bool isPure(const clang::FunctionDecl *function);
  /// Of such a function, and its default arguments are constants.
  bool isPure(const clang::CallExpr &call);
  /// Like a pure function, but for what its pointers and references lead to, which it may read and change. Where these
  /// lead to variables of the calling thread, no other thread notices the call.
  bool isConfined(const clang::FunctionDecl *function);
  /// Of such a function, and each argument is a value or leads to a local variable that is no pointer. Default
  /// arguments are constants.
  bool isConfined(const clang::CallExpr &call);
  /// It neither asks which thread runs it, nor meets or waits for others, nor updates by atomic operations: any thread
  /// may run it in this one's place. It may read and write whatever it likes.
  bool isUnaware(const clang::FunctionDecl *function);
  /// Of such a function, and its default arguments are constants.
  bool isUnaware(const clang::CallExpr &call);
  /// The same of a statement of a kernel, which control enters at its begin and leaves at its end.
  bool isUnaware(const clang::Stmt &s);
  /// It does not ask which block runs it, and does not wait for others: any block may run it in this one's place, if
  /// its threads do.
  bool isOfAnyBlock(const clang::FunctionDecl *function);
  bool isOfAnyBlock(const clang::CallExpr &call);
  /// Assembly in CUDA's own headers that computes its outputs from its inputs.
  bool isInstruction(const clang::GCCAsmStmt &s) const;

private:
  clang::ASTContext &ast;
  std::map<const clang::FunctionDecl *, bool> known, confined, unaware, ofAnyBlock;
};

/// In one of CUDA's headers for numbers of 16 bits.
bool isHalfHeader(const clang::SourceManager &sm, clang::SourceLocation loc);
/// The same, or in one for numbers of 8 bits and less, or for products of such numbers.
bool isNumberHeader(const clang::SourceManager &sm, clang::SourceLocation loc);

} // namespace optiml

#endif
