//===- ThreadGroups.h - cooperative groups of a kernel ----------*- C++ -*-===//
//
// A kernel's block and its warps as objects (CUDA C++ Programming Guide, Cooperative Groups): thread_block, and
// thread_block_tile<32>. They hold nothing that the kernel does not know without them: where they are used for nothing
// but their ranks, barriers, shuffles and votes, these are read in their place.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_ANALYSIS_THREADGROUPS_H
#define OPTIML_LIB_ANALYSIS_THREADGROUPS_H

#include "clang/AST/Expr.h"
#include <map>
#include <optional>

namespace optiml {

class ThreadGroups {
public:
  enum class Group { Block, Warp };
  /// A call of a group's member, or a function of it, by name: "sync", "thread_rank", "shfl_down".
  struct Use {
    Group group;
    llvm::StringRef name;
    const clang::Expr *object; ///< that stands for the group
  };

  /// Looks for the function's variables for groups. None is known where one is used in another way.
  void find(const clang::FunctionDecl &function);
  /// The declaration of one: nothing needs it any more.
  bool isKnown(const clang::VarDecl *v) const { return variables.count(v); }
  /// The group that the expression stands for.
  std::optional<Group> groupOf(const clang::Expr *e) const;
  std::optional<Use> useOf(const clang::CallExpr *call) const;

private:
  friend class GroupFinder;
  std::map<const clang::VarDecl *, Group> variables;
};

} // namespace optiml

#endif
