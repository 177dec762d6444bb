//===- FormulaWords.cpp - the operation that a formula means, in words ----===//
#include "Asides.h"
#include "Formula.h"
#include "optiml/Generate/Words.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"

using namespace optiml::gen;
using llvm::StringRef;

namespace {

ExprPtr make(Expr::Kind kind, std::string name, std::vector<ExprPtr> args = {}) {
  return std::make_shared<Expr>(Expr{kind, std::move(name), 0, std::move(args)});
}

ExprPtr index(const std::string &name) { return make(Expr::Kind::Name, name); }

/// `expr` with `change` applied from the leaves on.
template <typename Change> ExprPtr rewrite(const ExprPtr &expr, const Change &change) {
  std::vector<ExprPtr> args;
  for (const ExprPtr &arg : expr->args)
    args.push_back(rewrite(arg, change));
  return change(std::make_shared<Expr>(Expr{expr->kind, expr->name, expr->value, std::move(args)}));
}

template <typename Visit> void visit(const ExprPtr &expr, const Visit &each) {
  each(*expr);
  for (const ExprPtr &arg : expr->args)
    visit(arg, each);
}

bool has(const ExprPtr &expr, Expr::Kind kind) {
  bool found = false;
  visit(expr, [&](const Expr &one) { found |= one.kind == kind; });
  return found;
}

std::string print(const Expr &expr) {
  std::string text = std::to_string(int(expr.kind)) + expr.name +
                     (expr.kind == Expr::Kind::Number ? shortestNumber(expr.value) : "") + "(";
  for (const ExprPtr &arg : expr.args)
    text += print(*arg) + ",";
  return text + ")";
}

/// "a[i*n + j]" is a[i][j], "a[(b*h + i)*w + j]" is a[b][i][j].
ExprPtr unflattened(ExprPtr one) {
  if (one->kind != Expr::Kind::Index || one->args.size() != 1)
    return one;
  std::vector<ExprPtr> subscripts;
  ExprPtr rest = one->args[0];
  auto isCall = [](const ExprPtr &expr, StringRef name) {
    return expr->kind == Expr::Kind::Call && expr->name == name && expr->args.size() == 2;
  };
  auto isSize = [](const ExprPtr &expr) {
    static const llvm::StringSet<> sizes = {"n",      "m",      "k",   "h",   "w",   "cols", "width",
                                            "height", "stride", "lda", "ldb", "ldc", "ld",   "pitch",
                                            "rows",   "dim",    "d",   "t",   "g",   "e"};
    return expr->kind == Expr::Kind::Name && (expr->name.back() == '\'' || sizes.contains(expr->name));
  };
  while (isCall(rest, "+") && isCall(rest->args[0], "*") && isSize(rest->args[0]->args[1])) {
    subscripts.insert(subscripts.begin(), rest->args[1]);
    rest = rest->args[0]->args[0];
  }
  if (subscripts.empty())
    return one;
  subscripts.insert(subscripts.begin(), rest);
  return make(Expr::Kind::Index, one->name, subscripts);
}

/// "x" for all its elements becomes x[i], and "sum(x)" a sum over an index of its own. False where nothing tells what
/// is an array.
bool spellOut(Formula &formula) {
  static const llvm::StringSet<> arrays = {"x",     "y",  "z",    "u",      "v",       "w",
                                           "p",     "q",  "pred", "target", "targets", "predictions",
                                           "input", "in", "data", "logits", "xs",      "ys", "g", "grad"};
  static const llvm::StringSet<> scalars = {"alpha",  "beta",  "gamma",  "n",   "eps",  "epsilon", "k",  "s",     "t",
                                            "lambda", "scale", "factor", "low", "high", "lo",      "hi", "slope", "pi"};
  static const llvm::StringSet<> reductions = {"sum", "prod", "mean", "max", "min"};
  bool isNamed = false; // "x / 8 + mask": the names of stages say more than the formula
  visit(formula.value, [&](const Expr &one) {
    isNamed |= one.kind == Expr::Kind::Name && (one.name == "mask" || one.name == "bias" || one.name == "residual");
  });
  if (isNamed)
    return false;
  formula.value = rewrite(formula.value, unflattened);
  if (formula.target)
    formula.target = rewrite(formula.target, unflattened);
  std::set<std::string> matrices; // "C = A*B" multiplies matrices, "max(C, 0)" takes every element
  bool multiplies = false;
  visit(formula.value, [&](const Expr &one) {
    if (one.kind == Expr::Kind::Name && one.name.back() == '\'')
      matrices.insert(one.name);
    multiplies |= one.kind == Expr::Kind::Call && (one.name == "*" || one.name == "^");
  });
  if (!matrices.empty() && (matrices.size() > 1 || multiplies || has(formula.value, Expr::Kind::Index)))
    return false;
  formula.value = rewrite(formula.value, [](ExprPtr one) {
    return one->kind == Expr::Kind::Name && one->name.back() == '\'' ? index("x") : one;
  });
  bool isWhole = !has(formula.value, Expr::Kind::Index); // "y += alpha*x" adds arrays, "s += x[i]" elements
  if (isWhole) {
    std::set<std::string> names, own;
    visit(formula.value, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Name)
        (arrays.contains(one.name) ? own : names).insert(one.name);
    });
    if (own.empty() && formula.target)
      llvm::copy_if(names, std::inserter(own, own.end()),
                    [&](const std::string &name) { return !scalars.contains(name) && (name.size() <= 2 || formula.accumulates); });
    if (own.empty()) // "(a - b)^2"
      llvm::copy_if(names, std::inserter(own, own.end()),
                    [](const std::string &name) { return name.size() == 1 && name[0] >= 'a' && name[0] <= 'd'; });
    if (own.empty())
      return false;
    formula.value = rewrite(formula.value, [&](ExprPtr one) {
      if (one->kind == Expr::Kind::Name && own.size() == 1 && !own.count(one->name) &&
          (one->name == "mean" || one->name == "std" || one->name == "max" || one->name == "min" || one->name == "sum"))
        return make(Expr::Kind::Call, one->name, {make(Expr::Kind::Index, *own.begin(), {index("i")})});
      return one->kind == Expr::Kind::Name && own.count(one->name) ? make(Expr::Kind::Index, one->name, {index("i")})
                                                                   : one;
    });
  }
  std::set<std::string> kept; // of the target
  if (formula.target)
    visit(formula.target, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Name && formula.target->kind == Expr::Kind::Index)
        kept.insert(one.name);
    });
  unsigned inner = 0;
  formula.value = rewrite(formula.value, [&](ExprPtr one) -> ExprPtr {
    bool isSpread = one->kind == Expr::Kind::Call && (one->name == "std" || one->name == "var" || one->name == "norm");
    if (one->kind != Expr::Kind::Call || one->args.size() != 1 || (!reductions.contains(one->name) && !isSpread))
      return one;
    std::set<std::string> over, bound;
    visit(one->args[0], [&](const Expr &part) {
      if (part.kind == Expr::Kind::Reduce)
        bound.insert(part.args[0]->name);
      if (part.kind == Expr::Kind::Index)
        for (const ExprPtr &arg : part.args)
          if (arg->kind == Expr::Kind::Name && arg->name != "n")
            over.insert(arg->name);
    });
    auto reduce = [&](const std::string &name, ExprPtr body) {
      for (const std::string &old : over) {
        if (bound.count(old))
          continue;
        std::string fresh = "j" + std::to_string(++inner);
        body = rewrite(body, [&](ExprPtr part) {
          return part->kind == Expr::Kind::Name && part->name == old ? index(fresh) : part;
        });
        body = make(Expr::Kind::Reduce, name, {index(fresh), body});
      }
      return body;
    };
    auto call = [](const char *name, std::vector<ExprPtr> args) {
      return make(Expr::Kind::Call, name, std::move(args));
    };
    if (!isSpread)
      return reduce(one->name, one->args[0]);
    ExprPtr square = call("*", {one->args[0], one->args[0]});
    if (one->name == "norm")
      return call("sqrt", {reduce("sum", square)});
    ExprPtr mean = reduce("mean", one->args[0]),
            variance = call("-", {reduce("mean", square), call("*", {mean, mean})});
    return one->name == "var" ? variance : call("sqrt", {variance});
  });
  if (formula.target && formula.target->kind == Expr::Kind::Name) {
    bool isArray = false;
    std::set<std::string> bound;
    visit(formula.value, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Reduce)
        bound.insert(one.args[0]->name);
    });
    visit(formula.value,
          [&](const Expr &one) { isArray |= one.kind == Expr::Kind::Name && one.name == "i" && !bound.count("i"); });
    if (isArray && (!formula.accumulates || isWhole))
      formula.target = make(Expr::Kind::Index, formula.target->name, {index("i")});
  }
  return true;
}

