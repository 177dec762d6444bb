//===- BlockText.cpp - CUDA for launches that become a block's work -------===//
//
// The launches are put off, those of a loop in a list. Where the last one stands, all are looked at: whether each has
// the arguments and the geometry that the fused kernel takes for granted. Where they have not, all take place as they
// are, in their order.
//
//===----------------------------------------------------------------------===//
#include "Texts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

// A large GPU has 132 multiprocessors with 2,048 threads each.
static constexpr unsigned leastThreads = 32, fewThreads = 64, manyBlocks = 264, manyThreads = 1 << 18;

namespace {

class BlockText {
public:
  BlockText(const FusedKernel &fused, const FuseTextNames &names) : fused(fused), blocks(*fused.blocks), names(names) {}

  std::string make() {
    std::string text = "// OptiML: launches of " + names.kernels() + " that follow one another, " +
                       (blocks.sameThreads   ? "by the same threads"
                        : blocks.rowOfThread ? "a thread for each row"
                                             : "a block for each row") +
                       "\n";
    for (const RowBlocks::List &list : blocks.lists)
      text += "struct " + list.type + " {\n  " + list.element + " at[" + number(blocks.mostListed) + "];\n};\n";
    text += fused.text;
    if (!blocks.wideText.empty())
      text += "\n// The same where rows stay where they are.\n" + blocks.wideText;
    if (!blocks.checkText.empty())
      text += "\n// It looks at indices only, once for each set of arguments.\n#pragma optiml off\n" +
              blocks.checkText + checkFunction();
    for (size_t i = 0; i < names.parts.size(); ++i)
      text += launchClass(names, i, /*waits=*/blocks.launches[i].loop || i + 1 < names.parts.size());
    for (unsigned loop = 0; loop < blocks.loops.size(); ++loop)
      text += loopClass(loop);
    return text + replacement() + launcher();
  }

private:
  const FusedKernel &fused;
  const RowBlocks &blocks;
  const FuseTextNames &names;

  using Kind = ArgumentKind;
  static std::string plain(const std::string &name) { return name; } ///< parameters are variables of that name
  static std::string number(size_t i) { return std::to_string(i); }
  /// The list of a loop's launches of a part: "launchLoop0.launches1".
  std::string listOf(size_t part) const {
    return "launchLoop" + number(*blocks.launches[part].loop) + ".launches" + number(part);
  }
  /// The launch of a part, in a loop the one of that turn.
  std::string launchOf(size_t part, unsigned turn = 0) const {
    return blocks.launches[part].loop ? listOf(part) + "[" + number(turn) + "]" : "launch" + number(part);
  }
  /// The part whose launches are a loop's turns.
  size_t firstOf(unsigned loop) const {
    return size_t(llvm::find_if(blocks.launches, [&](const auto &l) { return l.loop == loop; }) -
                  blocks.launches.begin());
  }
  bool isFirst(size_t part) const { return blocks.launches[part].loop && firstOf(*blocks.launches[part].loop) == part; }

  std::string loopClass(unsigned loop) const {
    std::string text = "\nstruct " + names.loopType(loop) + " { // the launches of a loop that have been put off\n",
                adds, runs;
    for (size_t i = 0; i < names.parts.size(); ++i) {
      if (blocks.launches[i].loop != loop)
        continue;
      const std::string n = number(i);
      text += "  std::vector<" + names.launchType(i) + "> launches" + n + ";\n";
      const auto &parameters = names.parts[i].parameters;
      std::string list;
      for (const Parameter &parameter : parameters)
        list += ", " + parameter.name;
      adds += "  void add" + n + "(dim3 launchGrid, dim3 launchBlock, size_t launchShared, cudaStream_t launchStream" +
              (parameters.empty() ? "" : ",\n            " + declarations(parameters)) + ") {\n";
      if (!isFirst(i)) {
        text += "  std::vector<long long> turns" + n + ";\n";
        adds += "    turns" + n + ".push_back((long long)launches" + number(firstOf(loop)) + ".size() - 1);\n";
      }
      adds += "    launches" + n + ".emplace_back(launchGrid, launchBlock, launchShared, launchStream" + list +
              ");\n    order.push_back(" + n + ");\n  }\n";
      runs += "    size_t next" + n + " = 0;\n";
    }
    runs += "    for (int launch : order)\n      switch (launch) {\n";
    for (size_t i = 0; i < names.parts.size(); ++i)
      if (blocks.launches[i].loop == loop)
        runs += "      case " + number(i) + ": " + names.launchType(i) + "::run(launches" + number(i) + "[next" +
                number(i) + "++]); break;\n";
    return text + "  std::vector<int> order;\n" + adds + "  void run() const {\n" + runs + "      }\n  }\n" +
           (inParts() ? partsFunction(loop) : "") + "};\n";
  }

