//===- TimeStepReader.h - a kernel read as a stencil's step -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_TIMESTEPREADER_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_TIMESTEPREADER_H

#include "AccessRegions.h"
#include "optiml/Analysis/CellRules.h"
#include "optiml/Analysis/GridLayout.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Canonicalize/FlatIndex.h"
#include "llvm/ADT/STLExtras.h"

namespace optiml {

/// Reads a kernel as a step of a stencil, part by part.
class TimeStepReader {
public:
  explicit TimeStepReader(const KernelState &state) : state(state) {}
  llvm::Expected<TimeStep> run();

private:
  KernelState state; ///< gathers conditions
  std::shared_ptr<Kernel> kernel;
  std::optional<KernelModel> model;
  GridLayout layout;
  TimeStep step;
  std::map<const Access *, std::vector<CellDistance>> places; ///< of the fields' reads, along each dimension
  std::map<size_t, Poly> rings; ///< dimensions whose ends meet, and how many cells they have
  std::optional<FlatIndex> flat;
  std::vector<Poly> common; ///< facts about all cells that are computed
  std::set<std::string> taken;

  llvm::Error prepare();
  llvm::Error findFields();
  llvm::Error findDistances();
  llvm::Error requireOwnAddresses(const Access &access, const std::vector<CellDistance> &distances,
                                  const std::vector<Poly> &facts);
  llvm::Error requireNotNegative(const Poly &p, const std::vector<Poly> &facts, const Access &access);
  llvm::Error requireNoOverlap();
  llvm::Error requireFieldsApart(const std::string &a, const std::string &b);
  llvm::Expected<std::string> rangeOf(const std::string &field);
  llvm::Error findCells();
  bool onlyCopies() const;
  bool wholeRings(const std::vector<CellDistance> &distances, const std::vector<Poly> &facts) const;
  std::vector<std::map<std::string, int64_t>> loopValues(const Access &access) const;
  std::optional<std::vector<std::vector<Poly>>> guardsOf(const AccessRegions &sets, const Access &access,
                                                         const std::map<std::string, int64_t> &loops);
  llvm::Error requireWholeRing(const std::vector<std::vector<Poly>> &cells, size_t d, const Poly &length);
  llvm::Error writeBody();
  void name();
  bool isStoreTo(const Stmt &s, const std::string &array) const;
  void holdReads(Stmt &body);
  void holdConditions(Stmt &body);
  ExprRef ofCell(const ExprRef &e) const;
  ExprRef whereReached(const Stmt &body, const Stmt *target) const;
  bool mayRunStraight(Stmt &body) const;
  ExprRef elementNear(const Access &access, const std::vector<CellDistance> &distances, bool isStraight) const;
  void readFirst(Stmt &body, std::map<const Expr *, ExprRef> &replaced);
  ExprRef inRegisters(const Access &access, const std::vector<CellDistance> &distances, ExprRef element);
  std::vector<Poly> factsOf(const Access &access);
  Poly withoutWrapping(Poly p, const std::vector<Poly> &facts);
  const TimeStep::Field *fieldRead(const std::string &array) const {
    auto it = llvm::find_if(step.fields, [&](const TimeStep::Field &f) { return f.in == array; });
    return it == step.fields.end() ? nullptr : &*it;
  }
  const TimeStep::Field *fieldWritten(const std::string &array) const {
    auto it = llvm::find_if(step.fields, [&](const TimeStep::Field &f) { return f.out == array; });
    return it == step.fields.end() ? nullptr : &*it;
  }
};

} // namespace optiml

#endif
