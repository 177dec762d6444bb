//===- RowArrays.cpp - rows of arrays that launches share -----------------===//
//
// An array that one launch writes and another, or another turn of a loop, accesses. Each access must be row * pitch +
// offset with 0 <= offset < pitch, and no array may overlap another one. Blocks keep their rows in shared memory, and
// threads rows of one element in registers; a second kernel leaves them where they are.
//
//===----------------------------------------------------------------------===//
#include "FuseInBlocks.h"
#include "FuseKernels.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

// Of shared memory, for rows.
static constexpr int64_t mostRowBytes = 48 << 10;

namespace {

class RowFinisher {
public:
  RowFinisher(RowKernel made, bool strictFloat) : made(std::move(made)), strictFloat(strictFloat) {}

  llvm::Expected<FusedLaunches> finish() {
    FusedLaunches result;
    result.state = originalState(made.kernel, made.kernel->name, made.kernel->name, made.kernel->name, {});
    {
      const size_t params = made.kernel->params.size();
      for (const RowBlocks::Bound &bound : made.blocks.bounds)
        made.kernel->params.push_back({bound.name, Type::makeLong(), {}});
      const KernelModel model(*made.kernel);
      const std::vector<Access> accesses = model.accessesOfWholeRecords();
      auto arrays = sharedArrays(result.state, model, accesses);
      if (!arrays)
        return arrays.takeError();
      if (arrays->empty())
        return notApplicable("no launch needs what another one has written");
      if (strictFloat &&
          llvm::any_of(accesses, [](const Access &access) { return access.write && access.place->type.isFloat(); }))
        return notApplicable("the compiler may round what is computed in other ways (--optiml-fp=strict)");
      made.kernel->params.resize(params); // without the bounds, which only the analysis needs
      if (llvm::Error e = addCheck(model, *arrays))
        return std::move(e);
      result.state.original = made.kernel->clone();
      keepRows(model, *arrays);
    }
    holdRowValues(made);
    removeUnused(*made.kernel);
    result.state.tree = made.kernel;
    FusedKernel &fused = result.kernel;
    fused.name = made.kernel->name;
    fused.text = print(*made.kernel);
    fused.parameters = parametersOf(*made.kernel);
    fused.conditions = result.state.rewrite.conditions;
    fused.blocks = std::move(made.blocks);
    return std::move(result);
  }

private:
  RowKernel made;
  const bool strictFloat;

  /// Along what the row differs.
  unsigned ofRow() const { return made.blocks.rowOfThread ? AnyBlock | AnyThread : AnyBlock; }

  struct RowArray {
    Poly pitch; ///< from row to row, in elements
    std::vector<RowAccess> accesses;
    bool atomic = false;
  };

  /// Its accesses, each as row * pitch + offset.
  llvm::Expected<RowArray> rowArray(const KernelModel &model, const std::vector<const Access *> &accesses) {
    RowArray found;
    const std::string index = made.index();
    for (const Access *access : accesses) {
      auto refuse = [&](const char *why) {
        return notApplicable("elements of '{0}' {1} (line {2})", access->array, why, access->stmt->line);
      };
      if (access->subscripts.size() != 1)
        return refuse("have several indices");
      const auto pitch = access->subscripts[0].coefficient(index);
      if (!pitch || pitch->terms.empty() || !onlyLaunchConstants(model, *pitch))
        return refuse("may belong to other rows");
      if (!found.accesses.empty() && !(found.pitch == *pitch))
        return refuse("lie in rows of different lengths");
      found.pitch = *pitch;
      const Poly offset = access->subscripts[0] - *pitch * Poly::atom(index);
      for (const std::string &atom : offset.atoms())
        if (model.variesAtom(atom) & ofRow())
          return refuse("may belong to other rows");
      if (*pitch == Poly(1) && !offset.terms.empty())
        return refuse("belong to other rows");
      found.accesses.push_back({access, offset});
      found.atomic |= access->atomic;
    }
    return found;
  }

