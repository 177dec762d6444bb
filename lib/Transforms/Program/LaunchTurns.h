//===- LaunchTurns.h - launches and their loops, as one kernel --*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_LAUNCHTURNS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_LAUNCHTURNS_H

#include "FuseInBlocks.h"
#include "FuseParts.h"

namespace optiml {

/// One of the texts that a launch becomes: in a loop whose buffers change places, each launch is written twice.
struct Instance {
  unsigned launch = 0;
  bool odd = false;
  StmtRef brought;           ///< what one thread would do for a row, a block
  size_t loops = 0;          ///< that stand around it for the launch's threads
  std::vector<StmtRef> work; ///< what is done for a row, or by a thread
};

/// The text of launches that become one kernel: one after the other, and in loops where they stand in such on the host.
class LaunchTurns {
protected:
  using Kind = ArgumentKind;

  LaunchTurns(const std::vector<SequenceLaunch> &launches, const std::string &name, Meetings meetings)
      : launches(launches), meetings(meetings), parts(name) {}

  const std::vector<SequenceLaunch> &launches;
  const Meetings meetings; ///< of threads, in the launches
  FuseParts parts;
  RowKernel made;
  std::vector<Instance> instances;
  std::vector<std::string> turns; ///< the variables of loops

  std::shared_ptr<Kernel> &kernel() { return parts.fused; }
  const std::shared_ptr<Kernel> &kernel() const { return parts.fused; }
  std::string addParam(const std::string &wish, const Type &type);

  /// A parameter for a number that the launch's geometry tells.
  void addExtent(const std::string &name, const std::string &value, unsigned launch);
  /// It depends on an argument that is not the same in each turn of a loop.
  bool dependsOnTurn(unsigned instance, const Poly &p) const;
  /// bringToRows of an instance's `part`, with what its launch must be. `extents`: of which its rows may be made, over
  /// the launch's geometry; those that are used become parameters.
  llvm::Expected<BroughtPart> bring(unsigned instance, Kernel &part, RowSpace &space,
                                    llvm::ArrayRef<const char *> extents);
  /// All parts with names of their own, and what their arguments have to be.
  llvm::Error addParts();
  /// The work of all instances, in the order of the launches.
  llvm::Expected<std::vector<StmtRef>> inOrder();
  /// Which launch each statement of the kernel comes from, once it has its body.
  void tellLaunches();

  /// Declarations of what an argument is in a turn.
  std::set<const Stmt *> valuesInTurns() const;

private:
  std::map<std::pair<unsigned, bool>, std::vector<StmtRef>>
      valuesOfTurn; ///< by loop and parity: declarations at the turn's start

  bool swaps(const std::optional<unsigned> &loop) const { return loop && made.blocks.loops[*loop].swaps; }
  Type typeOf(const std::string &name) const;
  void describeArguments();
  void addBounds(unsigned launch, unsigned argument, const std::string &name);
  llvm::Error limitLists();
  RowBlocks::Argument inTurns(const LaunchArgument &given, const std::string &name, const Type &type);
  static ExprRef unknownValue(const Type &type);
  static ExprRef valueInTurn(const RowBlocks::Argument &argument, const Type &type, const ExprRef &turn);
  ExprRef turnOf(unsigned loop, bool odd) const;
  std::vector<StmtRef> inTurn(const Instance &instance);
  StmtRef loopOfTurns(unsigned loop, const std::vector<const Instance *> &of);
  bool mustMeet(const std::vector<const Instance *> &before, const Instance &next) const;
};

} // namespace optiml

#endif
