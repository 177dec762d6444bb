//===- TimeStepText.cpp - CUDA for several steps of a stencil -------------===//
//
// A block loads a tile of cells with what the steps need around it, does the steps in shared memory, each on a part
// that is smaller by how far a step looks, and writes the cells in the middle. Cells that no thread of the original
// writes keep what is in the buffers: the first in one, the second in the other, by turns from step to step.
//
//===----------------------------------------------------------------------===//
#include "Texts.h"

using namespace optiml;

/// Three dimensions: a block moves along the last one. Each step is done a few planes behind the one before it, so that
/// the planes that it looks at are there, and one barrier a plane is enough. The next plane is on its way meanwhile.
namespace {

/// Text for each of a list, put together.
template <typename List, typename Function> std::string each(const List &list, const std::string &between, Function f) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i)
    text += (i ? between : "") + f(list[i], i);
  return text;
}

std::string number(int64_t n) { return std::to_string(n); }

std::string times(int64_t n, const std::string &steps) { return n == 1 ? steps : number(n) + " * " + steps; }

unsigned extentOf(const TimeStep &step, const TimeTile &tile, size_t d) {
  bool row = step.dims.size() == 1;
  if (d == 2)
    return tile.planes + tile.steps * unsigned(step.dims[2].low + step.dims[2].high);
  return d == 0 ? tile.threads[0] * (row ? tile.cells : 1) : tile.threads[1] * tile.cells;
}

std::string indented(const std::string &text, const std::string &by) {
  std::string result;
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    result += (line.empty() ? "" : by) + line.str() + "\n";
    rest = next;
  }
  return result;
}

} // namespace

/// In two dimensions, which of a thread's cells a step computes, as bits: those whose row has enough of them around it,
/// where its column has.
static std::string activeCells(const TimeStep &step, const std::string &number, const std::string &columnHas) {
  const auto &n = step.names;
  if (step.dims.size() != 2)
    return n.at("inside");
  const TimeStep::Dimension &y = step.dims[1];
  auto from = [&](const std::string &row) { // all bits from this row on
    return "(~0u << min(max(" + row + " - int(threadIdx.y * " + n.at("cells") + "), 0), 31))";
  };
  std::string rows;
  if (y.low)
    rows += " & " + from(times(y.low, number));
  if (y.high)
    rows += " & ~" + from(n.at("height") + " - " + times(y.high, number));
  return (columnHas == "true" ? "" : columnHas + " ? ") + n.at("inside") + rows + (columnHas == "true" ? "" : " : 0");
}

/// Zeros in a cell of all tiles, which nothing is made of that anyone looks at.
static std::string blankCells(const TimeStep &step, const std::string &at,
                              const std::function<std::string(size_t)> &tileOf) {
  return " else {\n" +
         each(step.fields, "",
              [&](const TimeStep::Field &, size_t i) {
                return "      " + tileOf(i) + "[0]" + at + " = " + tileOf(i) + "[1]" + at + " = 0;\n";
              }) +
         "    }";
}

/// Zeros in the rows before and behind the tiles' own.
static std::string blankRows(const TimeStep &step, int64_t around, const std::function<std::string(size_t)> &tileOf) {
  const auto &n = step.names;
  const std::string row = n.at("cell"), low = number(step.dims[1].low),
                    at = "[" + row + " < " + low + " ? " + row + " : " + n.at("height") + " + " + row + "][" +
                         step.dims[0].local + "]";
  return "  for (int " + row + " = threadIdx.y; " + row + " < " + number(around) + "; " + row + " += blockDim.y) {\n" +
         each(step.fields, "",
              [&](const TimeStep::Field &, size_t i) {
                return "    " + tileOf(i) + "[0]" + at + " = " + tileOf(i) + "[1]" + at + " = 0;\n";
              }) +
         "  }\n";
}

