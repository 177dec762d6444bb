//===- FuseInThreads.cpp - launches by the same threads, as one -----------===//
//
// A thread does in each turn of a loop what the thread of its number did in that launch: a frame, an angle, a node of a
// tree for a cell of its own. Nothing is said about where a thread's cells lie, so that images and volumes, triangles
// of pairs and tables of nodes are alike; what is proven is that no thread touches in one turn what another one has
// changed in a different one (requireSameThread).
//
//===----------------------------------------------------------------------===//
#include "JoinParts.h"
#include "LaunchTurns.h"
#include "SinkTurns.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace optiml;

// A block of so many threads may have all registers that a kernel can use.
static constexpr int64_t alwaysFits = 256;

namespace {

class ThreadFuser : LaunchTurns {
public:
  ThreadFuser(const std::vector<SequenceLaunch> &launches, const std::string &name)
      : LaunchTurns(launches, name, Meetings::OfAll) {}

  llvm::Expected<FusedLaunches> run(bool strictFloat) {
    made.blocks.rowOfThread = made.blocks.sameThreads = true;
    if (llvm::Error e = addParts())
      return std::move(e);
    if (llvm::Error e = bringOthers())
      return std::move(e);
    for (size_t i = 0; i < instances.size(); ++i) {
      instances[i].work = parts.parts[i]->body->body;
      const bool isLast = i + 1 == instances.size() && !launches[instances[i].launch].loop;
      if (threadsWorkTogether(*parts.parts[i]) && !isLast) // before others use the block's memory
        instances[i].work.push_back(barrierStmt());
      if (unsigned most = hasOwnThreads(i) ? 0 : parts.parts[i]->maxThreads)
        kernel()->maxThreads = kernel()->maxThreads ? std::min(kernel()->maxThreads, most) : most;
    }
    const std::array<int64_t, 3> &threads = launches[made.blocks.geometry].block;
    isKnown = llvm::all_of(threads, [](int64_t count) { return count > 0; });
    if (!kernel()->maxThreads && !(isKnown && threads[0] * threads[1] * threads[2] <= alwaysFits))
      kernel()->maxThreads = 1024; // with registers to spare for any block
    joinInTurns();
    auto body = inOrder();
    if (!body)
      return body.takeError();
    kernel()->body = block(std::move(*body));
    tellLaunches();
    return finish(strictFloat);
  }

private:
  bool isKnown = false;           ///< the shape of the first launch's blocks
  std::vector<PartJoiner> joined; ///< which keep statements that are left out

  bool hasOwnThreads(size_t instance) const { return made.blocks.launches[instances[instance].launch].ownThreads; }

  /// The geometry of some launches, where they have several: its threads are along x, and all that work together are
  /// among them.
  std::optional<unsigned> commonGeometry() const {
    for (unsigned launch = 0; launch < launches.size(); ++launch) {
      const bool good = llvm::all_of(llvm::enumerate(instances), [&](const auto &instance) {
        const Kernel &part = *parts.parts[instance.index()];
        return launches[instance.value().launch].like == launch ? isAlongX(part) : !threadsWorkTogether(part);
      });
      if (good && launches[launch].like == launch)
        return launch;
    }
    return std::nullopt;
  }

  /// How many elements the threads of that geometry have, as a kernel's bounds tell; else 0.
  Poly rowsOf(unsigned geometry) const {
    for (unsigned i = 0; i < instances.size(); ++i) {
      if (launches[instances[i].launch].like != geometry)
        continue;
      if (auto rows = elementsAlongX(*parts.parts[i]); rows && !dependsOnTurn(i, *rows))
        return *rows;
    }
    return Poly();
  }

  /// What launches that follow one another in each turn have in common stands once: guards, and the places of threads.
  void joinInTurns() {
    for (size_t begin = 0, end; begin < instances.size(); begin = end) {
      auto goesOn = [&](size_t i) {
        const SequenceLaunch &first = launches[instances[begin].launch], &next = launches[instances[i].launch];
        return first.loop && next.loop == first.loop && next.always && first.always &&
               instances[i].odd == instances[begin].odd && !threadsWorkTogether(*parts.parts[i - 1]);
      };
      for (end = begin + 1; end < instances.size() && goesOn(end);)
        ++end;
      if (end == begin + 1)
        continue;
      auto together = std::make_shared<Kernel>(*kernel());
      together->body = block();
      PartJoiner joiner(together, [&](const Poly &p) {
        return llvm::none_of(llvm::seq<unsigned>(0, instances.size()), [&](unsigned i) { return dependsOnTurn(i, p); });
      });
      for (size_t i = begin; i < end; ++i) {
        Kernel part = *parts.parts[i];
        part.params = kernel()->params;
        part.body = block(std::move(instances[i].work));
        instances[i].work.clear();
        joiner.add(part, instances[i].launch);
      }
      showStrides(*together, joiner.strides);
      instances[begin].work = together->body->body;
      for (const auto &[s, launch] : joiner.partOf)
        made.launchOf[s] = launch;
      joined.push_back(std::move(joiner));
    }
  }

