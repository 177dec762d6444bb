//===- ExpertTables.cpp - the expert policy's knowledge -------------------===//
//
// A transform without a rule is proposed with a small weight; a new transform should get its rows here.
//
//===----------------------------------------------------------------------===//
#include "optiml/Propose/ExpertPolicy.h"

using namespace optiml;

static const ExpertRule rules[] = {
    {"specialize-scalar", "", 0.5, "loops over a constant are unrolled completely, and windows get a size"},
    {"specialize-scalar", "l1", 0.8, "constant extents open the way to windows in shared memory"},
    {"specialize-scalar", "issue", 1.0, "loop control and index arithmetic fold into constants"},
    {"specialize-scalar", "int32", 1.2, "divisions by a constant are multiplications"},

    {"promote-accumulator", "", 1.0, "a value that is read and written in every iteration belongs in a register"},
    {"promote-accumulator", "latency", 1.5, "a read-modify-write of memory in every iteration is a chain of latencies"},
    {"promote-accumulator", "l2", 1.5, "writing an accumulator in every iteration is traffic that a register saves"},

    {"swap-thread-axes", "", 2.0, "neighbouring threads access elements that are far apart, and along another axis neighbours"},
    {"swap-thread-axes", "l1", 3.0, "a warp touches 32 lines where it could touch one or four"},
    {"swap-thread-axes", "l2", 3.0, "of each sector of 32 bytes a warp uses 4"},
    {"swap-thread-axes", "dram", 3.0, "of each sector of 32 bytes a warp uses 4"},
    {"swap-thread-axes", "latency", 2.5, "a warp waits for 32 lines where it could wait for one or four"},

    {"thread-per-iteration", "", 1.0, "with a thread for each iteration the work can be mapped anew, whatever grid the source asks for"},
    {"thread-per-iteration", "latency", 1.6, "a grid that is too small leaves multiprocessors idle: a thread for each iteration fills them"},
    {"thread-per-iteration", "atomic", 1.2, "with a thread for each iteration blocks can share tables of their updates"},

    {"loop-to-grid", "", 1.2, "few threads with independent iterations: a thread for each of them fills the GPU"},
    {"loop-to-grid", "latency", 2.2, "few threads with independent iterations: a thread for each of them fills the GPU"},
    {"loop-to-grid", "l1", 1.8, "with an axis more, threads can share rows and columns in tiles"},
    {"loop-to-grid", "l2", 1.8, "with an axis more, threads can share rows and columns in tiles"},
    {"loop-to-grid", "dram", 1.5, "iterations that neighbouring threads run read neighbouring elements"},

    {"block-shape", "", 0.6, "constant block extents let the compiler fold indices, and open the way to tiling"},
    {"block-shape", "l1", 0.8, "a block shape with a full warp along the fastest index touches fewer lines"},
    {"block-shape", "l2", 0.8, "a squarer block shares more of its operands"},
    {"block-shape", "latency", 0.8, "another block size changes how many warps hide each other's latency"},
    {"block-shape", "issue", 0.5, "constant block extents save index arithmetic"},

    {"distribute-loop", "", 0.8, "a loop that one thread runs alone is work for a warp or a block"},
    {"distribute-loop", "latency", 1.8, "threads of a group share a loop, and all its loads are in flight together"},
    {"distribute-loop", "l1", 1.6, "neighbouring threads read neighbouring elements of a row, not one row each"},
    {"distribute-loop", "l2", 1.5, "neighbouring threads read neighbouring elements of a row, not one row each"},
    {"distribute-loop", "dram", 1.2, "reads along a row are coalesced when a group shares it"},

    {"split-reduction", "", 0.7, "few threads with long loops: several blocks share each loop's iterations"},
    {"split-reduction", "latency", 1.7, "few threads with long loops: several blocks share each loop's iterations"},
    {"split-reduction", "l1", 1.0, "few threads with long loops leave most multiprocessors idle"},
    {"split-reduction", "l2", 1.0, "few threads with long loops leave most multiprocessors idle"},
    {"split-reduction", "fp64", 1.5, "few threads with long loops leave most multiprocessors idle"},

    {"grid-stride", "", 0.4, "threads that take turns share what they do once, and can be unrolled"},
    {"grid-stride", "atomic", 1.5, "fewer threads that each do more leave fewer atomics"},
    {"grid-stride", "latency", 0.6, "an unrolled loop over elements has several loads in flight"},
    {"grid-stride", "dram", 0.5, "an unrolled loop over elements has several loads in flight"},

    {"privatize-atomic", "", 1.5, "one atomic for a block instead of one for each thread"},
    {"privatize-atomic", "atomic", 3.0, "atomics on one element follow one another: one for a block instead of one for each thread"},
    {"privatize-atomic", "l2", 2.0, "atomics are executed by L2, one by one for one address"},
    {"privatize-atomic", "latency", 2.0, "atomics on one element follow one another"},

    {"transpose-through-shared", "", 1.5, "neighbouring threads access elements that are far apart: through shared memory both sides are coalesced"},

    {"unstage-shared", "", 1.0, "tiles of one element a thread are in the way of tiles in registers"},
    {"unstage-shared", "l1", 2.0, "two reads of shared memory for each product: a register tile needs a fraction of them"},
    {"unstage-shared", "issue", 1.6, "with several outputs a thread most loads and barriers go"},
    {"unstage-shared", "latency", 1.6, "larger tiles wait at fewer barriers"},
    {"unstage-shared", "l2", 1.4, "larger tiles ask L2 for less"},

    {"tree-to-shuffle", "", 1.0, "threads exchange what they fold in registers, and meet once in place of after each step"},
    {"tree-to-shuffle", "latency", 2.0, "a barrier after each step of a fold: all warps wait for the slowest, log2 of the block times"},
    {"tree-to-shuffle", "l1", 1.5, "shuffles need no shared memory, and no bank of it twice"},
    {"tree-to-shuffle", "issue", 1.5, "in each step of the fold fewer threads of a warp do anything"},

    {"unflatten-index", "", 1.0, "rows and planes of threads can be tiled, and need no divisions"},
    {"unflatten-index", "l1", 1.5, "rows and planes of threads can share what they read"},
    {"unflatten-index", "int32", 1.5, "divisions and remainders are some twenty instructions each"},

    {"expand-powers", "", 3.0, "a product for a power saves more than a hundred instructions"},

    {"fast-arithmetic", "", 0.8, "the user allows less exact arithmetic, and it costs fewer instructions"},
    {"fast-arithmetic", "issue", 2.0, "functions and divisions by the special function units are one to three instructions each"},
    {"fast-arithmetic", "fp64", 3.0, "what ends as float need not be computed in double precision"},
    {"fast-arithmetic", "fp32", 1.5, "exact functions and divisions are many instructions each"},

    {"coarsen", "", 0.6, "several outputs a thread reuse what one of them loads"},
    {"coarsen", "l1", 1.5, "several outputs a thread load their common operands once"},
    {"coarsen", "l2", 1.2, "larger tiles a block ask L2 for less"},
    {"coarsen", "issue", 1.2, "several outputs a thread share index arithmetic and loop control"},
    {"coarsen", "int32", 1.2, "several outputs a thread share index arithmetic"},
    {"coarsen", "latency", 1.0, "several outputs a thread are independent work that hides latency"},
    {"coarsen", "dram", 0.5, "more bytes in flight a thread come closer to the bandwidth of memory"},

    {"stage-window", "", 0.5, "elements that neighbouring threads share can be loaded once into shared memory"},
    {"stage-window", "l1", 1.5, "overlapping reads of neighbouring threads come from shared memory, at full width"},
    {"stage-window", "l2", 1.2, "what a block reads more than once is asked of L2 once"},
    {"stage-window", "latency", 1.0, "shared memory answers ten times sooner than L2"},
    {"stage-window", "issue", 0.7, "guards and index arithmetic are left to the copy into shared memory"},

    {"vectorize-access", "", 0.6, "neighbouring elements in one access of 16 bytes"},
    {"vectorize-access", "dram", 1.4, "accesses of 16 bytes keep more of the memory's bandwidth in flight"},
    {"vectorize-access", "issue", 1.2, "one load or store in place of four, and index arithmetic once for them"},
    {"vectorize-access", "l1", 1.2, "one request of 16 bytes a thread in place of four"},
    {"vectorize-access", "latency", 1.2, "several elements a thread are independent work that hides latency"},
    {"vectorize-access", "int32", 1.0, "index arithmetic once for several elements"},

    {"stage-shared", "", 0.4, "operands that threads of a block share can be loaded once into shared memory"},
    {"stage-shared", "l1", 1.3, "operands in shared memory are read without tags and at full width"},
    {"stage-shared", "l2", 1.5, "a tile in shared memory is asked of L2 once a block"},
    {"stage-shared", "dram", 0.8, "a tile in shared memory is read from memory once a block"},
    {"stage-shared", "latency", 0.9, "shared memory answers ten times sooner than L2"},

    {"tensor-core", "", 5.0, "the user allows TF32 inputs, and tensor cores multiply them many times faster"},

    {"widen-stores", "", 1.0, "a thread's adjacent outputs leave 16 bytes at once, not sector by sector"},

    {"unroll", "", 0.4, "longer straight code lets the compiler group loads and drop loop control"},
    {"unroll", "issue", 1.0, "loop control and index arithmetic are shared by several iterations"},
    {"unroll", "int32", 0.8, "index arithmetic folds into constant offsets"},
    {"unroll", "latency", 1.2, "loads of several iterations are in flight together"},
    {"unroll", "l1", 0.5, "neighbouring accesses of several iterations become wide ones"},
    {"unroll", "fp32", 0.5, "less of the issue rate goes into loop control"},

    {"qualify-pointers", "", 0.4, "without aliasing the compiler keeps loads in registers and uses the read-only path"},
    {"qualify-pointers", "latency", 0.8, "without aliasing loads move ahead of stores"},
    {"qualify-pointers", "issue", 0.6, "without aliasing repeated loads disappear"},
};

