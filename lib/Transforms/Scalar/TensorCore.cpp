//===- TensorCore.cpp - products of tiles by tensor cores -----------------===//
//
// tensor-core[kernel/k0/k]: the loop that adds products of elements of two tiles in shared memory becomes products of
// 16x8 and 8x8 matrices, computed by whole warps (`mma.sync`). Inputs are rounded to TF32, and sums stay `float`. It
// follows `coarsen` and `stage-shared`, and applies under `--optiml-fp=tf32` only.
//
// Example:
//   for (int k = 0; k < 16; ++k)           for (int k = 0; k < 16; k += 8) {
//     for (int iy = 0; iy < 2; ++iy)         unsigned a_tile_tf32[2][2], b_tile_tf32[8][2];
//       for (int jx = 0; jx < 8; ++jx)       for (int iy = 0; iy < 2; ++iy) {
//         for (int ix = 0; ix < 2; ++ix)       a_tile_tf32[iy][0] = product_optiml_tf32(a_tile[…][k + threadIdx.x]);
//           s[iy][jx][ix] += a_tile[…][k]      a_tile_tf32[iy][1] = …; // the same at k + threadIdx.x + 4
//                          * b_tile[k][…];   }
//                                            … // b_tile_tf32: column threadIdx.y % 8 of each eight
//                                            for (int jx = 0; jx < 8; ++jx)
//                                              product_optiml_multiply(&s[0][jx][0], &s[1][jx][0], …);
//                                          }
//
// Legal: you allow the loss (`--optiml-fp=tf32[:ERROR]`), and the program is compiled for sm_80 or later. The loop
// holds one sum of products of two elements of shared memory and nothing else. It has no guard, so every lane takes
// part; it runs from 0 to a multiple of 8, and all threads of the block reach it together. One factor does not differ
// along x, and the other does not differ along y.
//
// The sums are those that the thread has anyway. `mma.sync` gives lane `4*g+t` of a warp the sums of rows g and g+8 and
// of columns `2*t` and `2*t+1`. It takes from that lane the elements of these rows at k = t and k = t+4, and those of
// column g. In a block of 4 threads along x, t is `threadIdx.x` and g is `threadIdx.y % 8`. The rows are those of two
// of the thread's copies, and the columns are those of a loop over two copies. Only what a thread reads of the tiles
// changes; the sums, the guards and what follows the loop stay as they are.
//
// Refuses: other block shapes; an odd number of rows per thread; columns of neighbouring threads that do not continue
// one another; loops with guards or other statements; factors that are computed or are not `float`.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// Rows, columns and depth of what one instruction multiplies; columns of it that a thread has.
constexpr int64_t depth = 8, ownColumns = 2, lanesAlongX = 4, lanesAlongY = 8;

struct Loop {
  CountedLoop counted;
  int64_t trips;
};

/// for k: for loops: sum[loops] += rows * columns
struct Product {
  Loop k;
  std::vector<Loop> loops; ///< outermost first
  ExprRef sum, rows, columns;
  std::vector<const Loop *> ofRows, ofColumns; ///< without the loop over the thread's own two columns
  const Loop *own = nullptr;
  const Loop *pair = nullptr; ///< the last of the rows' loops, whose copies go by twos
};

class TensorCore : public Transform {
public:
  llvm::StringRef name() const override { return "tensor-core"; }
  std::vector<ActionTemplate> sites(const KernelState &state) const override;
  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};

bool isFloatElement(const ExprRef &e) {
  return e->kind == ExprKind::Subscript && e->type.isFloat() && e->type.bytes == 4;
}

/// A loop from 0 to a constant whose counter starts at each of them.
std::optional<Loop> constantLoop(Stmt &s) {
  auto counted = asCountedLoop(s);
  auto trips = counted ? counted->tripCount() : std::nullopt;
  if (!trips || *trips < 1 || counted->step != 1 || constantValue(counted->lower) != std::optional<int64_t>(0))
    return std::nullopt;
  return Loop{*counted, *trips};
}

bool mentionsAxis(const KernelModel &model, const ExprRef &element, const char *axis) {
  return llvm::any_of(indicesOf(element), [&](const ExprRef &i) { return model.poly(i).mentions(axis); });
}