/// The text of a stage's expression without the placeholders' signs.
std::string plainExpression(StringRef text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = text.substr(i).starts_with("${") ? text.find('}', i) : StringRef::npos;
    if (end == StringRef::npos) {
      result += text[i];
      continue;
    }
    StringRef inner = text.slice(i + 2, end);
    result += inner.starts_with("-") ? ("(" + inner + ")").str() : inner.str();
    i = end;
  }
  return result;
}

struct Known {
  const Operation *op;
  Formula formula;
  std::string words;
};

/// The stages over elements with these subscripts.
std::vector<Known> stagesOver(const Library &library, const std::vector<ExprPtr> &subscripts) {
  std::vector<Known> result;
  for (const Operation &op : library.operations()) {
    if (!op.isStage || op.name == "copy" || op.name == "fill" || op.name == "residual" || op.name == "mask")
      continue;
    auto parsed = parseFormula(plainExpression(op.expression));
    if (!parsed)
      continue;
    bool hasColumn = llvm::any_of(op.operands, [](const Operand &operand) { return operand.shape == "column"; });
    if (hasColumn && subscripts.size() != 2)
      continue;
    Formula formula = parsed->first;
    formula.target = make(Expr::Kind::Index, "result", subscripts);
    formula.value = rewrite(formula.value, [&](ExprPtr one) {
      if (one->kind != Expr::Kind::Name)
        return one;
      if (one->name == "v")
        return make(Expr::Kind::Index, "v", subscripts);
      for (const Operand &operand : op.operands)
        if (operand.name == one->name)
          return make(Expr::Kind::Index, one->name,
                      operand.shape == "column" ? std::vector<ExprPtr>{subscripts.back()} : subscripts);
      return one;
    });
    result.push_back({&op, formula, op.says[0]});
  }
  llvm::stable_sort(result, [](const Known &a, const Known &b) { return a.op->reals.size() < b.op->reals.size(); });
  return result;
}