  /// Turns for which there is no place in the lists are those of a further launch. That is right where each turn is by
  /// itself what it is among the others.
  bool inParts() const {
    return blocks.sameThreads && blocks.loops.size() == 1 && !blocks.lists.empty() &&
           llvm::all_of(blocks.launches, [](const RowBlocks::Launch &l) { return l.loop && l.from.empty(); });
  }

  std::string partsFunction(unsigned loop) const {
    const std::string type = names.loopType(loop);
    std::string alike, takes, orders;
    for (size_t i = 0; i < names.parts.size(); ++i) {
      const std::string n = number(i), list = "launches" + n;
      takes += "      part." + list + ".assign(" + list + ".begin() + begin, " + list + ".begin() + end);\n";
      orders += "        part.order.push_back(" + n + ");\n";
      if (isFirst(i))
        continue;
      alike += "    if (" + list + ".size() != launches0.size())\n      return {*this};\n";
      orders += "        part.turns" + n + ".push_back(turns" + n + "[turn] - (long long)begin);\n";
    }
    return "  /// The same, with at most so many turns each.\n  std::vector<" + type +
           "> parts(size_t most) const {\n" + alike + "    std::vector<" + type +
           "> all;\n    for (size_t begin = 0; begin < launches0.size(); begin += most) {\n" +
           "      const size_t end = begin + most < launches0.size() ? begin + most : launches0.size();\n      " +
           type + " part;\n" + takes + "      for (size_t turn = begin; turn < end; ++turn) {\n" + orders +
           "      }\n      all.push_back(part);\n    }\n    return all;\n  }\n";
  }

  /// "const launch0_t &launch0, const loop0_t &launchLoop0"; `name`: only what they are called.
  std::string objects(bool name) const {
    std::vector<std::string> list;
    for (size_t i = 0; i < names.parts.size(); ++i) {
      const auto loop = blocks.launches[i].loop;
      if (loop && !isFirst(i))
        continue;
      const std::string object = loop ? "launchLoop" + number(*loop) : "launch" + number(i);
      list.push_back(name ? object : "const " + (loop ? names.loopType(*loop) : names.launchType(i)) + " &" + object);
    }
    return llvm::join(list, ", ");
  }

  std::string checkFunction() const {
    std::map<std::string, std::string> values = {{"NAME", names.name},
                                                 {"CHECK", blocks.checkName},
                                                 {"THREADS", number(std::min(blocks.threads, 256u))},
                                                 {"PARAMETERS", declarations(fused.parameters)},
                                                 {"ARGUMENTS", arguments()}};
    for (const Parameter &parameter : fused.parameters)
      if (parameter.kind != Parameter::Kind::Pointer)
        values["NUMBERS"] += "  launchNow.insert(launchNow.end(), (const unsigned char *)&" + parameter.name +
                             ", (const unsigned char *)(&" + parameter.name + " + 1));\n";
    values.try_emplace("NUMBERS", "");
    return filledText("rows-check.txt", values);
  }

  std::string arguments() const {
    std::string list;
    for (const Parameter &parameter : fused.parameters)
      list += (list.empty() ? "" : ", ") + parameter.name;
    return list;
  }