std::string optiml::timeStepKernel(const TimeStep &step, const TimeTile &tile, const std::string &prefix) {
  std::map<std::string, std::string> v(step.names.begin(), step.names.end());
  const auto &n = step.names;
  v["P"] = prefix;
  bool row = step.dims.size() == 1, streams = step.dims.size() == 3;
  v["THREADS"] = number(tile.threads[0] * tile.threads[1]);
  v["MOST"] = number(tile.steps);
  v["CELLS"] = number(tile.cells);
  auto buffer = [&](const char *which, size_t field) {
    return n.at(which) + (step.fields.size() > 1 ? number(int64_t(field)) : "");
  };
  auto tileOf = [&](size_t field) { return n.at("tile") + (step.fields.size() > 1 ? number(int64_t(field)) : ""); };
  v["BUFFERS"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
    std::string in = ", const " + f.element + " *__restrict__ ";
    return in + buffer("from", i) + in + buffer("first", i) + in + buffer("second", i) + ", " + f.element + " *" +
           buffer("to", i);
  });
  v["EXTENTS"] = each(step.dims, "", [](const TimeStep::Dimension &d, size_t) { return ", int " + d.extent; });
  v["CONSTANTS"] = each(step.parameters, "", [](const Parameter &p, size_t) { return ", " + p.declaration; });
  const char *sizes[] = {"width", "height", "planes"};
  v["SIZES"] = each(step.dims, "", [&](const TimeStep::Dimension &, size_t d) {
    return d == 2 ? std::string() : ", " + n.at(sizes[d]) + " = " + number(extentOf(step, tile, d));
  });
  // Straight on, rows beyond the tile are read, too.
  const bool straight = step.straight.has_value();
  const int64_t around = straight ? step.dims[1].low + step.dims[1].high : 0;
  const std::string height = around ? n.at("height") + " + " + number(around) : n.at("height");
  std::string shape = (row ? "" : "[" + height + "]") + "[" + n.at("width") + "]";
  if (streams)
    shape = "[" + n.at("slots") + "]" + shape;
  std::string versions = streams ? "[" + n.at("most") + "]" : "[2]";
  auto ownOf = [&](const TimeStep::Field &f) { return f.own + "_cells"; }; // by turns, as the tile
  const std::string blank = straight ? " = {}" : "";
  v["TILES"] =
      each(step.fields, "",
           [&](const TimeStep::Field &f, size_t i) {
             return "  __shared__ " + f.element + " " + tileOf(i) + versions + shape + ";\n" +
                    (f.own.empty() ? ""
                                   : "  " + f.element + " " + ownOf(f) + "[2][" + n.at("cells") + "]" + blank + ";\n");
           }) +
      each(step.held, "", [&](const TimeStep::Held &h, size_t) {
        return "  " + h.type + " " + h.name + "[" + n.at("cells") + "]" + blank + ";\n";
      });
  auto first = [&](size_t d) { // the index of the tile's first cell
    const TimeStep::Dimension &dim = step.dims[d];
    if (d == 2)
      return "blockIdx.z * " + n.at("planes") + (dim.low ? " - " + times(dim.low, n.at("most")) : "");
    return std::string("blockIdx.") + char('x' + d) + " * (" + n.at(sizes[d]) + " - " +
           times(dim.low + dim.high, n.at("most")) + ")" + (dim.low ? " - " + times(dim.low, n.at("most")) : "");
  };
  const TimeStep::Dimension &x = step.dims[0];
  auto cellOf = [&](size_t d, const std::string &indent) {
    const TimeStep::Dimension &dim = step.dims[d];
    std::string text = indent + "const int " + dim.placed + " = int(" + first(d) + ") + " + dim.local + ";\n",
                ring = "(" + dim.ring + ")";
    if (!dim.ring.empty())
      text +=
          indent + "const int " + dim.cell + " = (" + dim.placed + " % " + ring + " + " + ring + ") % " + ring + ";\n";
    return text;
  };
  std::string column = "const int " + x.local + " = ";
  if (row) {
    v["CELL"] =
        "    " + column + "threadIdx.x + " + n.at("cell") + " * " + number(tile.threads[0]) + ";\n" + cellOf(0, "    ");
    v["PLACE"] = "";
  } else {
    const TimeStep::Dimension &y = step.dims[1];
    v["PLACE"] = "  " + column + "threadIdx.x;\n" + cellOf(0, "  ");
    v["CELL"] = "    const int " + y.local + " = threadIdx.y * " + n.at("cells") + " + " + n.at("cell") + ";\n" +
                cellOf(1, "    ");
  }
  v["INNERCELL"] = indented(v["CELL"], "    ");
  const std::string below = around ? " + " + number(step.dims[1].low) : "";
  std::string at = row ? "[" + x.local + "]" : "[" + step.dims[1].local + below + "][" + x.local + "]";
  if (streams)
    at = "[" + step.dims[2].local + " % " + n.at("slots") + "]" + at;
  v["OWN"] =
      each(step.dims, " && ",
           [](const TimeStep::Dimension &d, size_t) { return d.cell + " >= 0 && " + d.cell + " < " + d.extent; }) +
      (step.inside == "true"                         ? ""
       : step.inside.find("||") != std::string::npos ? " && (" + step.inside + ")"
                                                     : " && " + step.inside);
  v["NEEDED"] = step.needed;
  std::string index = "[" + step.index + "]", cellsIndex = "[" + n.at("cellIndex") + "]",
              in = streams ? "          " : "      ";
  std::string define = "const auto " + n.at("cellIndex") + " = " + step.index + ";\n";
  auto own = [&](const TimeStep::Field &f, const std::string &turn) {
    return f.own.empty() ? "" : ownOf(f) + "[" + turn + "][" + n.at("cell") + "] = ";
  };
  auto ahead = [&](size_t i) { return step.fields[i].now + "_ahead[" + n.at("cell") + "]"; };
  v["LOAD"] = in + define +
              each(step.fields, "",
                   [&](const TimeStep::Field &f, size_t i) {
                     return in + own(f, "0") + (streams ? ahead(i) : tileOf(i) + "[0]" + at) + " = " +
                            buffer("from", i) + cellsIndex + ";\n";
                   }) +
              each(step.held, "", [&](const TimeStep::Held &h, size_t) {
                return in + h.name + "[" + n.at("cell") + "] = " + h.value + ";\n";
              });
  v["KEEP"] = in + define + each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
                if (streams)
                  return in + tileOf(i) + "[" + n.at("step") + " % " + n.at("most") + "]" + at + " = (" + n.at("step") +
                         " % 2 ? " + buffer("second", i) + " : " + buffer("first", i) + ")" + cellsIndex + ";\n";
                return in + own(f, "0") + tileOf(i) + "[0]" + at + " = " + buffer("first", i) + cellsIndex + ";\n" +
                       in + own(f, "1") + tileOf(i) + "[1]" + at + " = " + buffer("second", i) + cellsIndex + ";\n";
              });
  std::string before = streams ? n.at("step") + " - 1" : n.at("half"), after = "1 - " + n.at("half");
  v["NOW"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
    const std::string reference = "      const " + f.element + " (&";
    return reference + f.now + ")" + shape + " = " + tileOf(i) + "[" + before + "];\n" +
           (f.own.empty() ? "" : reference + f.own + ")[" + n.at("cells") + "] = " + ownOf(f) + "[" + before + "];\n");
  });
  auto within = [&](const std::string &steps, size_t dims = 2) {
    std::string text;
    for (size_t d = 0; d < std::min(dims, step.dims.size()); ++d) {
      const TimeStep::Dimension &dim = step.dims[d];
      if (dim.low)
        text += (text.empty() ? "" : " && ") + dim.local + " >= " + times(dim.low, steps);
      if (dim.high)
        text += (text.empty() ? "" : " && ") + dim.local + " < " + n.at(sizes[d]) + " - " + times(dim.high, steps);
    }
    return text.empty() ? "true" : text;
  };
  v["VALID"] = within(n.at("step"));
  v["ACTIVE"] = straight ? ""
                         : "      const int " + n.at("active") + " = " +
                               activeCells(step, n.at("step"), row ? "true" : within(n.at("step"), 1)) + ";\n";
  v["MIDDLE"] = within(n.at("most"));
  for (const TimeStep::Dimension &dim : step.dims)
    if (!dim.ring.empty()) // once
      v["MIDDLE"] += " && " + dim.placed + " == " + dim.cell;
  const std::string inner = straight ? "        " : "          "; // no branch stands around it
  v["RESULTS"] = each(step.fields, "",
                      [&](const TimeStep::Field &f, size_t) { return inner + f.element + " " + f.result + ";\n"; });
  v["BODY"] = indented(step.body, inner.substr(2)); // which is printed as the body of a function
  v["NEXT"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
    if (streams)
      return "            " + tileOf(i) + "[" + n.at("step") + " % " + n.at("most") + "]" + at + " = " + f.result +
             ";\n";
    return "          " + own(f, after) + tileOf(i) + "[" + after + "]" + at + " = " + f.result + ";\n";
  });
  v["STORE"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
    return streams
               ? "            " + buffer("to", i) + index + " = " + f.result + ";\n"
               : "      " + buffer("to", i) + index + " = " + tileOf(i) + "[" + n.at("steps") + " % 2]" + at + ";\n";
  });
  const std::string bit = " >> " + n.at("cell") + " & 1";
  if (straight)
    v["COMPUTE"] = indented(*step.straight, inner) + v["RESULTS"] + v["BODY"] + inner + "if (" + n.at("inside") + bit +
                   ") {\n" + v["NEXT"] + inner + "}\n";
  else
    v["COMPUTE"] = "        if ((" + n.at("active") + bit + ")" + (row ? " && " + v["VALID"] : "") + ") {\n" +
                   v["RESULTS"] + v["BODY"] + v["NEXT"] + "        }\n";
  v["BLANK"] = straight ? blankCells(step, at, tileOf) : "";
  v["BLANKROWS"] = around ? blankRows(step, around, tileOf) : "";
  if (!streams)
    return "\n" + filledText("steps.txt", v);
  const TimeStep::Dimension &z = step.dims[2];
  v["OWN"] = each(step.dims, " && ", [](const TimeStep::Dimension &d, size_t) {
    return d.cell + " >= 0 && " + d.cell + " < " + d.extent;
  });
  v["OWN"] = v["OWN"].substr(0, v["OWN"].rfind(" && " + z.cell + " >= 0")) +
             (step.inside == "true" ? "" : " && " + step.inside);
  v["OWNPLANE"] = z.cell + " >= 0 && " + z.cell + " < " + z.extent +
                  (step.insideLast == "true"                         ? ""
                   : step.insideLast.find("||") == std::string::npos ? " && " + step.insideLast
                                                                     : " && (" + step.insideLast + ")");
  v["AHEADS"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t) {
    return "    " + f.element + " " + f.now + "_ahead[" + n.at("cells") + "];\n";
  });
  v["AROUND"] = times(z.low + z.high, n.at("most"));
  v["LOADFIRST"] = in + define + each(step.fields, "", [&](const TimeStep::Field &, size_t i) {
                     return in + ahead(i) + " = " + buffer("first", i) + cellsIndex + ";\n";
                   });
  v["PUT"] = each(step.fields, "", [&](const TimeStep::Field &, size_t i) {
    return "        " + tileOf(i) + "[0][" + n.at("front") + " % " + n.at("slots") + "][threadIdx.y * " +
           n.at("cells") + " + " + n.at("cell") + "][" + x.local + "] = " + ahead(i) + ";\n";
  });
  v["PLANES"] = number(tile.planes);
  v["SLOTS"] = number(z.low + z.high + 2);
  v["BEHIND"] = times(z.low + z.high + 1, n.at("most"));
  v["LAG"] = times(z.high + 1, n.at("step"));
  v["OUTSIDE"] = z.local + " < " + number(z.low) + " * " + n.at("step") + " || " + z.local + " >= " + n.at("planes") +
                 " + " + times(z.low + z.high, n.at("most")) + " - " + number(z.high) + " * " + n.at("step");
  v["plane"] = z.local;
  v["CELLZ"] = cellOf(2, "      ");
  v["MIDDLE"] += " && " + z.local + " >= " + number(z.low) + " * " + n.at("most") + " && " + z.local + " < " +
                 n.at("planes") + " + " + number(z.low) + " * " + n.at("most");
  return "\n" + filledText("steps-streaming.txt", v);
}