std::string inWords(const Known &known, const std::map<std::string, double> &values) {
  std::string text = known.words;
  for (const Real &real : known.op->reals)
    if (auto value = values.find(real.name); value != values.end() && !real.words.empty())
      text += (text == known.words ? " " : ", ") + real.words[0] + " = " + shortestNumber(value->second);
  return text;
}

std::vector<std::string> realNames(const Operation &op) {
  std::vector<std::string> names;
  for (const Real &real : op.reals)
    names.push_back(real.name);
  return names;
}

/// One stage after the other: the formula is a stage of one of its parts, and that part a chain of stages again.
std::optional<std::string> chainInWords(const Formula &formula, const std::vector<Known> &stages, unsigned depth = 0) {
  for (const Known &known : stages)
    if (auto values = sameFormula(formula, known.formula, realNames(*known.op)))
      return inWords(known, *values);
  if (depth == 3)
    return std::nullopt;
  std::vector<ExprPtr> parts;
  std::function<void(const ExprPtr &)> collect = [&](const ExprPtr &expr) {
    for (const ExprPtr &arg : expr->args) {
      if (arg->kind == Expr::Kind::Call && has(arg, Expr::Kind::Index))
        parts.push_back(arg);
      collect(arg);
    }
  };
  collect(formula.value);
  ExprPtr middle = make(Expr::Kind::Index, "middle", formula.target->args);
  for (const ExprPtr &part : parts) {
    std::string text = print(*part);
    Formula outer = formula, inner = formula;
    outer.value = rewrite(formula.value, [&](ExprPtr one) { return print(*one) == text ? middle : one; });
    inner.value = part;
    // "x + 3*x^2": what the outer stage takes beside the inner one's result is another array.
    std::set<std::string> inside;
    visit(part, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Index)
        inside.insert(one.name);
    });
    bool isShared = false;
    visit(outer.value, [&](const Expr &one) { isShared |= one.kind == Expr::Kind::Index && inside.count(one.name); });
    if (isShared)
      continue;
    for (const Known &known : stages)
      // What the outer stage takes is v, no other operand.
      if (auto values = sameFormula(outer, known.formula, realNames(*known.op)))
        if (std::optional<std::string> before = chainInWords(inner, stages, depth + 1))
          return inWords(known, *values) + " of " + *before;
  }
  return std::nullopt;
}