static const ExpertOrder orders[] = {
    {"thread-per-iteration", "loop-to-grid", 0.8}, {"loop-to-grid", "swap-thread-axes", 0.8}, {"loop-to-grid", "block-shape", 0.6},
    {"thread-per-iteration", "swap-thread-axes", 0.8}, {"swap-thread-axes", "block-shape", 0.8},
    {"thread-per-iteration", "block-shape", 0.8}, {"thread-per-iteration", "distribute-loop", 0.8},
    {"thread-per-iteration", "split-reduction", 0.8}, {"thread-per-iteration", "grid-stride", 0.8},
    // A register accumulator lets loops be distributed and staged; barriers end what coarsen can do.
    {"promote-accumulator", "distribute-loop", 0.3}, {"grid-stride", "privatize-atomic", 0.6},
    {"promote-accumulator", "coarsen", 0.5}, {"promote-accumulator", "stage-shared", 0.3},
    {"coarsen", "stage-shared", 0.6},        {"coarsen", "unroll", 0.4},
    {"coarsen", "stage-window", 0.6},        {"stage-window", "unroll", 0.6},
    {"specialize-scalar", "coarsen", 0.8},   {"specialize-scalar", "unroll", 0.6},
    {"stage-shared", "unroll", 0.6},         {"coarsen", "qualify-pointers", 0.6},
    {"vectorize-access", "qualify-pointers", 0.6},
};

