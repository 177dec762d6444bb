//===- KeepRow.cpp - elements that several loops share, in registers ------===//
//
// keep-row[kernel/c]{items=8}: loops one after the other, in which a thread goes through the same elements, share what
// they load and store. A thread keeps its elements in registers, of which it has `items` for each array. Memory is read
// by the first loop alone, and written by the last.
//
// Example:
//   for (int c = threadIdx.x; c < n; c += 32)        float in_kept[8];
//     m = fmaxf(m, in[c]);                           for (int k = 0; k < 8; ++k) {
//   …                                                  int c = threadIdx.x + k * 32;
//   for (int c = threadIdx.x; c < n; c += 32)          if (c < n) {
//     s += expf(in[c] - m);                              in_kept[k] = in[c];
//                                                        m = fmaxf(m, in_kept[k]);
//                                                      }
//                                                    }
//                                                    …
//                                                    for (int k = 0; k < 8; ++k) {
//                                                      int c = threadIdx.x + k * 32;
//                                                      if (c < n)
//                                                        s += expf(in_kept[k] - m);
//                                                    }
//                                                    // when n <= 256
//
// Legal: the loops stand in one list, and count alike. An array is kept where all accesses from the first loop to the
// last are to the same element of an iteration. Other arrays do not overlap it where either is written (proved, or a
// condition). The first access to it is made in each iteration, and so are all writes where threads wait for each other
// in between. A thread has no more than `items` iterations (a condition); where it has just as many, no test is needed.
//
// Refuses: loops that may be left early; steps that are not constant; text between the loops that is not understood.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

// Of all kept elements of a thread, in 32 bits each: more do not stay in registers.
constexpr int64_t mostRegisters = 96;
constexpr int64_t mostItems = 64;

/// One of the loops that count alike.
struct RowLoop {
  Stmt *stmt;
  CountedLoop counted;
};

/// An element of an iteration that the loops access, and how.
struct Cell {
  std::string array;
  Type type;
  std::vector<const Access *> accesses; ///< in the order of the text
  std::string kept;                     ///< name of the registers
};

class Keeper {
public:
  Keeper(KernelState &state, Kernel &kernel, int64_t items)
      : state(state), kernel(kernel), model(kernel, state.pinnedBlock()), items(items) {}

  llvm::Error run(Stmt *first) {
    if (llvm::Error e = findLoops(first))
      return e;
    if (llvm::Error e = checkRegion())
      return e;
    findCells();
    if (cells.empty())
      return notApplicable("no element is accessed by two of the loops{0}", reason.empty() ? "" : ": " + reason);
    int64_t registers = 0;
    for (const Cell &cell : cells)
      registers += items * std::max<int64_t>(1, cell.type.bytes / 4);
    if (registers > mostRegisters)
      return notApplicable("its elements need {0} registers", registers);
    auto exact = requireItems();
    if (!exact)
      return exact.takeError();
    rewrite(*exact);
    return llvm::Error::success();
  }

private:
  KernelState &state;
  Kernel &kernel;
  const KernelModel model;
  const int64_t items;
  std::vector<RowLoop> loops;
  Stmt *list = nullptr;
  size_t begin = 0, end = 0; ///< the statements from the first loop to the last
  bool waits = false;        ///< threads may wait for each other in between
  std::vector<Cell> cells;
  std::string reason; ///< why an array is not kept

  llvm::Error findLoops(Stmt *first) {
    auto place = findPlace(*kernel.body, first);
    auto counted = asCountedLoop(*first);
    if (!place || !counted)
      return notApplicable("line {0}: the loop does not count", first->line);
    if (!model.stable(counted->lower) || !model.stable(counted->upper))
      return notApplicable("line {0}: the loop's bounds may change", first->line);
    list = place->block;
    begin = place->index;
    const Poly lower = model.poly(counted->lower), upper = model.poly(counted->upper);
    for (size_t i = 0; i < list->body.size(); ++i) {
      Stmt &s = *list->body[i];
      auto other = s.kind == StmtKind::For ? asCountedLoop(s) : std::nullopt;
      if (!other || other->step != counted->step || !(model.poly(other->lower) == lower) ||
          !(model.poly(other->upper) == upper) || leavesEarly(*s.body[0]))
        continue;
      if (i < begin)
        return notApplicable("line {0}: an earlier loop counts like this one", first->line);
      loops.push_back({&s, *other});
      end = i + 1;
    }
    if (loops.size() < 2)
      return notApplicable("line {0}: no other loop counts like this one", first->line);
    return llvm::Error::success();
  }