/// How a condition's names are called in the class: members of `launch`, or the parameters themselves.
static std::string nameIn(const std::string &launch, const std::string &name) {
  llvm::StringRef text = name;
  if (text.starts_with("grid."))
    return launch + "launchGrid" + name.substr(4);
  return text.starts_with("block.") ? launch + "launchBlock" + name.substr(5) : launch + name;
}

static std::string conditions(const TimeStep &step) {
  return each(step.conditions, "", [&](const Condition &c, size_t) {
    return "        && (" + c.expression.cxx([](const std::string &name) { return nameIn("", name); }) + ") // " +
           c.why + "\n";
  });
}

/// The test of a launch that copies cells back.
static std::string copyTest(const TimeStep &step, const LoopCopyNames &copy) {
  std::map<std::string, std::string> v;
  v["PARAMETERS"] = copy.parameters.empty() ? "" : ", " + declarations(copy.parameters);
  v["VALUES"] = each(copy.parameters, "", [](const Parameter &p, size_t) { return ", copy." + p.name; });
  v["CONDITIONS"] = conditions(*copy.step);
  auto in = [](const char *launch) { return [launch](const std::string &name) { return nameIn(launch, name); }; };
  v["SAME"] = each(step.fields, "",
                   [&](const TimeStep::Field &f, size_t i) {
                     const TimeStep::Field &back = copy.step->fields[i];
                     return " &&\n           copy." + back.in + " == launch." + f.out + " && copy." + back.out +
                            " == launch." + f.in;
                   }) +
              each(copy.step->constants, "",
                   [](const std::string &name, size_t) {
                     return " &&\n           same(copy." + name + ", launch." + name + ")";
                   }) +
              each(step.dims, "", [&](const TimeStep::Dimension &d, size_t i) {
                return " &&\n           " + IntExpr::of(copy.step->dims[i].threads).cxx(in("copy.")) +
                       " == " + IntExpr::of(d.threads).cxx(in("launch."));
              });
  return filledText("copy-test.txt", v);
}

