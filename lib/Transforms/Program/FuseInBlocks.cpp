//===- FuseInBlocks.cpp - launches in a row, a block for each row ---------===//
//
// A block does, one after the other, what several launches did to one row of the arrays: a frame of a signal, a lattice,
// an image of a batch. Where a loop on the host launches a step for all rows, the block has that loop, with a barrier
// behind each step. Rows that fit are kept in shared memory.
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

// Of static shared memory, for rows.
constexpr int64_t mostRowBytes = 48 << 10;
// Ways to find the rows that are tried; each costs what fusing costs.
constexpr size_t mostGuesses = 4;

/// How many rows there are: a polynomial, a quotient of two that is to be worked out before the launch, or as many as
/// the launch has blocks, or threads, along an axis.
struct RowCount {
  std::optional<Poly> rows, by;
  unsigned axis = 0;
  bool ofThreads = false;
  bool ofGrid() const { return !rows && !by; }
  /// Over the launch.
  std::string text(const KernelModel &model) const {
    const std::string suffix(1, char('x' + axis));
    const std::string all = rows ? *planText(model, *rows) : "grid." + suffix + (ofThreads ? " * block." + suffix : "");
    return by ? "(" + all + ") / max(1, " + *planText(model, *by) + ")" : all;
  }
  bool operator==(const RowCount &) const = default;
};

/// How the rows may lie in a launch, and how far apart the first elements of two rows are, or how many threads each has.
struct RowGuess {
  RowCount count;
  Poly inner;
  bool operator==(const RowGuess &) const = default;
};


std::optional<Poly> quotient(const Poly &p, const Poly &by) {
  auto a = p.constant(), b = by.constant();
  if (a && b)
    return *b > 0 && *a % *b == 0 ? std::optional(Poly(*a / *b)) : std::nullopt;
  return quotientOf(p, by);
}

/// Factors of the index in subscripts of global arrays that do not change during a launch.
std::vector<Poly> stridesOf(const KernelModel &model, const std::string &index) {
  std::vector<Poly> found;
  for (const Access &access : model.accesses()) {
    if (access.space != Space::Global || access.subscripts.size() != 1)
      continue;
    auto factor = access.subscripts[0].coefficient(index);
    if (factor && !factor->terms.empty() && onlyLaunchConstants(model, *factor) && !llvm::is_contained(found, *factor))
      found.push_back(*factor);
  }
  return found;
}

std::vector<RowGuess> guessesOf(const Kernel &kernel) {
  std::shared_ptr<Kernel> part = kernel.clone();
  const std::array<AxisUse, 3> uses = normalizeGlobalIndex(*part, {0, 0, 0});
  const KernelModel model(*part);
  std::vector<RowGuess> found;
  auto add = [&](RowCount count, const Poly &inner) {
    if (RowGuess guess{std::move(count), inner}; !llvm::is_contained(found, guess))
      found.push_back(std::move(guess));
  };
  for (unsigned axis : {2u, 1u, 0u}) {
    if (!uses[axis].global) {
      for (const Poly &stride : stridesOf(model, axisName("blockIdx", axis)))
        add({std::nullopt, std::nullopt, axis, false}, stride);
      continue;
    }
    const std::string index = axisName("globalIdx", axis);
    const auto bound = upperBoundOf(model, index, /*ofWrites=*/true);
    if (!bound)
      for (const Poly &stride : stridesOf(model, index))
        add({std::nullopt, std::nullopt, axis, true}, stride);
    walkExprs(*part->body, [&](const ExprRef &e) { // thread / (threads of a row)
      if (!isBinary(e, "/") && !isBinary(e, ">>"))
        return;
      Poly by = model.poly(e->args[1]);
      if (e->text == ">>")
        by = by.constant() && *by.constant() >= 0 && *by.constant() < 31 ? Poly(int64_t(1) << *by.constant()) : Poly();
      if (by.terms.empty() || !(model.poly(e->args[0]) == Poly::atom(index)))
        return;
      auto rows = bound ? quotient(*bound, by) : std::nullopt;
      if (rows)
        add({rows, std::nullopt, 0, false}, by);
      else if (planText(model, by) && (!bound || planText(model, *bound)))
        add({bound, by, bound ? 0 : axis, !bound}, by);
    });
    if (!bound)
      continue;
    if (axis)
      for (const Poly &stride : stridesOf(model, index))
        add({bound, std::nullopt, 0, false}, stride);
    else
      add({bound, std::nullopt, 0, false}, Poly(1)); // a thread for each row
  }
  return found;
}