  bool isInRegion(const Access &access) const {
    for (size_t i = begin; i < end; ++i)
      if (access.stmt == list->body[i].get() || insideOf(access, list->body[i].get()) ||
          (list->body[i]->init && access.stmt == list->body[i]->init.get()))
        return true;
    return false;
  }

  llvm::Error checkRegion() {
    unsigned line = 0;
    for (size_t i = begin; i < end; ++i) {
      Stmt &s = *list->body[i];
      if (holdsKind(s, {StmtKind::Return, StmtKind::Opaque}))
        line = std::max(1u, s.line);
      walkExprs(s, [&](const ExprRef &e) {
        const bool isCall = e->kind == ExprKind::Call;
        const bool isShuffle = isCall && llvm::StringRef(e->text).starts_with("__shfl_");
        const bool isWarpBarrier = isCall && e->text == "__syncwarp";
        waits |= isWarpBarrier;
        if (!e->pure && !isShuffle && !isWarpBarrier && !e->isAtomic)
          line = std::max(1u, e->line);
      });
      waits |= holdsKind(s, {StmtKind::Barrier});
    }
    if (line)
      return notApplicable("line {0} is not understood", line);
    return llvm::Error::success();
  }

  const RowLoop *loopOf(const Access &access) const {
    for (const RowLoop &loop : loops)
      if (insideOf(access, loop.stmt))
        return &loop;
    return nullptr;
  }

  /// Made in each iteration of its loop.
  static bool isPlain(const Access &access, const RowLoop &loop) {
    if (holdsKind(*loop.stmt->body[0], {StmtKind::Continue}))
      return false;
    bool inside = false, plain = true;
    for (const Stmt *s : access.path) {
      if (inside && s->kind != StmtKind::Block)
        plain = false;
      inside |= s == loop.stmt;
    }
    // Conditions of the loop's surroundings are met before it begins.
    return plain && !anyNode(access.stmt->expr, [&](const ExprRef &e) {
             const bool chooses = e->kind == ExprKind::Cond || isBinary(e, "&&") || isBinary(e, "||");
             return chooses && anyNode(e, [&](const ExprRef &inner) { return inner == access.node; });
           });
  }

  /// "A[i] = …;" or "A[i] += …;" as a statement.
  static bool isStore(const Access &access) {
    const Stmt &s = *access.stmt;
    return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->args[0] == access.node;
  }

  void findCells() {
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (access.space == Space::Global && isInRegion(access) && loopOf(access) &&
          !llvm::is_contained(arrays, access.array))
        arrays.push_back(access.array);
    for (const std::string &array : arrays) {
      KernelState saved = state;
      Cell cell{array, {}, {}, ""};
      std::string why = look(cell);
      if (why.empty()) {
        cells.push_back(std::move(cell));
        continue;
      }
      state = std::move(saved);
      if (reason.empty())
        reason = why;
    }
  }

  /// Why the array is not kept.
  std::string look(Cell &cell) {
    bool writes = false;
    std::optional<Poly> index;
    std::set<const RowLoop *> users;
    std::set<std::string> others;
    auto refuse = [&](const char *why, const Access &access) {
      return llvm::formatv("'{0}' {1} (line {2})", cell.array, why, access.stmt->line).str();
    };
    for (const Access &access : model.accesses()) {
      if (access.space != Space::Global || !isInRegion(access))
        continue;
      if (access.array != cell.array) {
        if (access.write)
          others.insert(access.array);
        continue;
      }
      const RowLoop *loop = loopOf(access);
      if (!loop || access.atomic || access.root->kind != ExprKind::Var || !model.param(access.array) ||
          access.subscripts.size() != 1 || access.place != access.node)
        return refuse("is accessed in other ways", access);
      if (access.write && (!isStore(access) || (waits && !isPlain(access, *loop))))
        return refuse("is written in some iterations", access);
      const Type &type = access.node->type;
      if ((type.cls != Type::Class::Int && !type.isFloat()) || type.isVolatile)
        return refuse("holds no numbers", access);
      const Poly own = access.subscripts[0].substitute(loop->counted.var, Poly::atom("@"));
      if (!own.mentions("@") || (index && !(own == *index)) || !model.stable(access.subscripts[0]))
        return refuse("is accessed at several elements", access);
      if (cell.accesses.empty() && !isPlain(access, *loop))
        return refuse("is accessed in some iterations", access);
      index = own;
      cell.type = type.unqualified();
      writes |= access.write;
      users.insert(loop);
      cell.accesses.push_back(&access);
    }
    if (users.size() < 2)
      return "'" + cell.array + "' is accessed by one loop";
    if (writes)
      for (const Access &access : model.accesses())
        if (access.space == Space::Global && isInRegion(access) && access.array != cell.array)
          others.insert(access.array);
    for (const std::string &other : others)
      if (llvm::Error e = requireDisjoint(state, model, cell.array, other))
        return llvm::toString(std::move(e));
    return "";
  }

