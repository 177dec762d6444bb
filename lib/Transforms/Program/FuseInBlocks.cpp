//===- FuseInBlocks.cpp - launches in a row, a block for each row ---------===//
//
// A block does, one after the other, what several launches did to one row of the arrays: a frame of a signal, a
// lattice, an image of a batch. Where a loop on the host launches a step for all rows, the block has that loop, with
// barriers between its steps. Where each launch has one thread for a row, so has the new kernel (docs/transforms/
// fuse-launches.md, "Loops of launches, row by row").
//
// Which of a launch's threads belong to a row is guessed from its indices, and bringToRows proves the guess. That
// threads of one launch do not need each other is what CUDA asks of the launch; so it is enough that no launch touches
// rows of another block in an array that one launch writes and another accesses. Each such access must be row * pitch +
// offset; that 0 <= offset < pitch is proven, or a kernel of its own looks at all of them (FuseCheck.cpp).
//
//===----------------------------------------------------------------------===//
#include "FuseInBlocks.h"
#include "FuseParts.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace optiml;

namespace {

// Threads of a block: the launch decides, by how many rows there are.
constexpr unsigned leastOfBlock = 32, mostOfBlock = 512;
// Ways to find the rows that are tried; each costs what fusing costs.
constexpr size_t mostGuesses = 4;

/// One of the texts that a launch becomes: in a loop whose buffers change places, each launch is written twice.
struct Instance {
  unsigned launch = 0;
  bool odd = false;
  StmtRef brought;           ///< what one thread would do for a row, a block
  size_t loops = 0;          ///< that stand around it for the launch's threads
  std::vector<StmtRef> work; ///< what is done for a row
};

class BlockFuser {
public:
  BlockFuser(const std::vector<SequenceLaunch> &launches, const std::string &name) : launches(launches), parts(name) {}

  /// With the rows counted in the way of that number; `last`: there is no further one.
  llvm::Expected<FusedLaunches> run(size_t number, bool &last, bool strictFloat) {
    last = true;
    if (llvm::Error e = addParts())
      return std::move(e);
    if (llvm::Error e = bringToBlocks(number, last))
      return std::move(e);
    assemble();
    made.kernel = kernel();
    made.dead = parts.dead;
    made.fresh = parts.fresh;
    return finishRows(std::move(made), strictFloat);
  }

private:
  using Kind = ArgumentKind;
  const std::vector<SequenceLaunch> &launches;
  FuseParts parts;
  RowKernel made;
  std::vector<Instance> instances;
  std::vector<std::string> turns; ///< the variables of loops
  int64_t mostThreads = 0;
  std::map<std::pair<unsigned, bool>, std::vector<StmtRef>>
      valuesOfTurn; ///< by loop and parity: declarations at the turn's start

  std::shared_ptr<Kernel> &kernel() { return parts.fused; }

  bool swaps(const std::optional<unsigned> &loop) const { return loop && made.blocks.loops[*loop].swaps; }

  std::string addParam(const std::string &wish, const Type &type) {
    kernel()->params.push_back({freshName(made.taken, wish), type, {}});
    return kernel()->params.back().name;
  }

  /// All parts with names of their own, and what their arguments have to be.
  llvm::Error addParts() {
    made.blocks.launches.resize(launches.size());
    for (unsigned i = 0; i < launches.size(); ++i) {
      const SequenceLaunch &launch = launches[i];
      made.blocks.launches[i].loop = launch.loop;
      if (launch.loop)
        made.blocks.loops.resize(std::max<size_t>(made.blocks.loops.size(), *launch.loop + 1));
      for (const LaunchArgument &argument : launch.arguments)
        if (argument.kind == Kind::Swapped)
          made.blocks.loops[*launch.loop].swaps = true;
    }
    for (unsigned i = 0; i < launches.size(); ++i) {
      const SequenceLaunch &launch = launches[i];
      const bool after = llvm::any_of(launch.arguments, [](const auto &a) { return a.kind == Kind::AfterSwaps; });
      for (bool odd : {false, true}) {
        if (odd && !after && !swaps(launch.loop))
          continue;
        KernelPart part{launch.tree, {}, launch.dead, launch.fresh};
        for (const LaunchArgument &a : launch.arguments) {
          part.arguments.push_back(changesInTurns(a.kind)
                                       ? std::to_string(*launch.loop) + ":" + a.text + (odd ? "'" : "")
                                   : odd && !a.other.empty() ? a.other
                                                             : a.text);
        }
        if (llvm::Error e = parts.add(part))
          return e;
        Kernel &added = *parts.parts.back();
        if (llvm::Error e = requireVisible(added, KernelModel(added), Meetings::None))
          return e;
        if (threadsMayMeet(*added.body, Kept::Order))
          return notApplicable("its threads may wait for each other");
        instances.push_back({i, odd, nullptr, 0, {}});
      }
    }
    made.taken = parts.mentioned;
    made.taken.insert(parts.declared.begin(), parts.declared.end());
    for (const Param &param : kernel()->params)
      made.taken.insert(param.name);
    for (const auto &[name, from] : parts.sources) {
      const Instance &instance = instances[from.first];
      const std::optional<unsigned> loop = launches[instance.launch].loop;
      const LaunchArgument &argument = launches[instance.launch].arguments[from.second];
      if (argument.kind == Kind::AfterSwaps ||
          (argument.kind == Kind::Swapped && instance.launch && launches[instance.launch - 1].loop == loop))
        return notApplicable("which buffer is meant by '{0}' is not told by a launch in each turn", name);
      made.blocks.sources[name] = {instance.launch, from.second, swaps(launches[instance.launch].loop) && instance.odd};
    }
    return llvm::Error::success();
  }