std::optional<std::string> meaning(Formula formula, const Library &library) {
  if (!spellOut(formula))
    return std::nullopt;
  if (Formula same = formula; !formula.target && has(formula.value, Expr::Kind::Index)) { // "log(exp(x))" is not x
    visit(formula.value, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Index)
        same.value = std::make_shared<Expr>(one);
    });
    if (formula.value->kind == Expr::Kind::Call && sameFormula(formula, same, {}))
      return std::nullopt;
  }
  for (const Operation &op : library.operations())
    for (StringRef text : op.formulas) {
      auto [equation, words] = text.split(" => ");
      auto parsed = parseFormula(equation);
      if (!parsed)
        continue;
      Known known{&op, parsed->first, words.empty() ? op.says[0] : words.str()};
      bool moves = known.formula.value->kind == Expr::Kind::Index; // what it does is told by its target
      if (!formula.target && (known.formula.accumulates || moves))
        continue;
      if (!formula.target) // "sum(x*y)" alone
        known.formula.target = nullptr;
      if (auto values = sameFormula(formula, known.formula, realNames(op)))
        return inWords(known, *values);
    }
  std::vector<ExprPtr> subscripts;
  if (formula.target && formula.target->kind == Expr::Kind::Index)
    subscripts = formula.target->args;
  else
    visit(formula.value, [&](const Expr &one) {
      if (one.kind == Expr::Kind::Index && subscripts.empty())
        subscripts = one.args;
    });
  // "sum_i exp(x[i])"
  bool isNumber = !formula.target || formula.target->kind == Expr::Kind::Name;
  if (isNumber && formula.value->kind == Expr::Kind::Reduce && formula.value->args.size() == 2) {
    Formula inner;
    std::vector<ExprPtr> element = {formula.value->args[0]};
    inner.value = formula.value->args[1];
    inner.target = make(Expr::Kind::Index, "result", element);
    if (!has(inner.value, Expr::Kind::Reduce))
      if (std::optional<std::string> before = chainInWords(inner, stagesOver(library, element)))
        return *before + " then " + (formula.value->name == "prod" ? "product" : formula.value->name) +
               " of all elements";
    return std::nullopt;
  }
  bool isElementwise =
      !subscripts.empty() && !formula.accumulates && !has(formula.value, Expr::Kind::Reduce) &&
      llvm::all_of(subscripts, [](const ExprPtr &subscript) { return subscript->kind == Expr::Kind::Name; });
  if (formula.accumulates && !subscripts.empty()) { // "y[i] += a*x[i]"
    formula.value = make(Expr::Kind::Call, "+", {formula.target, formula.value});
    formula.accumulates = false;
    isElementwise = !has(formula.value, Expr::Kind::Reduce);
  }
  if (!isElementwise)
    return std::nullopt;
  formula.target = make(Expr::Kind::Index, "result", subscripts);
  if (std::optional<std::string> chain = chainInWords(formula, stagesOver(library, subscripts)))
    return chain;
  const Operation *polynomial = library.find("polynomial");
  std::optional<std::vector<double>> coefficients = polynomial ? polynomialOf(*formula.value) : std::nullopt;
  if (!coefficients)
    return std::nullopt;
  std::map<std::string, double> values;
  for (size_t i = 0; i < coefficients->size(); ++i)
    values["c" + std::to_string(i)] = (*coefficients)[i];
  return inWords(Known{polynomial, formula, "polynomial"}, values);
}

/// Whether it is more than "n = 100", "mean (average)" or two words with a sign between them.
bool saysSomething(const Formula &formula) {
  unsigned calls = 0, references = 0, numbers = 0, functions = 0;
  visit(formula.value, [&](const Expr &one) {
    calls += one.kind == Expr::Kind::Call || one.kind == Expr::Kind::Reduce;
    functions += one.kind == Expr::Kind::Reduce ||
                 (one.kind == Expr::Kind::Name && (one.name == "mean" || one.name == "std")) ||
                 (one.kind == Expr::Kind::Call && llvm::isAlpha(one.name[0]));
    references += one.kind == Expr::Kind::Index;
    numbers += one.kind == Expr::Kind::Number;
  });
  if (formula.target)
    return references || (formula.accumulates && calls) ||
           (calls && (functions || calls > 1 || formula.target->kind == Expr::Kind::Index || numbers == 0));
  bool takesTwo = false; // "max(x, 0)"
  visit(formula.value, [&](const Expr &one) {
    takesTwo |= one.kind == Expr::Kind::Call && llvm::isAlpha(one.name[0]) && one.args.size() > 1;
  });
  bool isPower = formula.value->kind == Expr::Kind::Call && formula.value->name == "^" && numbers; // "x^1.5"
  if (calls > 2) // "x + t*(y - x)"
    return true;
  return (references && calls) || (calls > 1 && (functions || numbers)) || takesTwo || isPower;
}

/// "C[b] = A[b] * B[b]": one product of matrices for each place of the batch.
bool isBatchedProduct(const Formula &formula) {
  auto inBatch = [](const ExprPtr &expr) {
    return expr && expr->kind == Expr::Kind::Index && expr->args.size() == 1 &&
           (expr->args[0]->name == "b" || expr->args[0]->name == "batch");
  };
  return inBatch(formula.target) && formula.value->kind == Expr::Kind::Call && formula.value->name == "*" &&
         inBatch(formula.value->args[0]) && inBatch(formula.value->args[1]);
}

} // namespace