llvm::ArrayRef<ExpertRule> optiml::expertRules() { return rules; }
llvm::ArrayRef<ExpertOrder> optiml::expertOrders() { return orders; }

namespace {
OpeningStep step(const char *transform, std::vector<Params> preferences = {}) {
  OpeningStep result;
  result.transform = transform;
  result.preferences = std::move(preferences);
  return result;
}
OpeningStep required(OpeningStep s) {
  s.required = true;
  return s;
}
OpeningStep everywhere(OpeningStep s) {
  s.everySite = true;
  return s;
}
OpeningStep onlyPreferred(OpeningStep s) {
  s.onlyPreferred = true;
  return s;
}
Params shape(const char *x, const char *y) { return {{"x", x}, {"y", y}}; }
Params outputs(const char *x, const char *y, const char *style) { return {{"x", x}, {"y", y}, {"style", style}}; }
Params deep(const char *y, const char *z) { return {{"x", "1"}, {"y", y}, {"z", z}, {"style", "strided"}}; }
Params tile(const char *k) { return {{"tile", k}}; }
Params pipelined(const char *k) { return {{"tile", k}, {"wide", "1"}, {"prefetch", "1"}}; }
Params inStages(const char *k, const char *stages) { return {{"tile", k}, {"wide", "1"}, {"stages", stages}}; }
} // namespace