  /// What is known where the access takes place, also of arguments that change from turn to turn.
  std::vector<Poly> factsOf(const KernelModel &model, const RowAccess &access) const {
    std::vector<Poly> facts = model.facts(*access.access);
    for (const auto &[name, at] : made.boundsOf) {
      facts.push_back(Poly::atom(name) - Poly::atom(made.blocks.bounds[at].name));
      facts.push_back(Poly::atom(made.blocks.bounds[at + 1].name) - Poly::atom(name));
    }
    return facts;
  }

  /// The access never lies within its row, or hardly ever: with "- pitch", or with "+ pitch" and nothing that is taken
  /// away again.
  bool isOutside(const KernelModel &model, const RowAccess &access, const Poly &pitch) const {
    if (pitch.terms.size() == 1 && !pitch.constant())
      if (auto whole = access.offset.terms.find(pitch.terms.begin()->first);
          whole != access.offset.terms.end() &&
          (whole->second < 0 || llvm::none_of(access.offset.terms, [](const auto &term) { return term.second < 0; })))
        return true;
    const std::vector<Poly> facts = factsOf(model, access);
    return llvm::any_of(std::initializer_list<Poly>{Poly(-1) - access.offset, access.offset - pitch},
                        [&](const Poly &p) {
                          const auto least = lowerBound(model, p, facts);
                          return least && least->constant() && *least->constant() >= 0;
                        });
  }

  /// What has to hold for the access to lie within its row: nothing, or conditions; none: that is not known.
  std::optional<std::vector<Condition>> insideWhere(const KernelModel &model, const RowAccess &access,
                                                    const Poly &pitch) const {
    const std::vector<Poly> facts = factsOf(model, access);
    std::vector<Condition> conditions;
    for (const Poly &p : {access.offset, pitch - Poly(1) - access.offset}) {
      const auto least = lowerBound(model, p, facts);
      const auto text = least ? planText(model, *least) : std::nullopt;
      if (!text)
        return std::nullopt;
      if (auto constant = least->constant(); !constant)
        conditions.push_back({IntExpr::of(*text + " >= 0"), "a block stays within its row"});
      else if (*constant < 0)
        return std::nullopt;
    }
    return conditions;
  }

  /// Looks at the accesses that are not proven to lie within their rows.
  llvm::Error addCheck(const KernelModel &model, const std::map<std::string, RowArray> &arrays) {
    std::vector<CheckedAccess> unproven;
    bool allKnown = true;
    for (const auto &[name, rows] : arrays)
      for (const RowAccess &access : rows.accesses) {
        const auto conditions = insideWhere(model, access, rows.pitch);
        if (conditions && conditions->empty())
          continue;
        if (isOutside(model, access, rows.pitch))
          return notApplicable("elements of '{0}' belong to other rows (line {1})", name, access.access->stmt->line);
        unproven.push_back({access, rows.pitch});
        allKnown &= conditions.has_value();
        for (const Condition &condition : conditions.value_or(std::vector<Condition>()))
          if (llvm::none_of(made.blocks.inside,
                            [&](const Condition &c) { return c.expression == condition.expression; }))
            made.blocks.inside.push_back(condition);
      }
    if (!allKnown || unproven.empty())
      made.blocks.inside.clear();
    if (made.blocks.inside.empty())
      made.blocks.bounds.clear();
    for (const auto &[declaration, value] : made.valueOf)
      declaration->expr = value;
    if (unproven.empty())
      return llvm::Error::success();
    auto check = checkOfRows(*made.kernel, model, unproven, ofRow(), made.taken);
    if (!check)
      return check.takeError();
    made.blocks.checkName = (*check)->name;
    made.blocks.checkText = print(**check);
    return llvm::Error::success();
  }

  /// A declaration of an argument's value.
  bool isArgument(const Access &access) const { return made.valueOf.count(access.stmt) != 0; }