/// for (type at = threadIdx.x; at < upper; at += blockDim.x) body
StmtRef turnsOfThreads(const std::string &at, const Type &type, const ExprRef &upper, StmtRef body) {
  StmtRef loop = countedFor(at, type, axisBuiltin("threadIdx", 0), upper, 1, std::move(body), NoUnroll);
  loop->step = assign("+=", var(at, type), axisBuiltin("blockDim", 0));
  return loop;
}

/// Of what bringToRows made: what a block does for its row. The innermost of the loops that stand for threads has a
/// thread for each turn. `most`: becomes at least its extent, where that is a constant.
std::vector<StmtRef> workOfBlock(const StmtRef &work, size_t loops, int64_t &most) {
  if (!loops)
    return {ifStmt(binary("==", axisBuiltin("threadIdx", 0), intLit(0), Type::makeBool()), work)};
  StmtRef innermost = work->body.front();
  while (--loops)
    innermost = innermost->body[0]->body.front();
  const ExprRef upper = innermost->expr->args[1];
  *innermost = *turnsOfThreads(innermost->init->text, innermost->init->type, upper, innermost->body[0]);
  most = std::max(most, constantValue(upper).value_or(0));
  return work->body;
}

/// One of the texts that a launch becomes: in a loop whose buffers change places, each launch is written twice.
struct Instance {
  unsigned launch = 0;
  bool odd = false;
  StmtRef brought; ///< what one thread would do for a row, a block
  size_t loops = 0; ///< that stand around it for the launch's threads
  std::vector<StmtRef> work; ///< what is done for a row
};

class BlockFuser {
public:
  BlockFuser(const std::vector<SequenceLaunch> &launches, const std::string &name, bool strictFloat)
      : launches(launches), strictFloat(strictFloat), parts(name) {}

  /// With the rows counted in the way of that number; `last`: there is no further one.
  llvm::Expected<FusedLaunches> run(size_t number, bool &last) {
    last = true;
    if (llvm::Error e = addParts())
      return std::move(e);
    if (llvm::Error e = bringToBlocks(number, last))
      return std::move(e);
    assemble();
    return finish();
  }

private:
  using Kind = LaunchArgument::Kind;
  const std::vector<SequenceLaunch> &launches;
  const bool strictFloat;
  FuseParts parts;
  RowBlocks blocks;
  std::vector<Instance> instances;
  std::set<std::string> taken; ///< names in use, once all parts are there
  std::string row;
  ExprRef inRows; ///< row < rows
  std::vector<std::string> turns; ///< the variables of loops
  int64_t mostThreads = 0;
  std::map<std::string, std::vector<StmtRef>> valuesOfTurn; ///< by loop and parity: declarations at the turn's start
  std::map<const Stmt *, unsigned> launchOf;
  FusedLaunches result;

  std::shared_ptr<Kernel> &kernel() { return parts.fused; }

  bool swaps(const std::optional<unsigned> &loop) const { return loop && blocks.loops[*loop].swaps; }

  std::string addParam(const std::string &wish, const Type &type) {
    Param param;
    param.name = freshName(taken, wish);
    param.type = type;
    kernel()->params.push_back(param);
    return param.name;
  }