std::optional<std::string> optiml::gen::wordsOfFormula(const Formula &formula, const Library &library) {
  return meaning(formula, library);
}

std::string optiml::gen::formulasInWords(StringRef text, const Library &library) {
  static const llvm::Regex series(
      "([a-z])\\[0\\] *([-+*^]) *[a-z]\\[1\\] *[-+*^]? *(\\.\\.+|…)[^a-z]*[a-z]\\[[a-z] *- *1\\]",
      llvm::Regex::IgnoreCase);
  llvm::SmallVector<StringRef, 4> groups;
  if (series.match(text, &groups)) // "x[0] + x[1] + ... + x[n-1]"
    return series.sub(groups[2] == "+"   ? "sum of all elements"
                      : groups[2] == "*" ? "product of all elements"
                                         : "xor of all elements",
                      text);
  static const llvm::Regex fourier("x_?\\[?k\\]? *= *sum_?\\{?[a-z][^,;]*(exp\\(|e\\^)[^,;]*(pi|π)[^,;]*",
                                   llvm::Regex::IgnoreCase),
      recurrence("x_?[[{]?n *\\+ *1[]}]? *= *\\(?a *\\*? *x_?[[{]?n[]}]? *\\+ *c\\)? *(mod|%) *(m|2\\^[0-9]+)?",
                 llvm::Regex::IgnoreCase);
  static const llvm::Regex rowRange(
      ",? *[ijkp] *(=|in|from) *[a-z_]+\\[[^]]*\\] *(\\.\\.+|to|:) *[a-z_]+\\[[^]]*\\]( *- *1)?",
      llvm::Regex::IgnoreCase); // of a sparse matrix
  if (rowRange.match(text))
    return formulasInWords(rowRange.sub(" ", text), library);
  if (fourier.match(text))
    return formulasInWords(fourier.sub("discrete fourier transform", text), library);
  if (recurrence.match(text))
    return formulasInWords(recurrence.sub("linear congruential generator", text), library);
  static const llvm::Regex sumOver("= *(the )?sum over (all )?([a-z]) of +", llvm::Regex::IgnoreCase),
      upToHere("[a-z]\\[i\\] *= *[a-z]\\[[01]\\] *\\+( *[a-z]\\[[12]\\] *\\+)? *(\\.\\.+|…) *\\+ *[a-z]\\[i\\]",
               llvm::Regex::IgnoreCase);
  static const llvm::Regex written("(write|store|put|copy) ([a-z]+\\[i\\]) (in)?to ([a-z]+\\[[a-z]+\\[i\\]\\])",
                                   llvm::Regex::IgnoreCase);
  if (written.match(text)) // "write x[i] to y[p[i]]"
    return formulasInWords(written.sub("\\4 = \\2", text), library);
  if (sumOver.match(text)) // "C[i][j] = sum over k of A[i][k]*B[k][j]"
    return formulasInWords(sumOver.sub("= sum_\\3 ", text), library);
  if (upToHere.match(text)) // "b[i] = a[0] + ... + a[i]"
    return formulasInWords(upToHere.sub("prefix sum", text), library);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    char before = at ? text[at - 1] : ' ';
    bool starts = (llvm::isAlpha(text[at]) || text[at] == '(' || text[at] == '|' || llvm::isDigit(text[at])) &&
                  !llvm::isAlnum(before) && before != '_' && before != '.';
    std::optional<std::pair<Formula, size_t>> found = starts ? parseFormula(text.substr(at)) : std::nullopt;
    if (found && isBatchedProduct(found->first)) {
      result += " batched matrix multiply ";
      at += found->second;
      continue;
    }
    if (found && saysSomething(found->first)) {
      // A letter behind it goes on: "A x", "x W + b".
      if (std::optional<std::string> words = meaning(found->first, library)) {
        result += " " + *words + " ";
        at += found->second;
        continue;
      }
      bool hasScalars = false; // "y = alpha*A*x + beta*y"
      visit(found->first.value, [&](const Expr &one) {
        hasScalars |= one.kind == Expr::Kind::Name && (one.name == "alpha" || one.name == "beta");
      });
      if (found->first.target && (hasScalars || found->first.target->kind == Expr::Kind::Index ||
                                  has(found->first.value, Expr::Kind::Index))) { // the words around it must tell
        result += " formula ";
        at += found->second;
        continue;
      }
    }
    do
      result += text[at++];
    while (at < text.size() && llvm::isAlnum(text[at - 1]) && llvm::isAlnum(text[at]));
  }
  return result;
}