  /// The arrays whose rows have to stay apart, by name.
  llvm::Expected<std::map<std::string, RowArray>> sharedArrays(KernelState &state, const KernelModel &model,
                                                               const std::vector<Access> &accesses) {
    std::map<std::string, std::vector<const Access *>> byArray;
    std::set<std::string> written;
    std::vector<const Access *> ofMemory;
    for (const Access &access : accesses)
      if (access.space == Space::Global && !isArgument(access)) {
        ofMemory.push_back(&access);
        byArray[access.array].push_back(&access);
        if (access.write)
          written.insert(access.array);
      }
    if (llvm::Error e = requireNoVariables(model, made.launchOf, ofMemory))
      return std::move(e);
    std::map<std::string, RowArray> result;
    for (const std::string &array : written) {
      if (const Param *param = model.param(array); !param || !param->type.isPointer()) // barriers know of arguments
        return notApplicable("'{0}' is not what an argument points to (line {1})", array,
                             byArray[array].front()->stmt->line);
      std::set<unsigned> by;
      bool repeated = false;
      for (const Access *access : byArray[array]) {
        by.insert(made.launchOf.at(access->stmt));
        repeated |= made.repeated.count(made.launchOf.at(access->stmt)) != 0;
      }
      if (by.size() > 1 || repeated) {
        auto rows = rowArray(model, byArray[array]);
        if (!rows)
          return rows.takeError();
        result[array] = std::move(*rows);
      }
      for (const auto &[other, theirs] : byArray) {
        if (other == array || isConstantOfFile(model, *theirs.front()) || (written.count(other) && other < array))
          continue;
        const Param *a = model.param(array), *b = model.param(other);
        if (!a || !b || !a->type.isPointer() || !b->type.isPointer())
          return notApplicable("whether '{0}' and '{1}' overlap cannot be tested", array, other);
        state.require("apart(" + array + ", " + other + ")", "'" + array + "' and '" + other + "' do not overlap");
      }
    }
    return result;
  }

  /// Rows that are worth keeping in shared memory, those with the most accesses first; of threads, in registers.
  std::vector<std::string> keptRows(const KernelModel &model, const std::map<std::string, RowArray> &arrays) const {
    std::vector<std::string> names;
    for (const auto &[name, rows] : arrays)
      if (!rows.atomic && planText(model, rows.pitch) &&
          (made.blocks.rowOfThread ||
           llvm::any_of(rows.accesses, [](const RowAccess &access) { return access.access->read; })))
        names.push_back(name);
    if (made.blocks.rowOfThread) {
      std::erase_if(names, [&](const std::string &name) { return !(arrays.at(name).pitch == Poly(1)); });
      return names;
    }
    llvm::stable_sort(names, [&](const std::string &a, const std::string &b) {
      return arrays.at(a).accesses.size() > arrays.at(b).accesses.size();
    });
    int64_t bytes = 0;
    std::string element; // of those whose length the launch tells, which lie in one array
    std::erase_if(names, [&](const std::string &name) {
      const RowArray &rows = arrays.at(name);
      if (const auto length = rows.pitch.constant()) {
        const int64_t own = *length * rows.accesses.front().access->bytes;
        const bool fits = own > 0 && bytes + own <= mostRowBytes;
        bytes += fits ? own : 0;
        return !fits;
      }
      const std::string type = rows.accesses.front().access->node->type.unqualified().text;
      element = element.empty() ? type : element;
      return element != type;
    });
    return names;
  }

  struct KeptRows {
    std::vector<StmtRef> declared, loads, stores;
    std::map<const Expr *, ExprRef> replaced;
    int64_t bytes = 0; ///< of rows of constant length
    ExprRef others;    ///< shared memory for the others, and how many elements of it are in use
    Poly used;
    unsigned elementBytes = 0; ///< ... of each
  };

  /// The variable or array that takes the place of an array's row.
  ExprRef placeOfRow(const std::string &name, const RowArray &rows, const Type &element, KeptRows &kept) {
    if (made.blocks.rowOfThread)
      return var(freshName(made.taken, name + "_value"), element);
    const unsigned bytes = rows.accesses.front().access->bytes;
    if (auto length = rows.pitch.constant()) {
      kept.bytes += *length * bytes;
      kept.declared.push_back(sharedArray(freshName(made.taken, name + "_row"), element, {intLit(*length)}));
      return var(kept.declared.back()->text, Type::makePointer(element));
    }
    if (!kept.others) {
      kept.declared.push_back(sharedArray(made.kernel->name + "_rows", element, {}));
      kept.declared.back()->isExtern = true;
      kept.declared.back()->dims = {nullptr};
      kept.others = var(kept.declared.back()->text, Type::makePointer(element));
      kept.elementBytes = bytes;
    }
    return kept.others;
  }