  /// It depends on an argument that is not the same in each turn of a loop.
  bool dependsOnTurn(unsigned instance, const Poly &p) const {
    const std::vector<LaunchArgument> &arguments = launches[instances[instance].launch].arguments;
    for (size_t j = 0; j < arguments.size(); ++j)
      if (changesInTurns(arguments[j].kind) && p.mentions(parts.names[instance][j]))
        return true;
    return false;
  }

  llvm::Error bringToBlocks(size_t number, bool &last) {
    std::vector<std::vector<RowGuess>> guesses;
    for (unsigned i = 0; i < instances.size(); ++i) {
      guesses.push_back(guessesOf(*parts.parts[i]));
      std::erase_if(guesses.back(), [&](const RowGuess &guess) {
        return dependsOnTurn(i, guess.inner) || (guess.count.rows && dependsOnTurn(i, *guess.count.rows)) ||
               (guess.count.by && dependsOnTurn(i, *guess.count.by));
      });
    }
    // As some part says by its bounds, or as many as there are blocks.
    std::vector<std::pair<RowCount, unsigned>> counts;
    for (bool ofGrid : {false, true})
      for (unsigned i = 0; i < guesses.size(); ++i)
        for (const RowGuess &guess : guesses[i])
          if (guess.count.ofGrid() == ofGrid && llvm::none_of(counts, [&](const auto &known) {
                return known.first == guess.count || (ofGrid && known.first.ofGrid());
              }))
            counts.push_back({guess.count, i});
    last = number + 1 >= std::min(counts.size(), mostGuesses);
    if (counts.empty())
      return notApplicable("none of them has a block, or some threads, for each row");
    return bringTo(counts[number].first, instances[counts[number].second].launch, guesses);
  }

  llvm::Error bringTo(const RowCount &count, unsigned launch, const std::vector<std::vector<RowGuess>> &guesses) {
    RowSpace space;
    space.name = freshName(made.taken, "row");
    space.outer = Poly(1);
    if (count.ofGrid() || count.by) {
      const std::string rows = freshName(made.taken, "rows");
      addExtent(rows, count.text(KernelModel(*kernel())), launch);
      space.rows = Poly::atom(rows);
    } else {
      space.rows = *count.rows;
    }
    for (unsigned i = 0; i < instances.size(); ++i) {
      std::optional<std::string> refused;
      bool done = false;
      for (const RowGuess &guess : guesses[i]) {
        if (done || (!guess.count.ofGrid() && !count.ofGrid() && !(guess.count == count)))
          continue;
        std::shared_ptr<Kernel> part = parts.parts[i]->clone();
        part->params = kernel()->params; // the rows' extents may be those of another part
        std::set<std::string> names = made.taken;
        nameThreads(*part, space, names);
        space.inner = guess.inner;
        auto brought = bringToRows(*part, space, names);
        if (!brought) {
          refused = refused.value_or(llvm::toString(brought.takeError()));
          continue;
        }
        if (brought->tookTurns) // in an order that counts where they share elements
          made.repeated.insert(instances[i].launch);
        made.taken = std::move(names);
        for (const auto &[text, name] : space.threads)
          if (anyExpr(*part->body, [&, name = name](const ExprRef &e) { return isVar(e, name); }))
            addExtent(name, text, instances[i].launch);
        instances[i].brought = part->body->body[1]->body[0];
        instances[i].loops = brought->loops.size();
        made.inRows = part->body->body[1]->expr;
        llvm::append_range(made.blocks.launches[instances[i].launch].conditions, brought->conditions);
        done = true;
      }
      if (!done)
        return notApplicable("{0}", refused.value_or("its rows are not counted as those of the others"));
    }
    if (llvm::Error e = shareWork())
      return e;
    made.row = space.name;
    const KernelModel model(*kernel());
    auto text = planText(model, space.rows);
    if (!text)
      return notApplicable("how many rows there are cannot be told before the launch");
    made.blocks.rows = IntExpr::of(*text);
    return llvm::Error::success();
  }