  /// The fused kernel's parameters as variables.
  std::string values() const {
    std::string text;
    auto define = [&](const std::string &name, const std::string &value) {
      if (!name.empty())
        text += "  const auto " + name + " = " + value + ";\n";
    };
    for (const auto &[name, source] : blocks.sources)
      define(name,
             launchOf(source.launch, source.turn) + "." + names.parts[source.launch].parameters[source.argument].name);
    for (unsigned loop = 0; loop < blocks.loops.size(); ++loop)
      define(blocks.loops[loop].turns, "int(" + listOf(firstOf(loop)) + ".size())");
    for (const RowBlocks::Extent &extent : blocks.extents)
      define(extent.name, "int(" + extent.value.cxx([&](const std::string &name) {
        return ofGeometry(launchOf(extent.launch), name).value_or(name);
      }) + ")");
    std::set<std::string> known;
    for (size_t i = 0; i < blocks.launches.size(); ++i) {
      const RowBlocks::Launch &launch = blocks.launches[i];
      const std::string turns = launch.loop ? "launchLoop" + number(*launch.loop) + ".turns" + number(i) : "";
      if (!launch.from.empty()) {
        define(launch.from, turns + ".empty() ? 0 : int(" + turns + "[0])");
        define(launch.until, launch.from + " + int(" + turns + ".size())");
      }
      for (size_t j = 0; j < launch.arguments.size(); ++j) {
        const RowBlocks::Argument &argument = launch.arguments[j];
        if (!changesInTurns(argument.kind) || !known.insert(argument.value).second)
          continue;
        const std::string list = listOf(i), member = "." + names.parts[i].parameters[j].name;
        if (argument.kind == Kind::Listed) {
          text += "  " + argument.other + " " + argument.value + " = {};\n  for (size_t turn = 0; turn < " + list +
                  ".size(); ++turn)\n    " + argument.value + ".at[turn] = " + list + "[turn]" + member + ";\n";
          continue;
        }
        define(argument.value, list + "[0]" + member);
        if (argument.kind != Kind::Counts)
          continue;
        const bool isPointer = names.parts[i].parameters[j].kind == Parameter::Kind::Pointer;
        text += (isPointer ? "  long long " + argument.other + " = 0;\n"
                           : "  auto " + argument.other + " = " + argument.value + ";\n") +
                "  " + argument.other + " = " + list + ".size() > 1 ? " + list + "[1]" + member + " - " +
                argument.value + " : 0;\n";
      }
    }
    return text;
  }

  /// What has to be true of `launch` in turn `turn`.
  std::string testsOf(size_t i) const {
    const RowBlocks::Launch &launch = blocks.launches[i];
    const FuseTextNames::Part &part = names.parts[i];
    std::string text = names.helper + "::valid(launch.launchGrid, launch.launchBlock, " + number(part.maxThreads) +
                       ") && launch.launchShared == 0 && launch.launchStream == launchStream";
    if (blocks.sameThreads && !launch.ownThreads)
      for (const char *extent : {"Grid.x", "Grid.y", "Grid.z", "Block.x", "Block.y", "Block.z"})
        text += "\n           && launch.launch" + std::string(extent) + " == " + launchOf(blocks.geometry) + ".launch" +
                extent;
    for (size_t j = 0; j < launch.arguments.size(); ++j) {
      const RowBlocks::Argument &argument = launch.arguments[j];
      const Parameter &parameter = part.parameters[j];
      std::string value = argument.value;
      switch (argument.kind) {
      case Kind::Same: break;
      case Kind::Counts: value += " + turn * " + argument.other; break;
      case Kind::Doubles: value = "((long long)" + value + " << turn)"; break;
      case Kind::Halves: value += " >> turn"; break;
      case Kind::Listed: value += ".at[turn]"; break;
      case Kind::Swapped: value = "(turn % 2 ? " + argument.other + " : " + value + ")"; break;
      case Kind::AfterSwaps:
        value = "(" + blocks.loops[argument.loop].turns + " % 2 ? " + argument.other + " : " + value + ")";
        break;
      }
      const std::string own = "launch." + parameter.name;
      text += "\n           && ";
      if (argument.kind == Kind::Doubles) // as numbers: none has wrapped around
        text += "(long long)" + own + " == " + value;
      else if (changesInTurns(argument.kind) && argument.kind != Kind::Listed &&
               parameter.kind != Parameter::Kind::Pointer)
        text += own + " == decltype(" + own + ")(" + value + ")";
      else
        text += sameValue(parameter, own, value);
    }
    std::set<std::string> known;
    for (const Condition &condition : launch.conditions) {
      const std::string test = condition.expression.cxx([&](const std::string &name) { return renamed(i, name); });
      if (known.insert(test).second)
        text += "\n           && (" + test + ") // " + condition.why;
    }
    return text;
  }

