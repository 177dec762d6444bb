//===- QualifyPointers.cpp - `const` and `__restrict__` parameters --------===//
//
// qualify-pointers[kernel]: pointer parameters become `__restrict__`, and those through which the kernel never writes
// become pointers to `const`. The compiler may then keep loads in registers and use the read-only path.
//
// Example:
//   copy(float *from, float *to, int n)     copy_optiml(const float *__restrict__ from, float *__restrict__ to, int n)
//                                           // when disjoint(from, 4 * n, to, 4 * n)
//
// Legal: no two parameters of which one is written overlap where the kernel touches them (proved, or a condition).
// Where data tell the indices (`from[index[i]]`), the condition is that they lead into different allocations. A
// parameter from which a pointer variable is made does not become a pointer to `const`.
//
// Refuses: memory that is accessed in ways that the model does not understand; a parameter with other uses than as the
// root of accesses; volatile memory.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"

using namespace optiml;

namespace {
class QualifyPointers : public Transform {
public:
  llvm::StringRef name() const override { return "qualify-pointers"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    KernelModel model(*state.tree, state.pinnedBlock());
    if (unsigned line = model.unknownMemoryLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto kernel = state.tree->clone();
    KernelState result = state;
    std::vector<std::string> pointers;
    bool anything = false;
    for (Param &param : kernel->params) {
      if (!param.type.isPointer() || !param.type.pointee || param.type.pointee->isPointer())
        continue;
      if (param.type.pointee->isVolatile)
        return notApplicable("'{0}' points to volatile memory", param.name);
      bool usedOtherwise = escapes(*kernel, model, param.name);
      if (usedOtherwise)
        return notApplicable("'{0}' is used in a way that hides what is accessed through it", param.name);
      pointers.push_back(param.name);
      anything |= !param.type.isRestrict;
    }
    if (pointers.empty())
      return notApplicable("there are no pointer parameters");
    if (!anything)
      return notApplicable("every pointer parameter is __restrict__ already");
    for (const Access &part : model.accesses()) {
      const Access access = model.ofWholeRecord(part);
      bool direct = llvm::is_contained(pointers, access.array) && access.root->kind == ExprKind::Var;
      // Constant memory is no pointer's: a kernel cannot write it.
      if (access.space == Space::Global && !direct && !(access.root->type.isConst && !access.write))
        return notApplicable("'{0}' is reached other than through a pointer parameter (line {1})", access.array,
                             access.stmt->line);
    }
    for (size_t i = 0; i < pointers.size(); ++i)
      for (size_t k = i + 1; k < pointers.size(); ++k)
        if (model.writesArray(pointers[i]) || model.writesArray(pointers[k]))
          if (llvm::Error e = requireDisjoint(result, model, pointers[i], pointers[k]))
            return e;
    for (Param &param : kernel->params) {
      if (!llvm::is_contained(pointers, param.name))
        continue;
      param.type.isRestrict = true;
      bool isConst = param.type.pointee && param.type.pointee->isConst;
      bool derived = anyStmt(*kernel->body, [&](const Stmt &s) {
        return s.kind == StmtKind::Decl && s.type.isPointer() && s.expr && mentions(s.expr, param.name);
      }); // a pointer local made from it would need const as well
      if (!isConst && !derived && !model.writesArray(param.name)) {
        param.type.text = "const " + param.type.text;
        auto pointee = std::make_shared<Type>(*param.type.pointee);
        pointee->isConst = true;
        param.type.pointee = pointee;
      }
    }
    result.tree = kernel;
    return result;
  }

private:
  /// The parameter is used other than as the root of accesses the model has listed.
  static bool escapes(Kernel &kernel, const KernelModel &model, const std::string &name) {
    unsigned uses = 0, understood = 0;
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      uses += isVar(e, name);
      uses += unsigned(e->names.count(name)) * 2; // inside opaque text
      if (e->kind == ExprKind::Assign && isVar(e->args[0], name))
        uses += 2;
      if (isLoad(e))
        understood += isVar(e->args[0], name);
      if (e->kind == ExprKind::Call && e->isAtomic && !e->args.empty()) {
        unsigned inTarget = unsigned(namesIn(e->args[0]).count(name));
        bool direct = e->args[0]->kind == ExprKind::Var || e->args[0]->kind == ExprKind::Binary;
        understood += direct ? inTarget : 0;
      }
    });
    // Pointer locals that are followed.
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && s.type.isPointer() && s.expr && mentions(s.expr, name) &&
          model.singleAssignment(s.text)) {
        bool followed = false;
        for (const Access &access : model.accesses())
          followed |= access.array == name;
        bool plain = s.expr->kind == ExprKind::Var || s.expr->kind == ExprKind::Binary || isUnary(s.expr, "&");
        bool subscripted = s.expr->kind == ExprKind::Unary;
        understood += followed && plain && !subscripted;
      }
    });
    return uses > understood;
  }
};
} // namespace

DEFINE_TRANSFORM(QualifyPointers)