static std::vector<ExpertLine> makeLines() {
  const OpeningStep promote = everywhere(step("promote-accumulator"));
  const OpeningStep qualify = step("qualify-pointers");
  const OpeningStep unrollFully = onlyPreferred(everywhere(step("unroll", {{{"factor", "full"}}})));
  const OpeningStep specialize = everywhere(step("specialize-scalar"));
  const OpeningStep unrollSome = everywhere(step("unroll", {{{"factor", "4"}}}));
  // Matrix products and their kin: block tile in shared memory, thread tile in registers.
  auto tiled = [&](const char *name, Params block, const char *x, const char *y, Params strip, const char *style = "blocked") {
    std::vector<OpeningStep> steps = {promote, step("block-shape", {std::move(block), shape("16", "16")}),
                                      required(onlyPreferred(step("coarsen", {outputs(x, y, style), outputs(x, y, "blocked"), shape(x, y)})))};
    bool asynchronous = strip.count("stages");
    if (asynchronous) // copies are then effects that it does not look through
      steps.push_back(qualify);
    for (const OpeningStep &last : {required(step("stage-shared", {std::move(strip), pipelined("16"), tile("8"), tile("16")})), unrollFully, qualify})
      steps.push_back(last);
    if (asynchronous)
      steps.push_back(step("widen-stores"));
    return ExpertLine{{name, std::move(steps)}, {"l1", "l2", "latency", "issue", "fp32"}};
  };
  // Convolutions and stencils: what a block reads in shared memory, adjacent outputs of a thread in registers.
  auto window = [&](const char *name, std::vector<OpeningStep> coarsen) {
    std::vector<OpeningStep> steps = {specialize, promote, step("block-shape", {shape("16", "16"), {{"x", "256"}}})};
    steps.insert(steps.end(), coarsen.begin(), coarsen.end());
    for (const OpeningStep &last : {required(step("stage-window")), unrollFully, qualify})
      steps.push_back(last);
    return ExpertLine{{name, std::move(steps)}, {"l1", "l2", "latency", "issue", "fp32"}};
  };
  // What tensor cores multiply lies with the lanes of blocks of four threads along x.
  auto tensor = [&](const char *name, const char *x, const char *y) {
    return ExpertLine{{name,
                       {promote, required(onlyPreferred(step("block-shape", {shape("4", "32")}))),
                        required(onlyPreferred(step("coarsen", {outputs(x, y, "fragments")}))), qualify,
                        required(onlyPreferred(step("stage-shared", {{{"tile", "16"}, {"wide", "1"}, {"layout", "fragments"}, {"stages", "2"}}, tile("16")}))),
                        required(step("tensor-core"))}},
                      {"l1", "l2", "latency", "issue", "fp32"}};
  };
  auto shared = [&](const char *name, Params group, bool unrolled) {
    std::vector<OpeningStep> steps = {step("thread-per-iteration"), promote,
                                      required(onlyPreferred(step("distribute-loop", {std::move(group)})))};
    if (unrolled)
      steps.push_back(unrollSome);
    steps.push_back(qualify);
    return ExpertLine{{name, std::move(steps)}, {"latency", "l1", "l2", "dram"}};
  };
  // Threads that take turns already, each with one atomic at the end, need no more than a sum of the block.
  const std::string asTheyAre = "one atomic for a block, threads as they are";
  std::vector<ExpertLine> lines = {
      {{"one atomic for a block",
        {step("thread-per-iteration"), step("grid-stride"), step("block-shape"), required(everywhere(step("privatize-atomic"))), unrollSome, qualify}},
       {"atomic", "l2", "latency", "dram"}},
      {{asTheyAre, {step("block-shape"), required(everywhere(step("privatize-atomic"))), unrollSome, qualify}}, {"atomic", "l2", "latency", "dram"}},
      {{"one atomic for a block, several rows a thread",
        {promote, step("block-shape", {shape("32", "8")}),
         required(onlyPreferred(step("coarsen", {outputs("1", "8", "strided"), outputs("1", "4", "strided")}))),
         required(everywhere(step("privatize-atomic"))), qualify}},
       {"atomic", "l2", "latency", "dram"}},
      shared("a block for each row", {{"threads", "256"}}, true),
      shared("a warp for each row", {{"threads", "32"}, {"rows", "8"}}, true),
      shared("eight threads for each row", {{"threads", "8"}, {"rows", "32"}}, true),
      shared("a block for each row, not unrolled", {{"threads", "256"}}, false),
      {{"several blocks for each thread's loop", {promote, qualify, required(step("split-reduction")), unrollSome}},
       {"latency", "l1", "l2", "fp64"}},
      {{"folds of a block by shuffles", {required(step("tree-to-shuffle")), unrollSome, qualify}},
       {"latency", "l1", "issue", "dram", "l2"}},
      {{"through shared memory, coalesced on both sides", {required(step("transpose-through-shared")), qualify}},
       {"l1", "l2", "dram", "latency"}},
      {{"arguments that never change as constants, warps along rows",
        {required(specialize), promote, step("block-shape", {shape("32", "8"), shape("32", "4"), {{"x", "256"}}}), qualify}},
       {"issue", "int32", "latency", "l1", "l2"}},
      window("outputs in registers over a window in shared memory",
             {required(onlyPreferred(step("coarsen", {outputs("4", "2", "blocked"), {{"x", "4"}, {"style", "blocked"}}})))}),
      window("larger outputs in registers over a window in shared memory",
             {required(onlyPreferred(step("coarsen", {outputs("4", "4", "blocked"), {{"x", "8"}, {"style", "blocked"}}})))}),
      window("window in shared memory", {}),
      // Measured on an H200, in us at 1024^3 and 4096^3 (cuBLAS: 60 and 2690): 8x8 in pieces 61 and 2996, 8x16 in pieces 167 and
      // 2922, 4x8 66 and 3407, 8x8 in three stages 66 and 3200; with TF32 128x64 38 and 1294, 64x64 36 and 1529, 128x128 47 and 1105.
      tensor("tensor cores, 128x64 outputs a block", "16", "4"),
      tensor("tensor cores, 64x64 outputs a block", "16", "2"),
      tensor("tensor cores, 128x128 outputs a block", "32", "4"),
      tiled("register tile 8x8 in pieces over shared memory, prefetched", shape("16", "8"), "8", "8", pipelined("16"), "pieces"),
      tiled("register tile 8x16 in pieces over shared memory, prefetched", shape("16", "8"), "8", "16", pipelined("16"), "pieces"),
      tiled("register tile 4x8 over shared memory, prefetched", shape("16", "8"), "4", "8", pipelined("16")),
      tiled("register tile 4x4 over shared memory, prefetched", shape("16", "16"), "4", "4", pipelined("16")),
      tiled("register tile 8x8 over shared memory, large block, prefetched", shape("16", "16"), "8", "8", pipelined("8")),
      tiled("register tile 8x8 in pieces over shared memory, in three stages", shape("16", "8"), "8", "8", inStages("16", "3"), "pieces"),
      tiled("register tile 8x8 over shared memory", shape("16", "16"), "8", "8", tile("8")),
      tiled("register tile 4x4 over shared memory", shape("16", "16"), "4", "4", tile("16")),
      tiled("register tile 4x8 over shared memory", shape("16", "16"), "4", "8", tile("8")),
      {{"channels in registers over image and filters in shared memory",
        {promote, step("block-shape", {shape("32", "4"), shape("16", "8")}),
         required(onlyPreferred(step("coarsen", {deep("2", "16"), deep("2", "8"), deep("1", "8"), deep("1", "4")}))),
         required(step("stage-shared", {tile("2"), tile("4"), tile("8")})), qualify}},
       {"l1", "l2", "latency", "issue", "fp32"}},
      {{"channels in registers",
        {promote, step("block-shape", {shape("32", "4"), shape("16", "8")}),
         required(onlyPreferred(step("coarsen", {deep("1", "8"), deep("1", "4"), deep("1", "2")}))), unrollFully, qualify}},
       {"l1", "l2", "latency", "issue", "fp32", "int32"}},
      {{"tile in shared memory",
        {promote, step("block-shape"), required(step("stage-shared", {tile("16"), tile("32")})), unrollFully, qualify}},
       {"l1", "l2", "dram"}},
      {{"register tile without shared memory",
        {promote, step("block-shape", {shape("16", "16"), shape("32", "8")}),
         required(onlyPreferred(step("coarsen", {outputs("4", "4", "strided"), shape("2", "2")}))), unrollSome,
         qualify}},
       {"l1", "issue", "int32", "fp32"}},
      {{"several rows a thread",
        {promote, step("block-shape", {shape("32", "8"), shape("32", "4")}),
         required(onlyPreferred(step(
             "coarsen", {outputs("1", "4", "strided"), outputs("1", "4", "blocked"), outputs("1", "2", "strided")}))),
         unrollFully, qualify}},
       {"dram", "l1", "l2", "issue"}},
      {{"vectors of neighbouring elements",
        {step("block-shape", {{{"x", "256"}, {"y", "1"}}, {{"x", "128"}, {"y", "1"}}, shape("32", "8")}),
         required(step("vectorize-access", {{{"width", "4"}}})), qualify}},
       {"dram", "l1", "latency", "issue"}},
      {{"several elements a thread, coalesced",
        {promote, step("block-shape", {{{"x", "256"}}, {{"x", "128"}}}),
         required(onlyPreferred(step("coarsen", {{{"x", "4"}, {"style", "strided"}}, {{"x", "2"}}}))), qualify}},
       {"dram", "latency", "issue"}},
      {{"several elements a thread, in turns",
        {required(step("grid-stride")), unrollSome, qualify}},
       {"dram", "latency", "issue"}},
      {{"arguments that never change as constants, loops unrolled", {required(specialize), promote, unrollFully, qualify}},
       {"issue", "int32", "latency", "l1"}},
      {{"accumulator in a register, loops unrolled", {promote, unrollSome, qualify}}, {"latency", "issue", "int32"}},
      {{"less exact arithmetic",
        {required(everywhere(step("fast-arithmetic", {{{"use", "single"}}}))), everywhere(onlyPreferred(step("fast-arithmetic", {{{"use", "intrinsics"}}}))),
         qualify}},
       {"issue", "fp64", "fp32", "latency"}},
      {{"powers as products", {required(step("expand-powers")), qualify}}, {}},
      {{"no aliasing", {promote, qualify}}, {}},
  };
  // A stride that is 1 says which elements are neighbours, before anything asks.
  // Threads that take turns come first to have one iteration each, where that is possible, and loops of few threads to be
  // axes of the grid. Axes have a site for swapping only where they lie across the arrays' rows, and all else is better after it.
  const OpeningStep unitStrides = everywhere(onlyPreferred(step("specialize-scalar", {{{"value", "1"}}})));
  for (ExpertLine &line : lines)
    if (line.line.name == asTheyAre)
      line.line.steps.insert(line.line.steps.begin(), {step("expand-powers"), unitStrides});
    else
      line.line.steps.insert(line.line.steps.begin(), {step("expand-powers"), unitStrides, step("thread-per-iteration"), step("loop-to-grid"), step("loop-to-grid"), step("swap-thread-axes")});
  // One index for all cells hides the rows that tiles need.
  for (ExpertLine &line : lines)
    if (llvm::any_of(line.line.steps, [](const OpeningStep &s) {
          return s.required && (s.transform == "stage-shared" || s.transform == "stage-window" || s.transform == "coarsen");
        }))
      line.line.steps.insert(line.line.steps.begin() + 1, step("unflatten-index"));
  // What a programmer has tiled by hand starts again from the plain kernel, where a line has better tiles to offer.
  for (ExpertLine &line : lines)
    if (llvm::any_of(line.line.steps, [](const OpeningStep &s) { return s.required && (s.transform == "stage-shared" || s.transform == "stage-window"); }))
      line.line.steps.insert(line.line.steps.begin(), step("unstage-shared"));
  return lines;
}

const std::vector<ExpertLine> &optiml::expertLines() {
  static const std::vector<ExpertLine> lines = makeLines();
  return lines;
}
