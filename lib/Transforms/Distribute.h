//===- Distribute.h - from one output a thread to several -------*- C++ -*-===//
//
// The engine under coarsen, coarsen-blocks and stage-shared. Threads of a kernel without barriers may run in any order,
// and so may blocks, so a thread may do the work of several, statement by statement: every statement is put into loops
// over the copies, variables that differ between copies become arrays, and guards are pushed inwards until the loops
// around the work are uniform ("unroll and jam" of the thread axes). With no copies it only pushes guards inwards.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_TRANSFORMS_DISTRIBUTE_H
#define OPTIML_LIB_TRANSFORMS_DISTRIBUTE_H

#include "CopyVariance.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Work of `factor` threads along `axis`: copy i stands for global index base + i * distance. Several along one axis
/// add up.
struct CopyAxis {
  unsigned axis = 0;
  int64_t factor = 1, distance = 1;
  std::string var;   ///< name of the loop variable over the copies
  int64_t piece = 1; ///< of remapThreads: more than 1: pieces of so many adjacent ones, a block's pieces apart
};

class Distributor {
public:
  /// `open` decides which loops and branches are entered; all others are kept whole, as leaves. `uniformAlong`: axes
  /// along which a branch that is entered must not vary (it is turned into guards on the leaves instead).
  Distributor(const Kernel &kernel, const KernelModel &model, std::vector<CopyAxis> copies, unsigned uniformAlong,
              std::function<bool(Stmt &)> open);
  /// The new body; globalIdx.a in it stands for copy 0 (its index is added where a copy is meant).
  llvm::Expected<StmtRef> run();
  /// In the new body the copies have elements of their own in an array of dynamic size.
  bool growsDynamicMemory() const { return !interleaved.empty(); }

private:
  struct Leaf {
    StmtRef stmt;
    unsigned mask;
    bool guarded;
  };
  static std::string globalName(unsigned axis);
  void classifyLocals();
  void widenWritten();
  bool widenWritten(const std::vector<StmtRef> &stmts, bool guarded);
  bool isSharedLoop(Stmt &s) const;
  bool breaksTogether(const Stmt &s) const;
  bool hasStableHeader(Stmt &s) const;
  unsigned wholeCopies(unsigned mask) const;
  unsigned varies(const ExprRef &e) const;
  unsigned valueVaries(const std::string &name) const;
  unsigned valueVaries(const ExprRef &e) const;
  std::optional<int64_t> stepOf(const Poly &p, const CopyAxis &along) const;
  bool holdsForFirst(const ExprRef &guard, unsigned along) const;
  unsigned widenedMask(const std::string &name) const;
  unsigned widenedMask(const ExprRef &e) const;
  unsigned copyMask(const CopyAxis &c) const { return (ThreadX | BlockX) << c.axis; }
  /// A list of statements on its way: what they stand under, what has been made of them, and the leaves that wait.
  struct Pass {
    const ExprRef &guard;
    std::vector<StmtRef> &out;
    std::vector<Leaf> group;
  };
  bool isOpened(Stmt &s) const { return isSharedLoop(s) || (s.kind == StmtKind::If && open(s)); }
  bool outlivesGroup(const std::vector<StmtRef> &stmts, size_t at, const ExprRef &guard) const;
  llvm::Error store(const StmtRef &declaration, Pass &pass);
  void addExtents(Stmt &declaration, unsigned mask) const;
  bool hasPlainElements(const std::string &array) const;
  bool isInterleaved(const ExprRef &e) const { return e->kind == ExprKind::Var && interleaved.count(e->text); }
  llvm::Error shared(const StmtRef &declaration, Pass &pass);
  llvm::Expected<bool> declaration(const std::vector<StmtRef> &stmts, size_t at, Pass &pass);
  llvm::Expected<bool> branch(const StmtRef &stmt, Pass &pass);
  llvm::Expected<bool> loop(const StmtRef &stmt, Pass &pass);
  llvm::Error leaf(const StmtRef &stmt, Pass &pass);
  /// False: the statement is a leaf.
  llvm::Expected<bool> enter(const std::vector<StmtRef> &stmts, size_t at, Pass &pass);
  llvm::Error list(const std::vector<StmtRef> &stmts, const ExprRef &guard, std::vector<StmtRef> &out);
  unsigned maskOf(Stmt &s) const;
  bool hasEffects(Stmt &s) const;
  bool speculatable(Stmt &s, const ExprRef &guard) const;
  bool keepsItsPlace(Stmt &s, const ExprRef &guard) const;
  bool isOfIndicesAlone(const Stmt &s) const;
  void flush(Pass &pass);
  ExprRef atCopy(const ExprRef &e) const;
  void atCopy(Stmt &s) const;
  std::vector<const CopyAxis *> axesIn(unsigned mask) const;

  const Kernel &kernel;
  const KernelModel &model;
  std::vector<CopyAxis> copies;
  unsigned allCopies = 0, uniformAlong;
  std::function<bool(Stmt &)> open;
  std::optional<CopyVariance> alive;           ///< of locals' values; none: KernelModel::varies tells
  bool needsPlainVariance = false;             ///< a guard may hold for some copies, and not for the first
  bool sharesBreaks = true;                    ///< loops that all copies leave together are entered, too
  bool breaksShared = false;                   ///< one was
  bool breaksUnderGuard = false;               ///< ... under a guard
  std::map<std::string, ExprRef> indexAtCopy;  ///< index local -> its value in a copy
  std::set<std::string> localNames;            ///< declared in the kernel
  std::map<std::string, unsigned> widened;     ///< local -> copies that would each change it, though all alike
  std::map<std::string, unsigned> expanded;    ///< local -> axes it is an array over
  std::map<std::string, unsigned> interleaved; ///< array of dynamic size -> axes whose copies take turns in it
  std::set<std::string> groupLocal;            ///< declared and used within one group of leaves
  std::map<std::string, ExprRef> guardOf; ///< the guard (null: none) under which a local is declared, pushed inwards
};

} // namespace optiml

#endif