/// The loops and the one statement in them.
llvm::Expected<Product> readLoops(Stmt &stmt) {
  Product result;
  auto k = constantLoop(stmt);
  if (!k || k->trips % depth != 0)
    return notApplicable("the loop does not run from 0 to a multiple of {0}", depth);
  result.k = *k;
  Stmt *inner = stmt.body[0].get();
  while (inner->kind == StmtKind::Block && inner->body.size() == 1 && inner->body[0]->kind == StmtKind::For) {
    auto loop = constantLoop(*inner->body[0]);
    if (!loop)
      return notApplicable("a loop over a thread's outputs is not counted from 0 (line {0})", inner->body[0]->line);
    result.loops.push_back(*loop);
    inner = inner->body[0]->body[0].get();
  }
  const Stmt *only = inner->kind == StmtKind::Block && inner->body.size() == 1 ? inner->body[0].get() : inner;
  const Expr *add = only->kind == StmtKind::Expr ? only->expr.get() : nullptr;
  if (!add || add->kind != ExprKind::Assign || add->text != "+=" || !isBinary(add->args[1], "*") ||
      !isFloatElement(add->args[0]) || !isFloatElement(add->args[1]->args[0]) || !isFloatElement(add->args[1]->args[1]))
    return notApplicable("the loops hold more than a sum of products of two elements");
  result.sum = add->args[0];
  result.rows = add->args[1]->args[0];
  result.columns = add->args[1]->args[1];
  return result;
}

/// Both factors come from shared memory, and the sums from registers.
bool liesWhereItShould(const KernelModel &model, const Product &product) {
  auto declared = [&](const ExprRef &element) { return model.declaration(rootName(element)); };
  const Stmt *sum = declared(product.sum), *rows = declared(product.rows), *columns = declared(product.columns);
  return sum && !sum->isShared && sum->dims.size() == indicesOf(product.sum).size() && rows && rows->isShared &&
         columns && columns->isShared;
}

/// Which factor has the rows, and which loops are over rows and over columns.
llvm::Error assignLoops(const KernelModel &model, Product &product) {
  if (mentionsAxis(model, product.rows, "threadIdx.x"))
    std::swap(product.rows, product.columns);
  if (mentionsAxis(model, product.rows, "threadIdx.x") || mentionsAxis(model, product.columns, "threadIdx.y"))
    return notApplicable("no factor is the same for all threads along x, or none for those along y");
  auto mentions = [&](const ExprRef &element, const Loop &loop) {
    return llvm::any_of(indicesOf(element), [&](const ExprRef &i) { return model.poly(i).mentions(loop.counted.var); });
  };
  std::vector<ExprRef> indices = indicesOf(product.sum);
  for (const Loop &loop : product.loops) {
    bool ofRows = mentions(product.rows, loop), ofColumns = mentions(product.columns, loop);
    bool indexes = llvm::count_if(indices, [&](const ExprRef &i) { return isVar(i, loop.counted.var); }) == 1;
    if (ofRows == ofColumns || !indexes)
      return notApplicable("'{0}' is no loop over a thread's rows or columns", loop.counted.var);
    if (ofColumns && loop.trips == ownColumns && indices.back()->text == loop.counted.var)
      product.own = &loop;
    else
      (ofRows ? product.ofRows : product.ofColumns).push_back(&loop);
  }
  if (indices.size() != product.loops.size())
    return notApplicable("the sums are not indexed by the loops alone");
  if (!product.own)
    return notApplicable("a thread has no two adjacent columns (coarsen with style=fragments)");
  if (product.ofRows.empty() || product.ofRows.back()->trips % 2 != 0)
    return notApplicable("a thread has no even number of rows");
  product.pair = product.ofRows.back();
  return llvm::Error::success();
}