  /// All parts with names of their own, and what their arguments have to be.
  llvm::Error addParts() {
    blocks.launches.resize(launches.size());
    for (unsigned i = 0; i < launches.size(); ++i) {
      const SequenceLaunch &launch = launches[i];
      blocks.launches[i].loop = launch.loop;
      if (launch.loop)
        blocks.loops.resize(std::max<size_t>(blocks.loops.size(), *launch.loop + 1));
      for (const LaunchArgument &argument : launch.arguments)
        if (argument.kind == Kind::Swapped)
          blocks.loops[*launch.loop].swaps = true;
    }
    for (unsigned i = 0; i < launches.size(); ++i) {
      const SequenceLaunch &launch = launches[i];
      const bool after = llvm::any_of(launch.arguments, [](const auto &a) { return a.kind == Kind::AfterSwaps; });
      for (bool odd : {false, true}) {
        if (odd && !after && !swaps(launch.loop))
          continue;
        KernelPart part{launch.tree, {}, launch.dead, launch.fresh};
        for (const LaunchArgument &a : launch.arguments) {
          const bool changes = a.kind == Kind::Counts || a.kind == Kind::Listed;
          part.arguments.push_back(changes ? std::to_string(*launch.loop) + ":" + a.text + (odd ? "'" : "")
                                   : odd && !a.other.empty() ? a.other
                                                             : a.text);
        }
        if (llvm::Error e = parts.add(part))
          return e;
        instances.push_back({i, odd, nullptr, 0, {}});
      }
    }
    taken = parts.mentioned;
    taken.insert(parts.declared.begin(), parts.declared.end());
    for (const Param &param : kernel()->params)
      taken.insert(param.name);
    for (const auto &[name, from] : parts.sources) {
      const Instance &instance = instances[from.first];
      const std::optional<unsigned> loop = launches[instance.launch].loop;
      const LaunchArgument &argument = launches[instance.launch].arguments[from.second];
      if (argument.kind == Kind::AfterSwaps ||
          (argument.kind == Kind::Swapped && instance.launch && launches[instance.launch - 1].loop == loop))
        return notApplicable("which buffer is meant by '{0}' is not told by a launch in each turn", name);
      blocks.sources[name] = {instance.launch, from.second, swaps(launches[instance.launch].loop) && instance.odd};
    }
    return llvm::Error::success();
  }

  /// It depends on an argument that is not the same in each turn of a loop.
  bool changesInTurns(unsigned instance, const Poly &p) const {
    const std::vector<LaunchArgument> &arguments = launches[instances[instance].launch].arguments;
    for (size_t j = 0; j < arguments.size(); ++j)
      if ((arguments[j].kind == Kind::Counts || arguments[j].kind == Kind::Listed) &&
          p.mentions(parts.names[instance][j]))
        return true;
    return false;
  }