  /// "grid.x" and the like, of a launch.
  static std::optional<std::string> ofGeometry(const std::string &launch, llvm::StringRef name) {
    if (name.consume_front("grid."))
      return launch + ".launchGrid." + name.str();
    if (name.consume_front("block."))
      return launch + ".launchBlock." + name.str();
    return std::nullopt;
  }

  std::string renamed(size_t part, const std::string &name) const {
    if (auto extent = ofGeometry("launch", name))
      return *extent;
    auto [base, member] = llvm::StringRef(name).split('.');
    auto own = blocks.launches[part].own.find(base.str());
    if (own == blocks.launches[part].own.end())
      return name;
    return "launch." + names.parts[part].parameters[own->second].name + (member.empty() ? "" : "." + member.str());
  }

  std::string replacement() const {
    std::string text = "\nstatic bool " + names.name + "_replaces(" + objects(false) + ") {\n";
    auto unless = [&](const std::string &good) { text += "  if (!(" + good + "))\n    return false;\n"; };
    for (unsigned loop = 0; loop < blocks.loops.size(); ++loop) {
      const std::string list = listOf(firstOf(loop));
      auto has = [&](Kind kind) {
        return llvm::any_of(blocks.launches, [&](const RowBlocks::Launch &launch) {
          return launch.loop == loop &&
                 llvm::any_of(launch.arguments, [&](const auto &argument) { return argument.kind == kind; });
        });
      };
      const std::string most = has(Kind::Doubles) || has(Kind::Halves) ? "32" // shifts
                               : has(Kind::Listed)                     ? number(blocks.mostListed)
                               : blocks.turnsInGrid                    ? "65535" // blocks along z
                                                                       : "0x40000000";
      unless(list + ".size() >= " + (blocks.loops[loop].swaps ? "2" : "1") + " && " + list + ".size() <= " + most);
    }
    for (size_t i = 0; i < blocks.launches.size(); ++i)
      if (const RowBlocks::Launch &launch = blocks.launches[i]; launch.loop && !isFirst(i)) {
        const std::string turns = "launchLoop" + number(*launch.loop) + ".turns" + number(i);
        unless(launch.from.empty() ? turns + ".size() == " + listOf(firstOf(*launch.loop)) + ".size()"
                                   : "!" + turns + ".empty()");
        text += "  for (size_t i = 0; i < " + turns + ".size(); ++i) // one after the other\n    if (" + turns +
                "[i] != " + (launch.from.empty() ? "0" : turns + "[0]") + " + (long long)i)\n      return false;\n";
      }
    text += "  const cudaStream_t launchStream = " + launchOf(0) + ".launchStream;\n" + values();
    for (size_t i = 0; i < blocks.launches.size(); ++i) {
      const auto loop = blocks.launches[i].loop;
      text += "  auto fits" + number(i) + " = [&](const " + names.launchType(i) +
              " &launch, long long turn) {\n    (void)turn;\n    return " + testsOf(i) + "\n        ;\n  };\n";
      const std::string turn = !loop        ? "0"
                               : isFirst(i) ? "(long long)i"
                                            : "launchLoop" + number(*loop) + ".turns" + number(i) + "[i]";
      text += !loop ? "  if (!fits" + number(i) + "(" + launchOf(i) + ", 0))\n    return false;\n"
                    : "  for (size_t i = 0; i < " + listOf(i) + ".size(); ++i)\n    if (!fits" + number(i) + "(" +
                          listOf(i) + "[i], " + turn + "))\n      return false;\n";
    }
    for (const Condition &condition : fused.conditions)
      text += "  if (!(" + condition.expression.cxx([&](const std::string &name) {
        return ofGeometry(launchOf(blocks.geometry), name).value_or(name);
      }) + ")) // " +
              condition.why + "\n    return false;\n";
    if (blocks.sameThreads) {
      const std::string grid = launchOf(blocks.geometry) + ".launchGrid";
      return text + "  " + names.name + "<<<" +
             (blocks.turnsInGrid ? "dim3(" + grid + ".x, " + grid + ".y, unsigned(" + blocks.loops[0].turns + "))"
                                 : grid) +
             ", " + launchOf(blocks.geometry) + ".launchBlock, 0, launchStream>>>(" + arguments() +
             ");\n  return true;\n}\n";
    }
    text += "  const long long launchRows = " + blocks.rows.cxx(plain) + ";\n";
    unless("launchRows >= 1 && launchRows <= 0x7fffffff");
    if (!blocks.checkText.empty()) {
      text += bounds();
      std::string good;
      for (const Condition &condition : blocks.inside)
        good += (good.empty() ? "(" : " && ") + condition.expression.cxx(plain);
      unless((good.empty() ? "" : good + ") || ") + names.name + "_inside(" + arguments() + ", launchStream)");
    }
    const std::string most = number(blocks.threads);
    if (blocks.rowOfThread)
      return text + "  unsigned launchThreads = " + most +
             "; // a block for each multiprocessor, if there are so many rows\n" + "  while (launchThreads > " +
             number(leastThreads) + " && launchRows < " + number(manyBlocks) +
             "ll * launchThreads)\n    launchThreads /= 2;\n" +
             launch("(launchRows + launchThreads - 1) / launchThreads");
    return text + "  unsigned launchThreads = " + number(std::min(fewThreads, blocks.threads)) +
           "; // as few as can be kept busy, if there are so many rows\n  while (launchThreads < " + most +
           " && launchRows * launchThreads < " + number(manyThreads) + ")\n    launchThreads *= 2;\n" +
           launch("launchRows");
  }

