//===- ThreadGroups.cpp - cooperative groups of a kernel ------------------===//
#include "ThreadGroups.h"
#include "KernelReader.h"
#include "optiml/Analysis/TreeQueries.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace optiml;

static constexpr int64_t warpSize = 32;

/// In namespace cooperative_groups.
static bool isOfGroups(const cl::Decl *decl) {
  for (const cl::DeclContext *at = decl->getDeclContext(); at; at = at->getParent())
    if (auto *space = dyn_cast<cl::NamespaceDecl>(at); space && space->getName() == "cooperative_groups")
      return true;
  return false;
}

static std::optional<ThreadGroups::Group> groupOfType(cl::QualType type) {
  const cl::CXXRecordDecl *record = type->getAsCXXRecordDecl();
  if (!record || !record->getIdentifier() || !isOfGroups(record))
    return std::nullopt;
  if (record->getName() == "thread_block")
    return ThreadGroups::Group::Block;
  auto *tile = dyn_cast<cl::ClassTemplateSpecializationDecl>(record);
  if (!tile || record->getName() != "thread_block_tile" || tile->getTemplateArgs().size() == 0)
    return std::nullopt;
  const cl::TemplateArgument &size = tile->getTemplateArgs()[0];
  return size.getKind() == cl::TemplateArgument::Integral && size.getAsIntegral() == warpSize
             ? std::optional(ThreadGroups::Group::Warp)
             : std::nullopt;
}

static bool calls(const cl::FunctionDecl *callee, llvm::StringRef name) {
  return callee && callee->getIdentifier() && callee->getName() == name && isOfGroups(callee);
}

std::optional<ThreadGroups::Group> ThreadGroups::groupOf(const cl::Expr *e) const {
  e = e->IgnoreUnlessSpelledInSource();
  if (auto *ref = dyn_cast<cl::DeclRefExpr>(e)) {
    auto *v = dyn_cast<cl::VarDecl>(ref->getDecl());
    auto it = variables.find(v);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  }
  auto *call = dyn_cast<cl::CallExpr>(e);
  if (!call)
    return std::nullopt;
  if (calls(call->getDirectCallee(), "this_thread_block") && call->getNumArgs() == 0)
    return Group::Block;
  const bool divides = calls(call->getDirectCallee(), "tiled_partition") && call->getNumArgs() == 1;
  return divides && groupOf(call->getArg(0)) == Group::Block ? groupOfType(call->getType()) : std::nullopt;
}

std::optional<ThreadGroups::Use> ThreadGroups::useOf(const cl::CallExpr *call) const {
  const cl::FunctionDecl *callee = call->getDirectCallee();
  if (!callee || !callee->getIdentifier() || !isOfGroups(callee))
    return std::nullopt;
  const llvm::StringRef name = callee->getName();
  auto *member = dyn_cast<cl::MemberExpr>(call->getCallee()->IgnoreParenImpCasts());
  if (!member && (name != "sync" || call->getNumArgs() != 1))
    return std::nullopt;
  const cl::Expr *object = member ? member->getBase() : call->getArg(0);
  const auto group = groupOf(object);
  if (!group)
    return std::nullopt;
  static const llvm::StringSet<> ofAny = {"sync", "thread_rank", "size", "num_threads"};
  static const llvm::StringSet<> ofWarp = {"meta_group_rank", "meta_group_size", "any", "all", "ballot"};
  if (ofAny.contains(name) || (*group == Group::Warp && ofWarp.contains(name)))
    return Use{*group, name, object};
  if (*group != Group::Warp || !name.starts_with("shfl") || call->getNumArgs() != 2)
    return std::nullopt;
  // Larger values go by pieces.
  const cl::QualType value = call->getType();
  const bool isNumber = value->isArithmeticType() && !value->isBooleanType();
  const cl::QualType given = call->getArg(0)->getType().getNonReferenceType();
  return isNumber && value.getUnqualifiedType().getCanonicalType() == given.getUnqualifiedType().getCanonicalType()
             ? std::optional(Use{*group, name, object})
             : std::nullopt;
}