/// The columns of neighbouring threads continue one another, and nothing else tells threads apart that multiply
/// together.
llvm::Error requireFragments(const KernelModel &model, const Product &product) {
  for (const ExprRef &index : indicesOf(product.columns)) {
    Poly p = model.poly(index);
    auto perThread = p.coefficient("threadIdx.x"), perColumn = p.coefficient(product.own->counted.var);
    if (!perThread || !perColumn || !(*perThread == Poly(ownColumns) * *perColumn))
      return notApplicable(
          "the columns of neighbouring threads do not follow one another (coarsen with style=fragments)");
  }
  for (const ExprRef &factor : {product.rows, product.columns})
    for (const ExprRef &index : indicesOf(factor))
      for (const std::string &atom : model.poly(index).atoms()) {
        bool axis = atom == "threadIdx.x" || atom == "threadIdx.y";
        if (!axis && (model.variesAtom(atom) & (AnyThread | FromMemory)) && !model.loopOf(atom))
          return notApplicable("which element is read depends on '{0}', which differs between threads", atom);
      }
  return llvm::Error::success();
}

std::string addHelper(KernelState &state, const std::string &suffix, const std::string &type,
                      const std::string &parameters, const std::string &body) {
  std::string name = state.rewrite.twin + "_" + suffix;
  std::string function =
      "static __device__ __forceinline__ " + type + " " + name + "(" + parameters + ") {\n" + body + "}\n";
  if (state.helpers.find(function) == std::string::npos)
    state.helpers += function;
  return name;
}

/// An element of an array of the threads' inputs, indexed by loops.
ExprRef pieceOf(const std::string &array, const std::vector<const Loop *> &loops, const Type &type) {
  ExprRef element = var(array, type);
  for (const Loop *loop : loops)
    element = subscript(element, var(loop->counted.var, Type::makeInt()), type);
  return element;
}

StmtRef inLoops(const std::vector<const Loop *> &loops, std::vector<StmtRef> body, const Loop *byTwo = nullptr) {
  for (const Loop *loop : llvm::reverse(loops))
    body = {countedFor(loop->counted.var, Type::makeInt(), intLit(0), intLit(loop->trips), loop == byTwo ? 2 : 1,
                       block(body), FullUnroll)};
  return body.size() == 1 ? body[0] : block(body);
}

/// One step of `depth` along k.
std::vector<StmtRef> multiply(KernelState &state, const KernelModel &model, const Product &product,
                              std::set<std::string> &taken) {
  std::string round = addHelper(
      state, "tf32", "unsigned", "float x",
      "  unsigned rounded;\n  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(rounded) : \"f\"(x));\n  return rounded;\n");
  std::string add = addHelper(
      state, "multiply", "void",
      "float *upper, float *lower, const unsigned *a, const unsigned *below, const unsigned *b",
      "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\"\n"
      "               : \"+f\"(upper[0]), \"+f\"(upper[1]), \"+f\"(lower[0]), \"+f\"(lower[1])\n"
      "               : \"r\"(a[0]), \"r\"(below[0]), \"r\"(a[1]), \"r\"(below[1]), \"r\"(b[0]), \"r\"(b[1]));\n");
  Type bits = Type::makeUnsigned();
  ExprRef lane = axisBuiltin("threadIdx", 0), group = binary("%", axisBuiltin("threadIdx", 1), intLit(lanesAlongY));
  std::vector<StmtRef> result;
  // An element `half` steps of four further along k than the thread's own place among four.
  auto element = [&](const ExprRef &factor, int64_t half) {
    std::vector<ExprRef> indices = indicesOf(factor);
    ExprRef made = var(rootName(factor), factor->type);
    for (const ExprRef &index : indices) {
      Poly p = model.poly(index), own = p;
      if (factor == product.columns) { // column g in place of the thread's own
        Poly perColumn = *p.coefficient(product.own->counted.var);
        p = p.substitute("threadIdx.x", Poly(0)).substitute(product.own->counted.var, Poly(0)) +
            perColumn * Poly::atom("@group");
      }
      p = p.substitute(product.k.counted.var,
                       Poly::atom(product.k.counted.var) + Poly::atom("@lane") + Poly(half * (depth / 2)));
      ExprRef there = p == own ? index : substitute(polyExpr(model, p), {{"@lane", lane}, {"@group", group}});
      made = subscript(made, there, factor->type);
    }
    return made;
  };
  auto load = [&](const ExprRef &factor, const std::vector<const Loop *> &loops) {
    std::string array = freshName(taken, rootName(factor) + "_tf32");
    std::vector<ExprRef> dims;
    for (const Loop *loop : loops)
      dims.push_back(intLit(loop->trips));
    dims.push_back(intLit(2));
    result.push_back(declStmt(array, bits, nullptr, dims));
    std::vector<StmtRef> body;
    for (int64_t half : {0, 1})
      body.push_back(exprStmt(assign("=", subscript(pieceOf(array, loops, bits), intLit(half), bits),
                                     callOf(round, {element(factor, half)}, bits, /*pure=*/false))));
    if (loops.empty())
      llvm::append_range(result, body);
    else
      result.push_back(inLoops(loops, body));
    return array;
  };
  std::string rows = load(product.rows, product.ofRows), columns = load(product.columns, product.ofColumns);
  // Copy `next` of the pair, 0 or 1.
  auto ofPair = [&](const ExprRef &e, int64_t next) {
    const std::string &name = product.pair->counted.var;
    return addressOf(substitute(e, {{name, optiml::add(var(name, Type::makeInt()), intLit(next))}}));
  };
  ExprRef sum = substitute(product.sum, {{product.own->counted.var, intLit(0)}});
  ExprRef row = subscript(pieceOf(rows, product.ofRows, bits), intLit(0), bits);
  ExprRef column = subscript(pieceOf(columns, product.ofColumns, bits), intLit(0), bits);
  std::vector<const Loop *> loops = product.ofRows;
  llvm::append_range(loops, product.ofColumns);
  StmtRef call =
      exprStmt(callOf(add, {ofPair(sum, 0), ofPair(sum, 1), ofPair(row, 0), ofPair(row, 1), addressOf(column)}, Type(),
                      /*pure=*/false));
  result.push_back(inLoops(loops, {call}, product.pair));
  return result;
}

