//===- LaunchTurns.cpp - launches and their loops, as one kernel ----------===//
#include "LaunchTurns.h"
#include "ThreadMapping.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

// Of a launch's arguments, of which there may be 4,096 bytes in all, so many for lists.
static constexpr unsigned mostListBytes = 3072, mostTurnsListed = 256, leastTurnsListed = 8;

std::string LaunchTurns::addParam(const std::string &wish, const Type &type) {
  kernel()->params.push_back({freshName(made.taken, wish), type, {}});
  return kernel()->params.back().name;
}

void LaunchTurns::addExtent(const std::string &name, const std::string &value, unsigned launch) {
  kernel()->params.push_back({name, Type::makeInt(), {}});
  made.blocks.extents.push_back({name, IntExpr::of(value), launch});
}

bool LaunchTurns::dependsOnTurn(unsigned instance, const Poly &p) const {
  const std::vector<LaunchArgument> &arguments = launches[instances[instance].launch].arguments;
  for (size_t j = 0; j < arguments.size(); ++j)
    if (changesInTurns(arguments[j].kind) && p.mentions(parts.names[instance][j]))
      return true;
  return false;
}

llvm::Expected<BroughtPart> LaunchTurns::bring(unsigned instance, Kernel &part, RowSpace &space,
                                               llvm::ArrayRef<const char *> extents) {
  const unsigned launch = instances[instance].launch;
  std::set<std::string> names = made.taken;
  space.threads.clear();
  for (const char *text : extents) {
    space.threads[text] = freshName(names, "threads");
    part.params.push_back({space.threads[text], Type::makeInt(), {}});
  }
  auto brought = bringToRows(part, space, names);
  if (!brought)
    return brought;
  made.taken = std::move(names);
  for (const auto &[text, name] : space.threads)
    if (anyExpr(*part.body, [&, name = name](const ExprRef &e) { return isVar(e, name); }))
      addExtent(name, text, launch);
  llvm::append_range(made.blocks.launches[launch].conditions, brought->conditions);
  return brought;
}

/// All parts with names of their own, and what their arguments have to be.
llvm::Error LaunchTurns::addParts() {
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
        part.arguments.push_back(changesInTurns(a.kind) ? std::to_string(*launch.loop) + ":" + a.text + (odd ? "'" : "")
                                 : odd && !a.other.empty() ? a.other
                                                           : a.text);
      }
      if (llvm::Error e = parts.add(part))
        return e;
      Kernel &added = *parts.parts.back();
      if (llvm::Error e = requireVisible(added, KernelModel(added), meetings))
        return e;
      if (meetings == Meetings::None && threadsMayMeet(*added.body, Kept::Order))
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

Type LaunchTurns::typeOf(const std::string &name) const {
  return llvm::find_if(parts.fused->params, [&](const Param &p) { return p.name == name; })->type;
}