namespace optiml {
/// Notes the variables, and whether all of their uses are understood.
class GroupFinder : public cl::DynamicRecursiveASTVisitor {
public:
  explicit GroupFinder(ThreadGroups &groups) : groups(groups) {}
  bool good = true;
  std::set<const cl::DeclRefExpr *> mentioned, understood;

  bool VisitVarDecl(cl::VarDecl *v) override {
    if (!v->isLocalVarDecl() || v->getType()->isReferenceType() || !groupOfType(v->getType()))
      return true;
    const auto group = v->getInit() ? groups.groupOf(v->getInit()) : std::nullopt;
    good &= group.has_value();
    if (group) {
      groups.variables[v] = *group;
      understand(v->getInit());
    }
    return true;
  }
  bool VisitCallExpr(cl::CallExpr *call) override {
    if (const auto use = groups.useOf(call))
      understand(use->object);
    return true;
  }
  bool VisitDeclRefExpr(cl::DeclRefExpr *ref) override {
    if (auto *v = dyn_cast<cl::VarDecl>(ref->getDecl()); v && groups.variables.count(v))
      mentioned.insert(ref);
    return true;
  }

private:
  ThreadGroups &groups;
  /// The expression is a group: a variable, or made of one.
  void understand(const cl::Expr *e) {
    e = e->IgnoreUnlessSpelledInSource();
    if (auto *ref = dyn_cast<cl::DeclRefExpr>(e))
      understood.insert(ref);
    else if (auto *call = dyn_cast<cl::CallExpr>(e); call && call->getNumArgs() == 1)
      understand(call->getArg(0));
  }
};
} // namespace optiml

void ThreadGroups::find(const cl::FunctionDecl &function) {
  GroupFinder finder(*this);
  finder.TraverseStmt(function.getBody());
  if (!finder.good || finder.mentioned != finder.understood)
    variables.clear();
}

static ExprRef warpFunction(const std::shared_ptr<Expr> &call) {
  call->pure = false;
  call->isLibrary = call->isOfAnyBlock = true;
  return call;
}

ExprRef KernelReader::groupValue(const cl::CallExpr *x) {
  const auto use = groups.useOf(x);
  if (!use || use->name == "sync")
    return nullptr;
  const Type number = convert(ast.UnsignedIntTy);
  const ExprRef threads = threadsInBlock(number), rank = rankInBlock(number);
  const ExprRef lanes = intLit(warpSize, number);
  const bool isWarp = use->group == ThreadGroups::Group::Warp;
  if (use->name == "thread_rank")
    return isWarp ? binary("%", rank, lanes, number) : rank;
  if (use->name == "size" || use->name == "num_threads")
    return isWarp ? lanes : threads;
  if (use->name == "meta_group_rank")
    return binary("/", rank, lanes, number);
  if (use->name == "meta_group_size")
    return binary("/", binary("+", threads, intLit(warpSize - 1, number), number), lanes, number);
  std::vector<ExprRef> args = {intLit(0xffffffff, number)};
  for (const cl::Expr *arg : x->arguments())
    args.push_back(expression(arg));
  return warpFunction(make(ExprKind::Call, x, "__" + use->name.str() + "_sync", args));
}

bool KernelReader::groupBarrier(const cl::CallExpr *x, std::vector<StmtRef> &out) {
  const auto use = groups.useOf(x);
  if (!use || use->name != "sync")
    return false;
  StmtRef s = newStmt(use->group == ThreadGroups::Group::Block ? StmtKind::Barrier : StmtKind::Expr, x);
  if (s->kind == StmtKind::Expr)
    s->expr = warpFunction(make(ExprKind::Call, x, "__syncwarp"));
  out.push_back(s);
  return true;
}