  /// Where launches have other geometries: a thread does what the one with its element did.
  llvm::Error bringOthers() {
    if (llvm::all_of(launches, [](const SequenceLaunch &launch) { return launch.like == 0; }))
      return llvm::Error::success();
    const std::optional<unsigned> geometry = commonGeometry();
    if (!geometry)
      return notApplicable("the launches have other geometries");
    made.blocks.geometry = *geometry;
    RowSpace space = elementSpace(rowsOf(*geometry));
    for (unsigned i = 0; i < instances.size(); ++i) {
      RowBlocks::Launch &launch = made.blocks.launches[instances[i].launch];
      launch.ownThreads = launches[instances[i].launch].like != *geometry;
      if (!launch.ownThreads)
        continue;
      Kernel &part = *parts.parts[i];
      if (hasOtherElements(part, space.rows))
        return notApplicable("launches have other numbers of elements");
      part.params = kernel()->params; // the extents may be those of another part
      space.name = freshName(made.taken, "at");
      auto brought = bring(i, part, space, {"grid.x", "grid.y", "grid.z"});
      if (!brought)
        return brought.takeError();
      if (dependsOnTurn(i, brought->rows))
        return notApplicable("it has other elements in each turn");
      auto needed = coverRows(KernelModel(part), brought->rows);
      if (!needed)
        return needed.takeError();
      llvm::append_range(made.blocks.launches[*geometry].conditions, *needed);
    }
    return llvm::Error::success();
  }

  Planes stepsOfPointers() const {
    Planes steps;
    for (const RowBlocks::Launch &launch : made.blocks.launches)
      for (const RowBlocks::Argument &argument : launch.arguments)
        if (argument.kind == Kind::Counts)
          steps.insert(argument.other);
    return steps;
  }

  /// All launches stand in one loop, of which no turn needs what another one has done: each can have threads of its
  /// own.
  bool areApart(const KernelModel &model, const Planes &planes, KernelState &state) const {
    const auto isCertain = [](const SequenceLaunch &launch) { return launch.loop && launch.always; };
    const bool usesAxis = anyExpr(
        *kernel()->body, [](const ExprRef &e) { return isBuiltin(e, "blockIdx.z") || isBuiltin(e, "gridDim.z"); });
    if (turns.size() != 1 || made.blocks.loops[0].swaps || usesAxis || !llvm::all_of(launches, isCertain))
      return false;
    KernelState needed = state;
    needed.require("grid.z == 1", "the turns have that axis");
    const std::vector<Access> accesses = model.accessesOfWholeRecords();
    for (const Access &a : accesses)
      for (const Access &b : accesses)
        if (a.space == Space::Global && a.array == b.array && (a.write || b.write) && !comeInAnyOrder(a, b) &&
            !meetInOneIteration(model, {}, a, turns[0], b, turns[0], &needed, &planes))
          return false;
    state = std::move(needed);
    return true;
  }

  /// for (int turn …) work  becomes  int turn = blockIdx.z; work
  void spreadTurns() {
    const StmtRef loop = kernel()->body->body.front();
    std::vector<StmtRef> &body = loop->body[0]->body;
    if (body.back()->kind == StmtKind::Barrier) // no turn follows
      body.pop_back();
    body.insert(body.begin(), declStmt(turns[0], Type::makeInt(), axisBuiltin("blockIdx", 2)));
    kernel()->body = loop->body[0];
  }

  llvm::Expected<FusedLaunches> finish(bool strictFloat) {
    FusedLaunches result;
    const std::string &name = kernel()->name;
    result.state = originalState(kernel(), name, name, name, {});
    const std::array<int64_t, 3> &block = launches[made.blocks.geometry].block;
    for (unsigned axis = 0; axis < 3 && isKnown; ++axis)
      result.state.require(axisName("block", axis) + " == " + std::to_string(block[axis]),
                           "the kernel is written for blocks of this shape");
    for (const PartJoiner &joiner : joined)
      for (const Condition &condition : joiner.conditions)
        result.state.require(condition.expression.str(), condition.why);
    ArrayPairs disjoint;
    {
      const KernelModel model(*kernel(), isKnown ? block : std::array<int64_t, 3>{0, 0, 0});
      std::vector<BroughtPart> turnsOf(launches.size());
      for (unsigned launch : made.repeated)
        turnsOf[launch] = {{}, /*tookTurns=*/true, {turns[*launches[launch].loop]}};
      bool flows = false;
      const Planes planes = stepsOfPointers();
      if (llvm::Error e = requireSameThread(result.state, model, made.launchOf, {}, turnsOf, disjoint, flows, &planes))
        return std::move(e);
      if (strictFloat && llvm::any_of(model.accesses(), [](const Access &access) {
            return access.write && access.place->type.isFloat();
          }))
        return notApplicable("the compiler may round what is computed in other ways (--optiml-fp=strict)");
      made.blocks.turnsInGrid = areApart(model, planes, result.state);
    }
    forwardStores(*kernel(), disjoint);
    if (made.blocks.turnsInGrid)
      spreadTurns();
    for (unsigned loop = 0; loop < turns.size(); ++loop)
      if (llvm::count_if(instances,
                         [&](const Instance &i) { return launches[i.launch].loop == loop && !i.work.empty(); }) == 1)
        sinkTurns(*kernel(), turns[loop], valuesInTurns());
    for (const auto &[declaration, value] : made.valueOf)
      declaration->expr = value;
    made.blocks.bounds.clear();
    result.state.original = kernel()->clone();
    removeUnused(*kernel());
    result.state.tree = kernel();
    FusedKernel &fused = result.kernel;
    fused.name = name;
    fused.text = print(*kernel());
    fused.parameters = parametersOf(*kernel());
    fused.conditions = result.state.rewrite.conditions;
    fused.blocks = std::move(made.blocks);
    return std::move(result);
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseInThreads(const std::vector<SequenceLaunch> &launches,
                                                    const std::string &name, bool strictFloat) {
  return ThreadFuser(launches, name).run(strictFloat);
}