std::string optiml::timeStepMembers(const TimeStep &step, const TimeTile &tile, const LoopTextNames &names,
                                    const LoopCopyNames &copy) {
  std::map<std::string, std::string> v;
  bool back = copy.step != nullptr;
  v["P"] = names.prefix;
  v["DEAD"] = back ? "" : "  bool dead = false; ///< nobody looks at the buffers that the last step reads\n\n";
  v["EXCHANGED"] = back ? ", and what that one wrote was copied back" : ", with the buffers exchanged";
  v["ORDER"] = back ? "copies.size() + 1 != launches.size() || (" : "";
  v["COPIESBACK"] = back ? copyTest(step, copy) : "";
  v["COUNT"] = back ? "// The last step leaves the buffers that are copied from as they are expected.\n"
                      "    if (copies.size() != launches.size())\n      return false;\n    const long long count = "
                      "(long long)launches.size() - 1;"
                    : "// The last launch leaves the buffers that it reads as they are expected.\n"
                      "    const long long count = (long long)launches.size() - (dead ? 0 : 1);";
  v["PARITY"] = back ? "passes" : "(count - passes)";
  v["LAST"] =
      back ? "    run(launches.back());\n    run(copies.back());\n" : "    if (!dead)\n      run(launches.back());\n";
  v["PARAMETERS"] = names.parameters.empty() ? "" : ", " + declarations(names.parameters);
  v["VALUES"] =
      each(names.parameters, "", [](const Parameter &p, size_t) { return ", launch." + p.name; }) + (back ? ")" : "");
  v["CONDITIONS"] = conditions(step);
  v["SAME"] = each(step.constants, "",
                   [](const std::string &name, size_t) {
                     return " &&\n           same(launch." + name + ", last." + name + ")";
                   }) +
              each(step.fields, "", [&](const TimeStep::Field &f, size_t) {
                return " &&\n           launch." + f.in + " == last." + (back ? f.in : f.out) + " && launch." + f.out +
                       " == last." + (back ? f.out : f.in);
              });
  v["MOST"] = number(tile.steps);
  v["BUFFERS"] = each(step.fields, "", [&](const TimeStep::Field &f, size_t i) {
    return "    " + f.element + " *buffers" + number(int64_t(i)) + "[2] = {" +
           (back ? "copies[0]." + copy.step->fields[i].out : "launches[1]." + f.out) + ", launch." + f.out + "};\n";
  });
  v["EXTENTS"] = each(step.dims, "", [&](const TimeStep::Dimension &d, size_t i) {
    std::string extent = IntExpr::of(d.threads).cxx([](const std::string &name) { return nameIn("launch.", name); });
    return "    const int extent" + number(int64_t(i)) + " = int(" + extent + ");\n";
  });
  v["TILES"] = each(step.dims, ", ", [&](const TimeStep::Dimension &d, size_t i) {
    int64_t inner = extentOf(step, tile, i) - int64_t(tile.steps) * (d.low + d.high);
    return "(extent" + number(int64_t(i)) + " + " + number(inner - 1) + ") / " + number(inner);
  });
  v["THREADS"] = number(tile.threads[0]) + ", " + number(tile.threads[1]);
  v["ARGUMENTS"] =
      each(step.fields, "",
           [&](const TimeStep::Field &, size_t i) {
             std::string b = ", buffers" + number(int64_t(i));
             return b + "[pass % 2]" + (back ? b + "[0]" + b + "[0]" : b + "[done % 2]" + b + "[1 - done % 2]") + b +
                    "[1 - pass % 2]";
           }) +
      each(step.dims, "", [](const TimeStep::Dimension &, size_t i) { return ", extent" + number(int64_t(i)); }) +
      each(step.constants, "", [](const std::string &name, size_t) { return ", launch." + name; });
  return filledText("step-members.txt", v);
}

std::string optiml::timeStepUsed(const TimeStep &step) {
  return filledText("steps-used.txt", {{"READ", each(step.fields, " && ", [](const TimeStep::Field &f, size_t) {
                                          return "pointer != launches.back()." + f.in;
                                        })}});
}