  /// A parameter for a number that the launch's geometry tells.
  void addExtent(const std::string &name, const std::string &value, unsigned launch) {
    kernel()->params.push_back({name, Type::makeInt(), {}});
    made.blocks.extents.push_back({name, IntExpr::of(value), launch});
  }

  /// Names for how many threads a part's launch has.
  static void nameThreads(Kernel &part, RowSpace &space, std::set<std::string> &names) {
    space.threads.clear();
    for (const char *text : {"block.x", "block.y", "block.z", "grid.x * block.x", "grid.y * block.y"}) {
      space.threads[text] = freshName(names, "threads");
      part.params.push_back({space.threads[text], Type::makeInt(), {}});
    }
  }

  /// A block has a row where some launch of a loop has several threads for it; a thread, where each launch has one.
  llvm::Error shareWork() {
    made.blocks.rowOfThread = llvm::all_of(instances, [](const Instance &instance) { return !instance.loops; });
    bool severalInLoop = false;
    for (Instance &instance : instances) {
      if (made.blocks.rowOfThread) {
        instance.work = instance.brought->body;
        continue;
      }
      severalInLoop |= launches[instance.launch].loop && instance.loops;
      if (!instance.loops && holdsKind(*instance.brought, {StmtKind::For, StmtKind::While, StmtKind::Do}))
        return notApplicable("a single thread of a block would do all of a row");
      instance.work = workOfBlock(instance.brought, instance.loops, mostThreads, made.loops);
    }
    if (!made.blocks.rowOfThread && !severalInLoop)
      return notApplicable("a block would have one thread at work");
    return llvm::Error::success();
  }

  const Type typeOf(const std::string &name) {
    return llvm::find_if(kernel()->params, [&](const Param &p) { return p.name == name; })->type;
  }

  /// What a launch's arguments have to be. Parameters that change from turn to turn become variables.
  void describeArguments() {
    std::map<std::string, RowBlocks::Argument> known; // by loop and text
    for (unsigned i = 0; i < instances.size(); ++i) {
      const Instance &instance = instances[i];
      const SequenceLaunch &launch = launches[instance.launch];
      RowBlocks::Launch &described = made.blocks.launches[instance.launch];
      described.arguments.resize(launch.arguments.size());
      for (unsigned j = 0; j < launch.arguments.size(); ++j) {
        const LaunchArgument &given = launch.arguments[j];
        const std::string name = parts.names[i][j];
        RowBlocks::Argument &argument = described.arguments[j];
        described.own[name] = j;
        argument.kind = given.kind;
        argument.loop = given.loop;
        if (!changesInTurns(given.kind)) {
          (instance.odd && !given.other.empty() ? argument.other : argument.value) = name;
          continue;
        }
        const Type type = typeOf(name).unqualified();
        const std::string at = std::to_string(*launch.loop) + ":" + given.text;
        auto [it, added] = known.try_emplace(at);
        if (added) {
          it->second = argument;
          if (given.kind != Kind::Listed) {
            it->second.value = addParam(name + "_first", type);
            if (given.kind == Kind::Counts)
              it->second.other = addParam(name + "_step", type);
          } else {
            Type list;
            list.cls = Type::Class::Record;
            list.text = made.blocks.listType = kernel()->name + "_list";
            list.bytes = mostListed * 4;
            it->second.value = addParam(name + "_list", list);
          }
        }
        argument = it->second;
        std::vector<StmtRef> &values = valuesOfTurn[{*launch.loop, instance.odd}];
        if (llvm::any_of(values, [&](const StmtRef &s) { return s->text == name; }))
          continue;
        values.push_back(declStmt(name, type, unknownValue(type)));
        made.valueOf[values.back().get()] = valueInTurn(argument, type, turnOf(*launch.loop, instance.odd));
        auto bound = llvm::find_if(made.blocks.bounds, [&](const RowBlocks::Bound &b) {
          return b.launch == instance.launch && b.argument == j;
        });
        made.boundsOf.emplace_back(name, bound - made.blocks.bounds.begin());
        if (bound == made.blocks.bounds.end())
          for (bool isGreatest : {false, true})
            made.blocks.bounds.push_back(
                {freshName(made.taken, name + (isGreatest ? "_most" : "_least")), instance.launch, j, isGreatest});
      }
    }
    std::erase_if(kernel()->params, [&](const Param &param) {
      return llvm::any_of(valuesOfTurn, [&](const auto &values) {
        return llvm::any_of(values.second, [&](const StmtRef &s) { return s->text == param.name; });
      });
    });
    for (const auto &[at, values] : valuesOfTurn)
      for (const StmtRef &s : values)
        made.blocks.sources.erase(s->text);
  }

