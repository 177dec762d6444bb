//===- KernelModel.h - what transforms ask of a kernel ----------*- C++ -*-===//
//
// Answers about one kernel tree under one launch plan: index arithmetic in normal form, which values differ between
// threads, the memory accesses with the guards and loops around them, and bounds of expressions. Computed once; the
// tree must not change while the model is used.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_KERNELMODEL_H
#define OPTIML_ANALYSIS_KERNELMODEL_H

#include "optiml/Analysis/Poly.h"
#include "optiml/Analysis/Tree.h"
#include <array>

namespace optiml {

/// Axes a value may vary along; bits.
enum Axis : unsigned {
  ThreadX = 1,
  ThreadY = 2,
  ThreadZ = 4,
  BlockX = 8,
  BlockY = 16,
  BlockZ = 32,
  FromMemory = 64, ///< depends on memory that the kernel itself may write
  AnyThread = ThreadX | ThreadY | ThreadZ,
  AnyBlock = BlockX | BlockY | BlockZ
};

/// "threadIdx.x", of "threadIdx" and 0.
inline std::string axisName(const char *base, unsigned axis) { return std::string(base) + '.' + char('x' + axis); }

enum class Space { Global, Shared, Local };

/// One read or write of an array element.
struct Access {
  ExprRef node;         ///< the Subscript (outermost)
  ExprRef place;        ///< all that is accessed: the node, or a member of it (a[i].pos.x)
  Stmt *stmt = nullptr; ///< the statement whose expression holds it
  std::string array;    ///< root: parameter, shared or local array, file-scope array, or "p.data"
  ExprRef root;
  Space space = Space::Global;
  bool read = false, write = false, atomic = false;
  std::string op;               ///< Assign: its operator
  std::vector<Poly> subscripts; ///< one a dimension (declared arrays), or one linear index (pointers), in elements
  unsigned bytes = 0;           ///< of one element
  bool wideIndex = false;       ///< the source computes the index in 64 bits
  std::vector<Stmt *> path;     ///< enclosing statements, outermost first, without `stmt`
  /// Conditions under which it runs: (condition, taken?) of enclosing ifs, ?:, && and early exits.
  std::vector<std::pair<ExprRef, bool>> guards;
  /// The members from `node` to `place`, outermost first; none: the whole element.
  std::vector<ExprRef> members() const;
};
/// An array itself, where `isPointer` tells of arrays and pointers alike.
bool isArray(const Type &type);
/// Two accesses of one array may meet in an element: neither is of a member that the other is not of.
bool sameMember(const Access &a, const Access &b);

class KernelModel {
public:
  /// `block`: the block shape when the plan fixes it, zeros otherwise.
  KernelModel(const Kernel &kernel, std::array<int64_t, 3> block = {0, 0, 0});

  const Kernel &kernel() const { return theKernel; }
  /// Constant block extent along axis 0..2, or 0 when the launch decides it.
  int64_t blockExtent(unsigned axis) const { return block[axis]; }

  /// Normal form. Locals that are assigned once are expanded. Always succeeds: what is no polynomial is an opaque atom.
  Poly poly(const ExprRef &e) const;
  /// The names a (possibly opaque) atom depends on, expanded.
  std::set<std::string> atomNames(const std::string &atom) const;
  /// One of `names` is an atom of it, or a name that an atom depends on.
  bool dependsOn(const Poly &p, const std::set<std::string> &names) const;
  /// The tree of an atom, for printing it again; null for names.
  ExprRef atomExpr(const std::string &atom) const;

  /// Every name in it keeps its value while the kernel runs (parameters, indices, single assignments, loop variables).
  bool stable(const Poly &p) const;
  bool stable(const ExprRef &e) const;

  /// Axes along which the value of `e` may differ. Data and control dependences are followed.
  unsigned varies(const ExprRef &e) const;
  unsigned variesName(const std::string &name) const;
  unsigned variesAtom(const std::string &atom) const;

  const std::vector<Access> &accesses() const { return allAccesses; }
  /// The element of an array of records in which the access lies: X[i] for X[i].v[k]. Any other is returned as it is.
  Access ofWholeRecord(const Access &access) const;
  /// accesses(), each of its whole record.
  std::vector<Access> accessesOfWholeRecords() const;
  bool writesArray(const std::string &array) const;
  /// The array of `read` is written, in the member that is read.
  bool writesWhatIsRead(const Access &read) const;
  /// Something in the kernel may write memory in ways the model does not see (calls, opaque text); its line, or 0.
  unsigned unknownEffectLine() const { return unknownEffects; }
  /// The same, but for calls that are confined to the thread's own variables: the others see all.
  unsigned unknownOutsideLine() const { return unknownOutside; }
  /// The same, but also for calls through which threads of a warp or block only meet or exchange registers.
  unsigned unknownMemoryLine() const { return unknownMemory; }