  /// An array's row on the chip.
  void keepRow(const KernelModel &model, const std::string &name, const RowArray &rows, KeptRows &kept) {
    const Type element = rows.accesses.front().access->node->type.unqualified();
    const ExprRef root = rows.accesses.front().access->root, place = placeOfRow(name, rows, element, kept);
    const bool isDead = made.dead.count(name) != 0, isLoaded = !isDead || !made.fresh.count(name);
    if (isLoaded) // all of it, whatever the launches touch of it
      made.blocks.kept.push_back(
          {IntExpr::of("holds(" + name + ", (" + made.blocks.rows.str() + ") * (" + *planText(model, rows.pitch) +
                       ") * " + std::to_string(rows.accesses.front().access->bytes) + ")"),
           "all rows are there"});
    made.blocks.storesRows |= !isDead;
    if (made.blocks.rowOfThread) {
      const ExprRef own = subscript(root, var(made.row, Type::makeInt()), element);
      kept.declared.push_back(declStmt(place->text, element, isLoaded ? own : nullptr));
      if (!isDead)
        kept.stores.push_back(exprStmt(assign("=", own, place)));
      for (const RowAccess &access : rows.accesses)
        kept.replaced[access.access->node.get()] = place;
      return;
    }
    const bool isConstant = rows.pitch.constant().has_value();
    const Poly before = isConstant ? Poly(0) : kept.used;
    kept.used = isConstant ? kept.used : kept.used + rows.pitch;
    for (const RowAccess &access : rows.accesses)
      kept.replaced[access.access->node.get()] = subscript(place, polyExpr(model, before + access.offset), element);
    const ExprRef length = polyExpr(model, rows.pitch);
    auto copy = [&](bool back) {
      const ExprRef at = var(freshName(made.taken, "at"), Type::makeInt());
      const ExprRef first = mul(castTo(Type::makeLong(), axisBuiltin("blockIdx", 0)), length);
      const ExprRef outside = subscript(root, add(first, at), element),
                    inside = subscript(place, before == Poly(0) ? at : add(polyExpr(model, before), at), element);
      return turnsOfThreads(at->text, at->type, length,
                            exprStmt(back ? assign("=", outside, inside) : assign("=", inside, outside)));
    };
    if (isLoaded)
      kept.loads.push_back(copy(false));
    if (!isDead)
      kept.stores.push_back(copy(true));
  }

  /// Keeps the rows on the chip for as long as the kernel runs, in a kernel of its own.
  void keepRows(const KernelModel &model, const std::map<std::string, RowArray> &arrays) {
    KeptRows kept;
    for (const std::string &name : keptRows(model, arrays))
      keepRow(model, name, arrays.at(name), kept);
    if (kept.replaced.empty())
      return;
    auto wide = made.kernel->clone();
    made.blocks.wideName = wide->name = made.kernel->name + "_wide";
    removeUnused(*wide);
    made.blocks.wideText = print(*wide);
    if (kept.others) {
      made.blocks.sharedBytes =
          IntExpr::of("(" + *planText(model, kept.used) + ") * " + std::to_string(kept.elementBytes));
      made.blocks.mostShared = mostRowBytes - kept.bytes;
    }
    replaceNodes(*made.kernel->body, kept.replaced);
    std::vector<StmtRef> &body = made.list();
    if (!kept.loads.empty())
      made.meet(kept.loads);
    if (!kept.stores.empty() && !made.blocks.rowOfThread)
      kept.stores.insert(kept.stores.begin(), barrierStmt());
    const long first = made.blocks.rowOfThread ? 0 : 1; // behind the row's number
    body.insert(body.begin() + first, kept.loads.begin(), kept.loads.end());
    body.insert(body.begin() + first, kept.declared.begin(), kept.declared.end());
    body.insert(body.end(), kept.stores.begin(), kept.stores.end());
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::finishRows(RowKernel made, bool strictFloat) {
  return RowFinisher(std::move(made), strictFloat).finish();
}