  llvm::Error bringToBlocks(size_t number, bool &last) {
    std::vector<std::vector<RowGuess>> guesses;
    for (unsigned i = 0; i < instances.size(); ++i) {
      guesses.push_back(guessesOf(*parts.parts[i]));
      std::erase_if(guesses.back(), [&](const RowGuess &guess) {
        return changesInTurns(i, guess.inner) || (guess.count.rows && changesInTurns(i, *guess.count.rows)) ||
               (guess.count.by && changesInTurns(i, *guess.count.by));
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
    space.name = freshName(taken, "row");
    space.outer = Poly(1);
    if (count.ofGrid() || count.by) {
      const std::string rows = freshName(taken, "rows");
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
        {
          const KernelModel model(*part);
          if (llvm::Error e = requireVisible(*part, model))
            return e;
        }
        part->params = kernel()->params; // the rows' extents may be those of another part
        std::set<std::string> names = taken;
        nameThreads(*part, space, names);
        space.inner = guess.inner;
        auto brought = bringToRows(*part, space, names);
        if (!brought) {
          refused = refused.value_or(llvm::toString(brought.takeError()));
          continue;
        }
        if (brought->tookTurns)
          return notApplicable("its threads take turns");
        taken = std::move(names);
        for (const auto &[text, name] : space.threads)
          if (anyExpr(*part->body, [&, name = name](const ExprRef &e) { return isVar(e, name); }))
            addExtent(name, text, instances[i].launch);
        instances[i].brought = part->body->body[1]->body[0];
        instances[i].loops = brought->loops.size();
        inRows = part->body->body[1]->expr;
        llvm::append_range(blocks.launches[instances[i].launch].conditions, brought->conditions);
        done = true;
      }
      if (!done)
        return notApplicable("{0}", refused.value_or("its rows are not counted as those of the others"));
    }
    if (llvm::Error e = shareWork())
      return e;
    row = space.name;
    const KernelModel model(*kernel());
    auto text = planText(model, space.rows);
    if (!text)
      return notApplicable("how many rows there are cannot be told before the launch");
    blocks.rows = IntExpr::of(*text);
    return llvm::Error::success();
  }

  /// A parameter for a number that the launch's geometry tells.
  void addExtent(const std::string &name, const std::string &value, unsigned launch) {
    Param param;
    param.name = name;
    param.type = Type::makeInt();
    kernel()->params.push_back(param);
    blocks.extents.push_back({name, IntExpr::of(value), launch});
  }

  /// Names for how many threads a part's launch has.
  static void nameThreads(Kernel &part, RowSpace &space, std::set<std::string> &names) {
    space.threads.clear();
    for (const char *text : {"block.x", "block.y", "block.z", "grid.x * block.x", "grid.y * block.y"}) {
      Param param;
      param.name = space.threads[text] = freshName(names, "threads");
      param.type = Type::makeInt();
      part.params.push_back(param);
    }
  }

  /// A block has a row where some launch of a loop has several threads for it; a thread, where each launch has one.
  llvm::Error shareWork() {
    blocks.rowOfThread = llvm::all_of(instances, [](const Instance &instance) { return !instance.loops; });
    bool severalInLoop = false;
    for (Instance &instance : instances) {
      if (blocks.rowOfThread) {
        instance.work = instance.brought->body;
        continue;
      }
      severalInLoop |= launches[instance.launch].loop && instance.loops;
      if (!instance.loops && hasLoop(*instance.brought))
        return notApplicable("a single thread of a block would do all of a row");
      instance.work = workOfBlock(instance.brought, instance.loops, mostThreads);
    }
    if (!blocks.rowOfThread && !severalInLoop)
      return notApplicable("a block would have one thread at work");
    return llvm::Error::success();
  }

  static bool hasLoop(Stmt &s) {
    return anyStmt(s, [](const Stmt &inner) { return isLoop(inner); });
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
      RowBlocks::Launch &described = blocks.launches[instance.launch];
      described.arguments.resize(launch.arguments.size());
      for (unsigned j = 0; j < launch.arguments.size(); ++j) {
        const LaunchArgument &given = launch.arguments[j];
        const std::string name = parts.names[i][j];
        RowBlocks::Argument &argument = described.arguments[j];
        described.own[name] = j;
        argument.kind = RowBlocks::Argument::Kind(given.kind);
        argument.loop = given.loop;
        if (given.kind != Kind::Counts && given.kind != Kind::Listed) {
          (instance.odd && !given.other.empty() ? argument.other : argument.value) = name;
          continue;
        }
        const Type type = typeOf(name).unqualified();
        const std::string at = std::to_string(*launch.loop) + ":" + given.text;
        auto [it, added] = known.try_emplace(at);
        if (added) {
          it->second = argument;
          if (given.kind == Kind::Counts) {
            it->second.value = addParam(name + "_first", type);
            it->second.other = addParam(name + "_step", type);
          } else {
            Type list;
            list.cls = Type::Class::Record;
            list.text = blocks.listType = kernel()->name + "_list";
            list.bytes = mostListed * 4;
            it->second.value = addParam(name + "_list", list);
          }
        }
        argument = it->second;
        std::vector<StmtRef> &values = valuesOfTurn[std::to_string(*launch.loop) + (instance.odd ? "'" : "")];
        if (llvm::any_of(values, [&](const StmtRef &s) { return s->text == name; }))
          continue;
        const ExprRef now = turnOf(*launches[instance.launch].loop, instance.odd);
        ExprRef value;
        if (given.kind == Kind::Counts)
          value = add(var(argument.value, type),
                      mul(type.text == "int" ? now : castTo(type, now), var(argument.other, type)));
        else
          value = subscript(memberExpr(var(argument.value, typeOf(argument.value)), "at", Type::makePointer(Type::makeInt())),
                            now, Type::makeInt());
        values.push_back(declStmt(name, type, value));
      }
    }
    std::erase_if(kernel()->params, [&](const Param &param) {
      return llvm::any_of(valuesOfTurn, [&](const auto &values) {
        return llvm::any_of(values.second, [&](const StmtRef &s) { return s->text == param.name; });
      });
    });
    for (const auto &[at, values] : valuesOfTurn)
      for (const StmtRef &s : values)
        blocks.sources.erase(s->text);
  }

  ExprRef turnOf(unsigned loop, bool odd) const {
    ExprRef now = var(turns[loop], Type::makeInt());
    return odd ? add(now, intLit(1)) : now;
  }

  /// A launch's text in a loop's turn.
  std::vector<StmtRef> inTurn(const Instance &instance) {
    RowBlocks::Launch &launch = blocks.launches[instance.launch];
    if (launches[instance.launch].always)
      return instance.work;
    if (launch.from.empty()) {
      launch.from = addParam("from", Type::makeInt());
      launch.until = addParam("until", Type::makeInt());
    }
    const ExprRef now = turnOf(*launches[instance.launch].loop, instance.odd);
    auto atMost = [](ExprRef a, ExprRef b) { return binary("<=", a, b, Type::makeBool()); };
    return {ifStmt(logicalAnd(atMost(var(launch.from, Type::makeInt()), now),
                              lessThan(now, var(launch.until, Type::makeInt()))),
                   block(instance.work))};
  }

  StmtRef loopOfTurns(unsigned loop, const std::vector<const Instance *> &of) {
    StmtRef copies[2];
    for (bool odd : {false, true}) {
      std::vector<StmtRef> list = valuesOfTurn[std::to_string(loop) + (odd ? "'" : "")];
      for (const Instance *instance : of) {
        if (instance->odd != odd)
          continue;
        llvm::append_range(list, inTurn(*instance));
        meet(list);
      }
      copies[odd] = block(std::move(list));
    }
    const ExprRef count = var(blocks.loops[loop].turns, Type::makeInt());
    if (!blocks.loops[loop].swaps)
      return countedFor(turns[loop], Type::makeInt(), intLit(0), count, 1, copies[0], NoUnroll);
    copies[0]->body.push_back(ifStmt(lessThan(turnOf(loop, true), count), copies[1]));
    return countedFor(turns[loop], Type::makeInt(), intLit(0), count, 2, copies[0], NoUnroll);
  }

  /// A block's threads wait for each other before they go on to what another launch did.
  void meet(std::vector<StmtRef> &list) const {
    if (!blocks.rowOfThread)
      list.push_back(barrierStmt());
  }

  void assemble() {
    for (RowBlocks::Loop &loop : blocks.loops) {
      loop.turns = addParam("turns", Type::makeInt());
      turns.push_back(freshName(taken, "turn"));
    }
    std::vector<StmtRef> body;
    describeArguments();
    for (size_t i = 0; i < instances.size();) {
      const SequenceLaunch &launch = launches[instances[i].launch];
      if (launch.loop) {
        std::vector<const Instance *> of;
        for (; i < instances.size() && launches[instances[i].launch].loop == launch.loop; ++i)
          of.push_back(&instances[i]);
        body.push_back(loopOfTurns(*launch.loop, of));
        continue;
      }
      auto after = llvm::find_if(launch.arguments, [](const auto &a) { return a.kind == Kind::AfterSwaps; });
      if (after == launch.arguments.end()) {
        llvm::append_range(body, instances[i++].work);
      } else {
        const ExprRef count = var(blocks.loops[after->loop].turns, Type::makeInt());
        body.push_back(ifStmt(binary("==", binary("%", count, intLit(2), Type::makeInt()), intLit(0), Type::makeBool()),
                              block(instances[i].work), block(instances[i + 1].work)));
        i += 2;
      }
      meet(body);
    }
    if (body.back()->kind == StmtKind::Barrier)
      body.pop_back();
    ExprRef place = axisBuiltin("blockIdx", 0);
    if (blocks.rowOfThread) {
      place = globalIndexExpr(0);
      body = {ifStmt(inRows, block(std::move(body)))};
    }
    body.insert(body.begin(), declStmt(row, Type::makeInt(), place));
    kernel()->body = block(std::move(body));
    for (const Instance &instance : instances)
      for (const StmtRef &s : instance.work)
        walk(*s, [&](Stmt &inner) { launchOf[&inner] = instance.launch; });
    blocks.threads = mostThreads && mostThreads <= 256 ? std::max<unsigned>(32, llvm::PowerOf2Ceil(mostThreads) / 2) : 256;
    kernel()->maxThreads = blocks.threads;
  }

  /// Along what the row differs.
  unsigned ofRow() const { return blocks.rowOfThread ? AnyBlock | AnyThread : AnyBlock; }

  // An array that one launch writes and another, or another turn of a loop, accesses.

  struct RowArray {
    Poly pitch; ///< from row to row, in elements
    std::vector<RowAccess> accesses;
    bool atomic = false;
  };

  /// Its accesses, each as row * pitch + offset.
  llvm::Expected<RowArray> rowArray(const KernelModel &model, const std::vector<const Access *> &accesses) {
    RowArray found;
    const std::string index = axisName(blocks.rowOfThread ? "globalIdx" : "blockIdx", 0);
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

  static bool isInside(const KernelModel &model, const RowAccess &access, const Poly &pitch) {
    const std::vector<Poly> facts = model.facts(*access.access);
    auto notNegative = [&](const Poly &p) {
      auto least = lowerBound(model, p, facts);
      return least && least->constant() && *least->constant() >= 0;
    };
    return notNegative(access.offset) && notNegative(pitch - Poly(1) - access.offset);
  }

  /// An element of an array that is a part of an argument.
  bool isInArgument(const Access &access) {
    const Expr &root = *access.root;
    return root.kind == ExprKind::Member && root.args[0]->kind == ExprKind::Var &&
           llvm::any_of(kernel()->params, [&](const Param &p) { return p.name == root.args[0]->text; }) &&
           root.args[0]->type.text == blocks.listType;
  }

  /// The arrays whose rows have to stay apart, by name.
  llvm::Expected<std::map<std::string, RowArray>> sharedArrays(KernelState &state, const KernelModel &model,
                                                               const std::vector<Access> &accesses) {
    std::map<std::string, std::vector<const Access *>> byArray;
    std::set<std::string> written;
    for (const Access &access : accesses)
      if (access.space == Space::Global && !isInArgument(access)) {
        byArray[access.array].push_back(&access);
        if (access.write)
          written.insert(access.array);
      }
    std::map<std::string, RowArray> result;
    for (const std::string &array : written) {
      std::set<unsigned> by;
      bool repeated = false;
      for (const Access *access : byArray[array]) {
        by.insert(launchOf.at(access->stmt));
        repeated |= launches[*by.rbegin()].loop.has_value() || launches[launchOf.at(access->stmt)].loop.has_value();
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
  std::vector<std::string> keptRows(const std::map<std::string, RowArray> &arrays) const {
    std::vector<std::string> names;
    for (const auto &[name, rows] : arrays)
      if (!rows.atomic && rows.pitch.constant() &&
          (blocks.rowOfThread ||
           llvm::any_of(rows.accesses, [](const RowAccess &access) { return access.access->read; })))
        names.push_back(name);
    if (blocks.rowOfThread) {
      std::erase_if(names, [&](const std::string &name) { return *arrays.at(name).pitch.constant() != 1; });
      return names;
    }
    llvm::stable_sort(names, [&](const std::string &a, const std::string &b) {
      return arrays.at(a).accesses.size() > arrays.at(b).accesses.size();
    });
    int64_t bytes = 0;
    std::erase_if(names, [&](const std::string &name) {
      const RowArray &rows = arrays.at(name);
      const int64_t own = *rows.pitch.constant() * rows.accesses.front().access->bytes;
      const bool fits = own > 0 && bytes + own <= mostRowBytes;
      bytes += fits ? own : 0;
      return !fits;
    });
    return names;
  }

  /// Keeps the rows on the chip for as long as the kernel runs.
  void keepRows(const KernelModel &model, const std::map<std::string, RowArray> &arrays) {
    std::vector<StmtRef> declared, loads, stores;
    std::map<const Expr *, ExprRef> replaced;
    for (const std::string &name : keptRows(arrays)) {
      const RowArray &rows = arrays.at(name);
      const Type element = rows.accesses.front().access->node->type.unqualified();
      const ExprRef root = rows.accesses.front().access->root;
      const bool isDead = parts.dead.count(name) != 0, isLoaded = !isDead || !parts.fresh.count(name);
      if (blocks.rowOfThread) {
        const ExprRef kept = var(freshName(taken, name + "_value"), element);
        const ExprRef own = subscript(root, var(row, Type::makeInt()), element);
        declared.push_back(declStmt(kept->text, element, isLoaded ? own : nullptr));
        if (!isDead)
          stores.push_back(exprStmt(assign("=", own, kept)));
        for (const RowAccess &access : rows.accesses)
          replaced[access.access->node.get()] = kept;
        continue;
      }
      const ExprRef length = intLit(*rows.pitch.constant());
      const std::string kept = freshName(taken, name + "_row");
      const ExprRef place = var(kept, Type::makePointer(element));
      declared.push_back(sharedArray(kept, element, {length}));
      for (const RowAccess &access : rows.accesses)
        replaced[access.access->node.get()] = subscript(place, polyExpr(model, access.offset), element);
      auto copy = [&](bool back) {
        const ExprRef at = var(freshName(taken, "at"), Type::makeInt());
        const ExprRef first = mul(castTo(Type::makeLong(), axisBuiltin("blockIdx", 0)), length);
        const ExprRef outside = subscript(root, add(first, at), element), inside = subscript(place, at, element);
        return turnsOfThreads(at->text, at->type, length,
                              exprStmt(back ? assign("=", outside, inside) : assign("=", inside, outside)));
      };
      if (isLoaded)
        loads.push_back(copy(false));
      if (!isDead)
        stores.push_back(copy(true));
    }
    replaceNodes(*kernel()->body, replaced);
    std::vector<StmtRef> &body = blocks.rowOfThread ? kernel()->body->body[1]->body[0]->body : kernel()->body->body;
    if (!loads.empty())
      meet(loads);
    if (!stores.empty() && !blocks.rowOfThread)
      stores.insert(stores.begin(), barrierStmt());
    body.insert(body.begin(), loads.begin(), loads.end());
    body.insert(body.begin(), declared.begin(), declared.end());
    body.insert(body.end(), stores.begin(), stores.end());
    removeUnused(*kernel());
  }

  llvm::Expected<FusedLaunches> finish() {
    result.state = originalState(kernel(), kernel()->name, kernel()->name, kernel()->name, {});
    {
      const KernelModel model(*kernel());
      const std::vector<Access> accesses = model.accessesOfWholeRecords();
      auto arrays = sharedArrays(result.state, model, accesses);
      if (!arrays)
        return arrays.takeError();
      if (arrays->empty())
        return notApplicable("no launch needs what another one has written");
      if (strictFloat && llvm::any_of(accesses, [](const Access &access) {
            return access.write && access.place->type.isFloat();
          }))
        return notApplicable("the compiler may round what is computed in other ways (--optiml-fp=strict)");
      std::vector<CheckedAccess> unproven;
      for (const auto &[name, rows] : *arrays)
        for (const RowAccess &access : rows.accesses)
          if (!isInside(model, access, rows.pitch))
            unproven.push_back({access, rows.pitch});
      if (!unproven.empty()) {
        auto check = checkOfRows(*kernel(), model, unproven, ofRow(), taken);
        if (!check)
          return check.takeError();
        blocks.checkName = (*check)->name;
        blocks.checkText = print(**check);
      }
      result.state.original = kernel()->clone();
      keepRows(model, *arrays);
    }
    result.state.tree = kernel();
    FusedKernel &fused = result.kernel;
    fused.name = kernel()->name;
    fused.text = print(*kernel());
    fused.parameters = parametersOf(*kernel());
    fused.conditions = result.state.rewrite.conditions;
    fused.blocks = std::move(blocks);
    return std::move(result);
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseInBlocks(const std::vector<SequenceLaunch> &launches,
                                                   const std::string &name, bool strictFloat) {
  std::optional<std::string> refused;
  for (size_t number = 0;; ++number) {
    bool last = true;
    auto fused = BlockFuser(launches, name, strictFloat).run(number, last);
    if (fused)
      return fused;
    const std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
    if (last)
      return notApplicable("{0}", *refused);
  }
}