  /// That a thread has no more iterations than items; true where it has just as many.
  llvm::Expected<bool> requireItems() {
    const CountedLoop &counted = loops.front().counted;
    const Poly lower = model.poly(counted.lower), upper = model.poly(counted.upper);
    int64_t first = 0, spread = 0; // of the threads' first iterations
    for (const auto &[monomial, factor] : lower.terms) {
      if (monomial.empty()) {
        first = factor;
        continue;
      }
      llvm::StringRef atom = monomial[0];
      if (monomial.size() != 1 || factor < 0 || !atom.consume_front("threadIdx."))
        return notApplicable("where its iterations begin is not known");
      const int64_t extent = model.blockExtent(unsigned(atom[0] - 'x'));
      spread = extent && spread >= 0 ? spread + factor * (extent - 1) : -1;
    }
    if (first < 0)
      return notApplicable("where its iterations begin is not known");
    const int64_t most = first + items * counted.step;
    const bool isFull = spread >= 0 && spread < counted.step;
    if (auto constant = upper.constant()) {
      if (*constant > most)
        return notApplicable("its threads have more than {0} iterations", items);
      return isFull && *constant == most;
    }
    auto text = planText(model, upper);
    if (!text)
      return notApplicable("how many iterations it has is not known before the launch");
    auto known = state.hints.evaluate(state.overOriginal(*text));
    const bool exact = isFull && known && *known == most;
    state.require(*text + (exact ? " == " : " <= ") + std::to_string(most), "a thread has registers for its elements");
    return exact;
  }

  void rewrite(bool exact) {
    std::set<std::string> taken = allNames(kernel);
    std::vector<StmtRef> declared;
    for (Cell &cell : cells) {
      cell.kept = freshName(taken, cell.array + "_kept");
      declared.push_back(declStmt(cell.kept, cell.type, nullptr, {intLit(items)}));
    }
    const std::string k = freshName(taken, "k");
    for (const RowLoop &loop : loops) {
      bool uses = false;
      for (const Cell &cell : cells)
        uses |= keep(cell, loop, var(k, Type::makeInt()));
      if (!uses)
        continue;
      // Loops one after the other may have one name, declarations may not.
      unsigned users = 0;
      walk(*kernel.body,
           [&](Stmt &s) { users += s.kind == StmtKind::For && s.init && s.init->text == loop.counted.var; });
      CountedLoop counted = loop.counted;
      if (users > 1) {
        counted.var = freshName(taken, loop.counted.var);
        substitute(*loop.stmt->body[0], {{loop.counted.var, var(counted.var, counted.type)}});
      }
      count(*loop.stmt, counted, k, exact);
    }
    list->body.insert(list->body.begin() + long(begin), declared.begin(), declared.end());
  }

  /// "for (T c = lower; c < upper; c += step)" becomes a loop over a thread's items.
  void count(Stmt &loop, const CountedLoop &counted, const std::string &k, bool exact) {
    std::vector<StmtRef> body = std::move(loop.body[0]->body);
    ExprRef c = var(counted.var, counted.type), item = var(k, Type::makeInt());
    if (!exact)
      body = {ifStmt(lessThan(c, counted.upper), block(std::move(body)))};
    const StmtRef whole = block(body);
    if (anyExpr(*whole, [&](const ExprRef &e) { return isVar(e, counted.var); }))
      body.insert(body.begin(),
                  declStmt(counted.var, counted.type, add(counted.lower, mul(item, intLit(counted.step)))));
    loop = *countedFor(k, Type::makeInt(), intLit(0), intLit(items), 1, block(std::move(body)), FullUnroll);
  }

