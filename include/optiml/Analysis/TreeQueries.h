//===- TreeQueries.h - places and loops of kernel trees ---------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_TREEQUERIES_H
#define OPTIML_ANALYSIS_TREEQUERIES_H

#include "optiml/Analysis/KernelModel.h"
#include "llvm/ADT/StringRef.h"

namespace optiml {

/// The kernel has shared memory, or something in it may synchronize.
bool threadsWorkTogether(const Kernel &kernel);

/// What a mapping of threads leaves of each thread's work: nothing; that it is done whole, and in order; or all of its
/// statements, as they are.
enum class Kept { Nothing, Order, Statements };

/// hasBarrier, but for calls that are confined to the thread's own variables. Where the order is kept, the values of
/// atomic operations may be used, unless a thread waits for one in a loop. Where statements are, calls and verbatim
/// text that any thread may run do no harm.
bool threadsMayMeet(Stmt &s, Kept kept = Kept::Nothing);

/// The variables that verbatim text or a confined call may change: whatever it mentions, or has pointers to.
std::set<std::string> changedWithin(const Expr &e);

/// Votes, shuffles and barriers that also vote touch no memory (CUDA C++ Programming Guide, synchronization, warp vote
/// and warp shuffle functions).
bool onlyExchangesRegisters(const Expr &call);

/// What holds the place: down through members and elements, but not through pointers.
const Expr *objectOf(const ExprRef &place);

/// Variables, in shared memory or private, whose address is taken, and arrays that are used as pointers.
std::set<std::string> usedByAddress(const Kernel &kernel);

/// ... of which one is private.
bool usesAddressesOfLocals(const Kernel &kernel);

/// Of the kernel's static shared memory.
int64_t sharedBytes(const Kernel &kernel);

/// It has no effects, and nothing in it is opaque text: evaluating it once more changes nothing.
bool onlyComputes(const ExprRef &e);

/// `part` is evaluated whenever `e` is: it stands behind no `&&`, `||` or `?`.
bool isCertain(const ExprRef &e, const ExprRef &part);

/// The last declaration of the name under `s`, or null.
Stmt *findDeclaration(Stmt &s, const std::string &name);

/// Replaces expressions by identity, wherever they stand under `root`.
void replaceNodes(Stmt &root, const std::map<const Expr *, ExprRef> &with);

/// C's usual arithmetic conversions, for the types that occur in index arithmetic.
Type commonType(const Type &a, const Type &b);

/// The value as a number of that type.
ExprRef asNumber(const Type &type, const ExprRef &value);

/// The list that holds statement `target` and its place in it.
struct StmtPlace {
  Stmt *block = nullptr;
  size_t index = 0;
};
std::optional<StmtPlace> findPlace(Stmt &root, const Stmt *target);

/// "kernel", then the loop variables from the outside in: the path of a loop in site names.
std::string loopPath(const std::vector<Stmt *> &path, const std::string &var);
/// The loop with that path; null when there is none.
Stmt *findLoop(Kernel &kernel, llvm::StringRef path, std::vector<Stmt *> *enclosing = nullptr);
/// Every counted loop with its path.
std::vector<std::pair<std::string, Stmt *>> countedLoops(const Kernel &kernel);
/// Those that stand in no other loop.
std::vector<std::pair<std::string, Stmt *>> outermostLoops(const Kernel &kernel);

/// Whether the access stands in the loop.
inline bool insideOf(const Access &access, const Stmt *loop) {
  return std::find(access.path.begin(), access.path.end(), loop) != access.path.end();
}

/// What `s` comes to where it is a block of one statement; null where a block has none or several.
const Stmt *onlyStatement(const Stmt &s);

/// Without casts around it between integers of 32 bits or more.
ExprRef withoutWideCasts(ExprRef e);

/// A thread's number in its block, where x runs fastest (CUDA C++ Programming Guide, thread hierarchy).
ExprRef rankInBlock(const Type &type);
/// How many threads a block has.
ExprRef threadsInBlock(const Type &type);

/// Another index in place of one: "globalIdx.x", "blockIdx.y". Each use keeps its type.
void renameIndex(Kernel &kernel, const std::string &from, const std::string &to);

/// Calls f for each list of statements, outermost first.
void forEachList(Stmt &root, const std::function<void(std::vector<StmtRef> &)> &f);

/// Of a parameter, or of a member of one ("p.n"); null when there is none.
const Type *typeOfArgument(const Kernel &kernel, llvm::StringRef name);

} // namespace optiml

#endif
