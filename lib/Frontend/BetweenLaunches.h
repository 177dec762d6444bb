//===- BetweenLaunches.h - what may stand between launches ------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_BETWEENLAUNCHES_H
#define OPTIML_LIB_FRONTEND_BETWEENLAUNCHES_H

#include "clang/AST/ASTContext.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/Stmt.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// Compares an error code with cudaSuccess: what hangs on it only runs after an error.
bool asksForError(const clang::Expr *condition);

/// The function that gets the pointer variable's value, or to allocate its address, and keeps no copy of it; "launch"
/// of a kernel. Empty: something else is done with it.
llvm::StringRef useOfPointer(clang::ASTContext &ast, const clang::DeclRefExpr &ref);

/// Within a loop, where what comes before may come after, or a lambda.
bool isInLoop(clang::ASTContext &ast, const clang::Stmt *s);

/// The variable that holds what the expression names: itself, a member of it or an element of an array; null: none
/// does.
const clang::VarDecl *holder(const clang::Expr *e);
/// What the statement itself, without its parts, assigns to, counts, or hands over to be changed.
std::vector<const clang::Expr *> changedPlaces(const clang::Stmt *s);

/// The do { } while (0) of a macro, which is no loop.
bool runsOnce(const clang::DoStmt &loop);

/// Byte offset behind the loop, its semicolon included; nothing where a macro writes its end.
std::optional<unsigned> endOfLoop(const clang::Stmt &loop, const clang::SourceManager &sm,
                                  const clang::LangOptions &language);

/// Whether launches before a statement may be put off until after it: it neither sees nor changes what kernels work on.
class BetweenLaunches {
public:
  /// `refused` is set to the first reason against it, and `launches` gets the launches within the statements.
  BetweenLaunches(const clang::SourceManager &sm, std::string &refused,
                  std::vector<const clang::CUDAKernelCallExpr *> &launches)
      : sm(sm), refused(refused), launches(launches) {}

  bool stmt(const clang::Stmt *s);
  bool expr(const clang::Expr *e);

  /// Allows to read memory behind pointers and references until the host waits: while kernels run it cannot look at
  /// what they write. Of loops in those only whose turns are counted: another one may wait for what a kernel writes.
  void allowReads(bool allowed) { mayRead = allowed; }
  /// The host has waited for the GPU.
  bool hasWaited() const { return waited; }

private:
  const clang::SourceManager &sm;
  std::string &refused;
  std::vector<const clang::CUDAKernelCallExpr *> &launches;
  unsigned depth = 0;   ///< of calls
  unsigned waiting = 0; ///< loops around what is looked at that may wait for something
  bool mayRead = false, waited = false;
  bool thisIsLocal = false; ///< the method that is looked at is called on a local variable
  bool reads() const { return mayRead && !waited && !waiting; }

  bool refuse(clang::SourceLocation at, const std::string &why);
  bool refuse(const clang::Stmt *s, const std::string &why);
  bool all(const clang::Stmt *parent);
  bool loop(const clang::Stmt *s);
  bool declaration(const clang::VarDecl *v, bool init);
  bool variable(const clang::DeclRefExpr *ref);
  bool call(const clang::CallExpr *e);
  /// What the host writes there may tell another thread that the kernel has been launched.
  bool written(const clang::Expr *place);
};

} // namespace optiml

#endif