  /// Accesses of a loop go to the registers; false where it has none.
  bool keep(const Cell &cell, const RowLoop &loop, const ExprRef &k) {
    const ExprRef kept = subscript(var(cell.kept, cell.type), k, cell.type);
    std::vector<const Access *> own;
    for (const Access *access : cell.accesses)
      if (insideOf(*access, loop.stmt))
        own.push_back(access);
    if (own.empty())
      return false;
    std::map<const Expr *, ExprRef> reads;
    std::vector<const Access *> stores;
    for (const Access *access : own)
      if (access->write)
        stores.push_back(access);
      else
        reads[access->node.get()] = kept;
    const bool loads = own.front() == cell.accesses.front() && own.front()->read;
    if (loads) // an element of its own: the others are replaced
      insertBefore(loop, own.front()->stmt, exprStmt(assign("=", kept, std::make_shared<Expr>(*own.front()->node))));
    // A statement that stores has the values of its own reads first.
    for (const Access *store : stores)
      rewriteStore(cell, *store, kept, reads);
    replaceNodes(*loop.stmt->body[0], reads);
    return true;
  }

  static void insertBefore(const RowLoop &loop, const Stmt *where, StmtRef what) {
    auto place = findPlace(*loop.stmt->body[0], where);
    std::vector<StmtRef> &statements = place->block->body;
    statements.insert(statements.begin() + long(place->index), std::move(what));
  }

  /// "A[i] op= v;" becomes "kept = v;", and what memory has to have of it.
  void rewriteStore(const Cell &cell, const Access &store, const ExprRef &kept,
                    const std::map<const Expr *, ExprRef> &reads) {
    const ExprRef &assignment = store.stmt->expr;
    ExprRef value = optiml::rewrite(assignment->args[1], [&](const ExprRef &e) -> ExprRef {
      auto found = reads.find(e.get());
      return found == reads.end() ? nullptr : found->second;
    });
    if (assignment->text != "=")
      value = binary(assignment->text.substr(0, assignment->text.size() - 1), kept, value, value->type);
    const bool isRead = isReadAfter(cell, store), isOverwritten = isOverwrittenAfter(cell, store);
    if (isOverwritten) {
      store.stmt->expr = assign("=", kept, value);
      return;
    }
    store.stmt->expr = assign("=", store.node, isRead ? kept : value);
    if (isRead) {
      auto place = findPlace(*kernel.body, store.stmt);
      std::vector<StmtRef> &statements = place->block->body;
      statements.insert(statements.begin() + long(place->index), exprStmt(assign("=", kept, value)));
    }
  }

  static bool isReadAfter(const Cell &cell, const Access &store) {
    auto at = llvm::find(cell.accesses, &store);
    return std::any_of(at + 1, cell.accesses.end(), [&](const Access *a) { return a->read && a->stmt != store.stmt; });
  }
  /// A later loop writes every element again. Nothing else looks at it before: all accesses are of the loops.
  bool isOverwrittenAfter(const Cell &cell, const Access &store) const {
    const RowLoop *loop = loopOf(store);
    auto at = llvm::find(cell.accesses, &store);
    return std::any_of(at + 1, cell.accesses.end(), [&](const Access *a) {
      const RowLoop *other = loopOf(*a);
      return a->write && other != loop && isPlain(*a, *other);
    });
  }
};

class KeepRow : public Transform {
public:
  llvm::StringRef name() const override { return "keep-row"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    KernelModel model(*state.tree, state.pinnedBlock());
    for (const auto &[path, loop] : countedLoops(*state.tree)) {
      auto counted = asCountedLoop(*loop);
      auto items = itemsOf(state, model, *counted);
      if (items && *items >= 1 && *items <= mostItems)
        offer(result, state, path, {{{"items", std::to_string(*items)}}});
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    const int64_t items = paramInt(params, "items", 0);
    if (items < 1 || items > mostItems)
      return notApplicable("a thread keeps 1 to {0} elements", mostItems);
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    KernelState result = state;
    if (llvm::Error e = Keeper(result, *kernel, items).run(loop))
      return std::move(e);
    result.tree = kernel;
    return result;
  }

private:
  /// How many iterations a thread has in the launch that is known.
  static std::optional<int64_t> itemsOf(const KernelState &state, const KernelModel &model,
                                        const CountedLoop &counted) {
    std::optional<int64_t> upper = model.poly(counted.upper).constant();
    if (auto text = upper ? std::nullopt : planText(model, model.poly(counted.upper)))
      upper = state.hints.evaluate(state.overOriginal(*text));
    if (!upper || counted.step < 2)
      return std::nullopt;
    return (*upper - model.poly(counted.lower).constantTerm() + counted.step - 1) / counted.step;
  }
};

} // namespace

DEFINE_TRANSFORM(KeepRow)