/// What a launch's arguments have to be. Parameters that change from turn to turn become variables.
void LaunchTurns::describeArguments() {
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
      auto [it, added] = known.try_emplace(std::to_string(*launch.loop) + ":" + type.text + ":" + given.text);
      if (added)
        it->second = inTurns(given, name, type);
      argument = it->second;
      std::vector<StmtRef> &values = valuesOfTurn[{*launch.loop, instance.odd}];
      if (llvm::any_of(values, [&](const StmtRef &s) { return s->text == name; }))
        continue;
      const ExprRef value = valueInTurn(argument, type, turnOf(*launch.loop, instance.odd));
      values.push_back(declStmt(name, type, type.isPointer() ? value : unknownValue(type)));
      if (!type.isPointer())
        made.valueOf[values.back().get()] = value;
      if (type.isInt())
        addBounds(instance.launch, j, name);
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

void LaunchTurns::addBounds(unsigned launch, unsigned argument, const std::string &name) {
  auto bound = llvm::find_if(made.blocks.bounds,
                             [&](const RowBlocks::Bound &b) { return b.launch == launch && b.argument == argument; });
  made.boundsOf.emplace_back(name, bound - made.blocks.bounds.begin());
  if (bound == made.blocks.bounds.end())
    for (bool isGreatest : {false, true})
      made.blocks.bounds.push_back(
          {freshName(made.taken, name + (isGreatest ? "_most" : "_least")), launch, argument, isGreatest});
}

/// Parameters for an argument that changes from turn to turn.
RowBlocks::Argument LaunchTurns::inTurns(const LaunchArgument &given, const std::string &name, const Type &type) {
  RowBlocks::Argument argument;
  argument.kind = given.kind;
  argument.loop = given.loop;
  if (given.kind == Kind::Listed) {
    RowBlocks::List list{kernel()->name + "_list" + std::to_string(made.blocks.lists.size()), type.text, type.bytes};
    Type record;
    record.cls = Type::Class::Record;
    record.text = list.type;
    record.bytes = list.bytes; // ... and more, which limitLists() decides
    argument.other = list.type;
    made.blocks.lists.push_back(std::move(list));
    argument.value = addParam(name + "_list", record);
    return argument;
  }
  argument.value = addParam(name + "_first", type);
  if (given.kind == Kind::Counts)
    argument.other = addParam(name + "_step", type.isPointer() ? Type::makeLong() : type);
  return argument;
}

/// All lists together have a place among the arguments of a launch.
llvm::Error LaunchTurns::limitLists() {
  unsigned bytes = 0;
  for (const RowBlocks::List &list : made.blocks.lists)
    bytes += list.bytes;
  if (!bytes)
    return llvm::Error::success();
  made.blocks.mostListed = std::min(mostTurnsListed, mostListBytes / bytes);
  if (made.blocks.mostListed < leastTurnsListed)
    return notApplicable("{0} bytes of arguments differ from turn to turn", bytes);
  return llvm::Error::success();
}

/// Stands for an argument's value until all has been proven: the analyses then know it by its name.
ExprRef LaunchTurns::unknownValue(const Type &type) {
  Type array = Type::makePointer(type.withConst(true));
  array.text = type.text + "[1]"; // nothing else is there
  return subscript(var("arguments", array), intLit(0), type.withConst(true));
}

ExprRef LaunchTurns::valueInTurn(const RowBlocks::Argument &argument, const Type &type, const ExprRef &turn) {
  const ExprRef first = var(argument.value, type);
  switch (argument.kind) {
  case Kind::Counts: {
    const Type number = type.isPointer() ? Type::makeLong() : type;
    const ExprRef by = mul(number.text == "int" ? turn : castTo(number, turn), var(argument.other, number));
    return type.isPointer() ? binary("+", first, by, type) : add(first, by);
  }
  case Kind::Doubles: return binary("<<", first, turn, type);
  case Kind::Halves: return binary(">>", first, turn, type);
  default: break;
  }
  Type list;
  list.cls = Type::Class::Record;
  return subscript(memberExpr(var(argument.value, list), "at", Type::makePointer(type)), turn, type);
}

ExprRef LaunchTurns::turnOf(unsigned loop, bool odd) const {
  ExprRef now = var(turns[loop], Type::makeInt());
  return odd ? add(now, intLit(1)) : now;
}

/// A launch's text in a loop's turn.
std::vector<StmtRef> LaunchTurns::inTurn(const Instance &instance) {
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

StmtRef LaunchTurns::loopOfTurns(unsigned loop, const std::vector<const Instance *> &of) {
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
bool LaunchTurns::mustMeet(const std::vector<const Instance *> &before, const Instance &next) const {
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

llvm::Expected<std::vector<StmtRef>> LaunchTurns::inOrder() {
  for (RowBlocks::Loop &loop : made.blocks.loops) {
    loop.turns = addParam("turns", Type::makeInt());
    turns.push_back(freshName(made.taken, "turn"));
  }
  std::vector<StmtRef> body;
  describeArguments();
  if (llvm::Error e = limitLists())
    return std::move(e);
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
  return body;
}

std::set<const Stmt *> LaunchTurns::valuesInTurns() const {
  std::set<const Stmt *> all;
  for (const auto &[at, values] : valuesOfTurn)
    for (const StmtRef &s : values)
      all.insert(s.get());
  return all;
}

void LaunchTurns::tellLaunches() {
  for (const Instance &instance : instances)
    if (launches[instance.launch].loop)
      made.repeated.insert(instance.launch);
  for (const Instance &instance : instances)
    for (const StmtRef &s : instance.work)
      walk(*s, [&](Stmt &inner) { made.launchOf.try_emplace(&inner, instance.launch); });
  walk(*kernel()->body, [&](Stmt &s) { made.launchOf.try_emplace(&s, 0); }); // what stands around them
}