  /// Stands for an argument's value until all has been proven: the analyses then know it by its name.
  static ExprRef unknownValue(const Type &type) {
    return subscript(var("arguments", Type::makePointer(type)), intLit(0), type);
  }

  static ExprRef valueInTurn(const RowBlocks::Argument &argument, const Type &type, const ExprRef &turn) {
    const ExprRef first = var(argument.value, type);
    switch (argument.kind) {
    case Kind::Counts:
      return add(first, mul(type.text == "int" ? turn : castTo(type, turn), var(argument.other, type)));
    case Kind::Doubles: return binary("<<", first, turn, type);
    case Kind::Halves: return binary(">>", first, turn, type);
    default: break;
    }
    Type list;
    list.cls = Type::Class::Record;
    const ExprRef at = memberExpr(var(argument.value, list), "at", Type::makePointer(Type::makeInt()));
    return subscript(at, turn, Type::makeInt());
  }

  ExprRef turnOf(unsigned loop, bool odd) const {
    ExprRef now = var(turns[loop], Type::makeInt());
    return odd ? add(now, intLit(1)) : now;
  }

  /// A launch's text in a loop's turn.
  std::vector<StmtRef> inTurn(const Instance &instance) {
    RowBlocks::Launch &launch = made.blocks.launches[instance.launch];
    if (launches[instance.launch].always)
      return instance.work;
    if (launch.from.empty()) {
      launch.from = addParam("from", Type::makeInt());
      launch.until = addParam("until", Type::makeInt());
    }
    const ExprRef now = turnOf(*launches[instance.launch].loop, instance.odd);
    auto atMost = [](ExprRef a, ExprRef b) { return binary("<=", a, b, Type::makeBool()); };
    return {ifStmt(
        logicalAnd(atMost(var(launch.from, Type::makeInt()), now), lessThan(now, var(launch.until, Type::makeInt()))),
        block(instance.work))};
  }

  StmtRef loopOfTurns(unsigned loop, const std::vector<const Instance *> &of) {
    const bool swaps = made.blocks.loops[loop].swaps;
    StmtRef copies[2] = {block(valuesOfTurn[{loop, false}]), block(valuesOfTurn[{loop, true}])};
    // In the order in which they run; a turn begins again with the first.
    std::vector<const Instance *> order;
    for (bool odd : {false, true})
      llvm::copy_if(of, std::back_inserter(order), [&](const Instance *instance) { return instance->odd == odd; });
    std::vector<const Instance *> first, unmet;
    for (const Instance *instance : order) {
      if (mustMeet(unmet, *instance)) {
        const bool isNext = instance->odd && !unmet.back()->odd; // the barrier stands at the end of the first copy
        made.meet(copies[instance->odd && !isNext]->body);
        if (first.empty())
          first = unmet;
        unmet.clear();
      }
      unmet.push_back(instance);
      llvm::append_range(copies[instance->odd]->body, inTurn(*instance));
    }
    if (first.empty() || llvm::any_of(first, [&](const Instance *instance) { return mustMeet(unmet, *instance); }))
      made.meet(copies[swaps]->body);
    const ExprRef count = var(made.blocks.loops[loop].turns, Type::makeInt());
    if (swaps)
      copies[0]->body.push_back(ifStmt(lessThan(turnOf(loop, true), count), copies[1]));
    StmtRef all = countedFor(turns[loop], Type::makeInt(), intLit(0), count, swaps ? 2 : 1, copies[0], NoUnroll);
    made.loops.insert(all.get());
    return all;
  }