  /// The local's declaration, when it is a scalar (or pointer) that is assigned nowhere else.
  const Stmt *singleAssignment(const std::string &name) const;
  /// The counted loop that declares `name`, or nothing.
  std::optional<CountedLoop> loopOf(const std::string &name) const;
  /// A parameter; "p.data", a pointer in a parameter of class type, is like one.
  const Param *param(const std::string &name) const;
  /// Declaration of a local or shared variable.
  const Stmt *declaration(const std::string &name) const;

  /// A conjunction of facts p >= 0 implied by `guards` (affine parts only) and the bounds of the loops in `path`.
  std::vector<Poly> facts(const Access &access) const;
  void addFacts(const ExprRef &condition, bool taken, std::vector<Poly> &into) const;
  /// What the value never falls below, or is never above: max(a, b) is at least a, and at least b.
  std::vector<Poly> boundsOf(const ExprRef &e, bool fromBelow) const;
  /// Facts about loop variables among `loops`, thread and block indices.
  void addLoopFacts(const std::vector<Stmt *> &loops, std::vector<Poly> &into) const;

private:
  void collectDeclarations();
  /// An index of threads or blocks, an unsigned parameter, a counter from 0 on.
  bool neverNegative(const std::string &atom) const;
  /// The polynomial is never negative, by what its parts are at least: an unsigned difference does not wrap around.
  bool cannotWrap(const Poly &difference) const;
  /// Unsigned differences in an access's index that its guards keep from wrapping around ("i > 0" for u[i - 1]).
  void resolveDifferences(Access &access) const;
  /// The step of a loop is a number of threads or blocks, so that the variable only grows.
  bool takesTurns(const StridedLoop &loop) const;
  void collectVariance();
  void collectAccesses();
  /// Goes through the kernel with what stands around each access.
  struct AccessVisitor {
    KernelModel &model;
    std::vector<Stmt *> path = {};
    std::vector<std::pair<ExprRef, bool>> guards = {};
    Stmt *stmt = nullptr;
    void visit(Stmt &s);
    void visit(const ExprRef &e, bool read = true, bool write = false, const std::string &op = "");
    void guarded(const ExprRef &e, const ExprRef &condition, bool taken);
    void element(const ExprRef &e, bool read, bool write, const std::string &op);
    bool updated(const ExprRef &call);
    void integersOf(const ExprRef &place);
    void add(const ExprRef &e, bool read, bool write, const std::string &op, bool atomic = false);
  };
  /// The array behind a Subscript chain, through pointer locals and pointer arithmetic: (p + 3)[i] -> p, {i + 3}.
  ExprRef resolve(const ExprRef &e, std::vector<ExprRef> &subscripts) const;
  /// X for X[i].v; the root itself where it is no part of a record in memory.
  ExprRef arrayAround(const ExprRef &root) const;
  Poly withWrapping(const ExprRef &e) const;
  void resolveWrapping(Access &access) const;
  bool isPrivate(ExprRef root) const;

  Kernel theKernel; ///< shares the statements
  std::array<int64_t, 3> block;
  std::map<std::string, Param> memberPointers;
  std::map<std::string, Stmt *> decls;
  std::map<std::string, unsigned> assignments; ///< number of writes beyond the declaration
  std::set<std::string> addressTaken;
  std::map<std::string, CountedLoop> loops;
  std::set<std::string> turns; ///< variables of loops that threads run in turns, by all threads of a grid or block
  std::map<std::string, unsigned> variance;
  std::vector<Access> allAccesses;
  std::set<std::string> written;
  unsigned unknownEffects = 0, unknownOutside = 0, unknownMemory = 0;
  mutable std::map<std::string, ExprRef> opaqueAtoms;
};

/// max(a, b) or min(a, b), also as a condition: a < b ? a : b.
struct ExtremeOfTwo {
  bool greatest = false;
  ExprRef a, b;
};
std::optional<ExtremeOfTwo> asExtreme(const KernelModel &model, const ExprRef &e);

} // namespace optiml

#endif