llvm::Expected<KernelState> TensorCore::apply(const KernelState &state, llvm::StringRef site, const Params &) const {
  if (!state.hints.tensorFloat)
    return notApplicable("inputs of products may not be rounded to TF32 (--optiml-fp=tf32 allows it)");
  if (state.hints.arch < 80)
    return notApplicable("products of TF32 numbers need -arch=sm_80 or later");
  std::array<int64_t, 3> shape = state.pinnedBlock();
  if (shape[0] != lanesAlongX || shape[1] % lanesAlongY != 0 || shape[2] != 1)
    return notApplicable("blocks must have {0} threads along x and a multiple of {1} along y", lanesAlongX,
                         lanesAlongY);
  auto kernel = state.tree->clone();
  std::vector<Stmt *> enclosing;
  Stmt *loop = findLoop(*kernel, site, &enclosing);
  if (!loop)
    return notApplicable("there is no counted loop '{0}'", site);
  auto product = readLoops(*loop);
  if (!product)
    return product.takeError();
  KernelModel model(*kernel, shape);
  if (!liesWhereItShould(model, *product))
    return notApplicable(
        "the factors are not in shared memory, or the sums not in registers (apply coarsen and stage-shared first)");
  for (const Stmt *s : enclosing) {
    unsigned differs = s->kind == StmtKind::Block ? 0 : s->expr ? model.varies(s->expr) : AnyThread;
    if (differs & (AnyThread | FromMemory))
      return notApplicable("not all threads of a block come by together");
  }
  if (llvm::Error e = assignLoops(model, *product))
    return std::move(e);
  if (llvm::Error e = requireFragments(model, *product))
    return std::move(e);
  KernelState result = state;
  std::set<std::string> taken = allNames(*kernel);
  std::vector<StmtRef> body = multiply(result, model, *product, taken);
  auto place = findPlace(*kernel->body, loop);
  place->block->body[place->index] = countedFor(product->k.counted.var, Type::makeInt(), intLit(0),
                                                intLit(product->k.trips), depth, block(body), FullUnroll);
  result.tree = kernel;
  return result;
}

std::vector<ActionTemplate> TensorCore::sites(const KernelState &state) const {
  std::vector<ActionTemplate> result;
  if (!state.hints.tensorFloat || state.pinnedBlock()[0] != lanesAlongX)
    return result;
  for (const auto &[path, loop] : countedLoops(*state.tree))
    offer(result, state, path, {{}});
  return result;
}
} // namespace

DEFINE_TRANSFORM(TensorCore)