  /// Whether what is done next touches an element that those before it may still change, or changes one of theirs.
  bool mustMeet(const std::vector<const Instance *> &before, const Instance &next) const {
    auto writes = [&](const Instance &instance, const std::string &name) {
      const size_t at = size_t(&instance - instances.data());
      for (size_t j = 0; j < parts.names[at].size(); ++j) {
        const Type &type = launches[instance.launch].tree->params[j].type;
        if (parts.names[at][j] == name && !(type.isPointer() && type.pointee->isConst) && !type.isInt() &&
            !type.isFloat())
          return true;
      }
      return false;
    };
    return llvm::any_of(before, [&](const Instance *other) {
      const std::vector<std::string> &a = parts.names[size_t(other - instances.data())],
                                     &b = parts.names[size_t(&next - instances.data())];
      return llvm::any_of(a, [&](const std::string &name) {
        return llvm::is_contained(b, name) && (writes(*other, name) || writes(next, name));
      });
    });
  }

  void assemble() {
    for (RowBlocks::Loop &loop : made.blocks.loops) {
      loop.turns = addParam("turns", Type::makeInt());
      turns.push_back(freshName(made.taken, "turn"));
    }
    std::vector<StmtRef> body;
    describeArguments();
    std::vector<const Instance *> unmet;
    auto meetBefore = [&](size_t i, size_t count) {
      std::vector<const Instance *> next;
      for (size_t k = i; k < i + count; ++k)
        next.push_back(&instances[k]);
      if (llvm::any_of(next, [&](const Instance *instance) { return mustMeet(unmet, *instance); })) {
        made.meet(body);
        unmet.clear();
      }
      llvm::append_range(unmet, next);
    };
    for (size_t i = 0; i < instances.size();) {
      const SequenceLaunch &launch = launches[instances[i].launch];
      auto after = llvm::find_if(launch.arguments, [](const auto &a) { return a.kind == Kind::AfterSwaps; });
      if (launch.loop) {
        std::vector<const Instance *> of;
        const size_t begin = i;
        for (; i < instances.size() && launches[instances[i].launch].loop == launch.loop; ++i)
          of.push_back(&instances[i]);
        meetBefore(begin, i - begin);
        body.push_back(loopOfTurns(*launch.loop, of));
      } else if (after == launch.arguments.end()) {
        meetBefore(i, 1);
        llvm::append_range(body, instances[i++].work);
      } else {
        meetBefore(i, 2);
        const ExprRef count = var(made.blocks.loops[after->loop].turns, Type::makeInt());
        body.push_back(ifStmt(binary("==", binary("%", count, intLit(2), Type::makeInt()), intLit(0), Type::makeBool()),
                              block(instances[i].work), block(instances[i + 1].work)));
        i += 2;
      }
    }
    ExprRef place = axisBuiltin("blockIdx", 0);
    if (made.blocks.rowOfThread) {
      place = globalIndexExpr(0);
      body = {ifStmt(made.inRows, block(std::move(body)))};
    }
    body.insert(body.begin(), declStmt(made.row, Type::makeInt(), place));
    kernel()->body = block(std::move(body));
    for (const Instance &instance : instances)
      if (launches[instance.launch].loop)
        made.repeated.insert(instance.launch);
    for (const Instance &instance : instances)
      for (const StmtRef &s : instance.work)
        walk(*s, [&](Stmt &inner) { made.launchOf[&inner] = instance.launch; });
    walk(*kernel()->body, [&](Stmt &s) { made.launchOf.try_emplace(&s, 0); }); // what stands around them
    made.blocks.threads = mostThreads ? unsigned(llvm::PowerOf2Ceil(uint64_t(mostThreads))) : mostOfBlock;
    made.blocks.threads = std::clamp(made.blocks.threads, leastOfBlock, mostOfBlock);
    kernel()->maxThreads = made.blocks.threads;
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseInBlocks(const std::vector<SequenceLaunch> &launches, const std::string &name,
                                                   bool strictFloat) {
  std::optional<std::string> refused;
  for (size_t number = 0;; ++number) {
    bool last = true;
    auto fused = BlockFuser(launches, name).run(number, last, strictFloat);
    if (fused)
      return fused;
    const std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
    if (last)
      return notApplicable("{0}", *refused);
  }
}