  std::string launch(const std::string &count) const {
    auto call = [&](const std::string &name, const char *shared) {
      return name + "<<<unsigned(" + count + "), launchThreads, " + shared + ", launchStream>>>(" + arguments() +
             ");\n";
    };
    if (blocks.wideName.empty())
      return "  " + call(names.name, "0") + "  return true;\n}\n";
    std::string keeps = "launchShared <= " + number(size_t(blocks.mostShared));
    for (const Condition &condition : blocks.kept)
      keeps += "\n      && (" + condition.expression.cxx(plain) + ") // " + condition.why;
    std::string text = "  const long long launchShared = " + blocks.sharedBytes.cxx(plain) + ";\n";
    if (blocks.storesRows) {
      text += "#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM\n  const bool launchAlone = false;\n#else\n"
              "  const bool launchAlone = launchStream == nullptr; // no other stream is at work\n#endif\n";
      keeps = "launchAlone && " + keeps;
    }
    return text + "  if (" + keeps + "\n  )\n    " + call(names.name, "size_t(launchShared)") + "  else\n    " +
           call(blocks.wideName, "0") + "  return true;\n}\n";
  }

  /// The least and the greatest values of arguments.
  std::string bounds() const {
    std::string text;
    for (const RowBlocks::Bound &bound : blocks.bounds) {
      const std::string list = listOf(bound.launch),
                        member = "." + names.parts[bound.launch].parameters[bound.argument].name;
      text += "  long long " + bound.name + " = " + list + "[0]" + member + ";\n  for (const auto &launch : " + list +
              ")\n    if (launch" + member + (bound.isGreatest ? " > " : " < ") + bound.name + ")\n      " +
              bound.name + " = launch" + member + ";\n";
    }
    return text;
  }

  std::string launcher() const {
    std::string text = "\nstatic void " + names.launcher() + "(" + objects(false) + ") {\n  static " + names.helper +
                       " launchPath(\"" + names.name + "\");\n";
    if (inParts())
      return text + "  for (const " + names.loopType(0) + " &launchPart : launchLoop0.parts(" +
             number(blocks.mostListed) + ")) {\n    const bool replaces = launchPath.enabled() && " + names.name +
             "_replaces(launchPart);\n    launchPath.count(replaces);\n    if (!replaces)\n      launchPart.run();\n" +
             "  }\n}\n";
    text += "  const bool replaces = launchPath.enabled() && " + names.name + "_replaces(" + objects(true) +
            ");\n  launchPath.count(replaces);\n  if (replaces)\n    return;\n";
    for (size_t i = 0; i < names.parts.size(); ++i) {
      const auto loop = blocks.launches[i].loop;
      if (!loop)
        text += "  " + names.launchType(i) + "::run(launch" + number(i) + ");\n";
      else if (isFirst(i))
        text += "  launchLoop" + number(*loop) + ".run();\n";
    }
    return text + "}\n";
  }
};

} // namespace

std::string optiml::blockText(const FusedKernel &fused, const FuseTextNames &names) {
  return BlockText(fused, names).make();
}
