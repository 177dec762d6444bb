//===- IntegerSet.cpp - projections of integer sets, by isl ---------------===//
#include "optiml/Analysis/IntegerSet.h"
#include "llvm/ADT/StringExtras.h"
#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/val.h>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

using namespace optiml;

namespace {
struct Names {
  std::map<std::string, std::string> toIsl; ///< atom -> isl identifier
  std::vector<std::string> params;          ///< atoms, in order
  std::string of(const std::string &atom) {
    auto [it, inserted] = toIsl.emplace(atom, "");
    if (inserted) {
      it->second = "p" + std::to_string(params.size());
      params.push_back(atom);
    }
    return it->second;
  }
};

/// "3*p0 - d1 + 5", or nothing when not affine.
std::optional<std::string> affineText(const Poly &p, Names &names) {
  if (!p.isAffine())
    return std::nullopt;
  std::string text = "0";
  for (const auto &[monomial, c] : p.terms)
    text += " + " + std::to_string(c) + (monomial.empty() ? "" : "*" + names.of(monomial[0]));
  return text;
}

using SetPtr = std::unique_ptr<isl_set, decltype(&isl_set_free)>;

using ContextPtr = std::unique_ptr<isl_ctx, decltype(&isl_ctx_free)>;

ContextPtr makeContext() {
  ContextPtr ctx(isl_ctx_alloc(), isl_ctx_free);
  isl_options_set_on_error(ctx.get(), ISL_ON_ERROR_CONTINUE);
  // What has an answer takes less than half of this. With many divisions, that is some tenths of a second.
  isl_ctx_set_max_operations(ctx.get(), 200000);
  return ctx;
}

/// Constraints of each basic set of `set` as polynomials; false when one has divs.
bool readConstraints(isl_set *set, const std::vector<std::string> &dims, const std::vector<std::string> &params,
                     std::vector<std::vector<Poly>> &out) {
  struct State {
    const std::vector<std::string> &dims, &params;
    std::vector<std::vector<Poly>> &out;
    bool exact = true;
  } state{dims, params, out};
  auto onConstraint = [](isl_constraint *c, void *user) -> isl_stat {
    auto &s = *static_cast<State *>(user);
    auto number = [](isl_val *v) {
      int64_t n = isl_val_get_num_si(v);
      isl_val_free(v);
      return n;
    };
    Poly p(number(isl_constraint_get_constant_val(c)));
    for (size_t i = 0; i < s.dims.size(); ++i)
      p = p + Poly(number(isl_constraint_get_coefficient_val(c, isl_dim_set, int(i)))) * Poly::atom(s.dims[i]);
    for (size_t i = 0; i < s.params.size(); ++i)
      p = p + Poly(number(isl_constraint_get_coefficient_val(c, isl_dim_param, int(i)))) * Poly::atom(s.params[i]);
    if (isl_constraint_involves_dims(c, isl_dim_div, 0, unsigned(isl_constraint_dim(c, isl_dim_div))))
      s.exact = false;
    s.out.back().push_back(p);
    if (isl_constraint_is_equality(c))
      s.out.back().push_back(Poly(0) - p);
    isl_constraint_free(c);
    return isl_stat_ok;
  };
  struct Both {
    State *state;
    isl_stat (*f)(isl_constraint *, void *);
  } both{&state, onConstraint};
  isl_set_foreach_basic_set(
      set,
      [](isl_basic_set *bset, void *user) -> isl_stat {
        auto *b = static_cast<Both *>(user);
        b->state->out.emplace_back();
        isl_basic_set_foreach_constraint(bset, b->f, b->state);
        isl_basic_set_free(bset);
        return isl_stat_ok;
      },
      &both);
  return state.exact;
}
} // namespace

std::optional<std::vector<Poly>> optiml::projectSet(const std::vector<std::string> &dimensions,
                                                    const std::vector<std::string> &hidden,
                                                    const std::vector<SetPiece> &pieces,
                                                    const std::vector<Poly> &context) {
  auto sets = projectSets(dimensions, hidden, pieces, context, 1);
  if (!sets)
    return std::nullopt;
  return sets->empty() ? std::vector<Poly>() : sets->front();
}

using Projection = std::optional<std::vector<std::vector<Poly>>>;

/// What was projected before: a search asks the same of every variant in which other kernels or loops differ.
namespace {
class Projections {
public:
  static Projections &get() {
    static Projections all;
    return all;
  }
  const Projection *find(const std::string &question) {
    std::lock_guard lock(mutex);
    auto it = known.find(question);
    return it == known.end() ? nullptr : it->second.get();
  }
  const Projection &add(const std::string &question, Projection answer) {
    std::lock_guard lock(mutex);
    return *known.try_emplace(question, std::make_unique<Projection>(std::move(answer))).first->second;
  }

private:
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Projection>> known;
};
} // namespace

/// The set `body` in isl's language over `paramList`, as conjunctions that say no more than what `contextText` leaves
/// open.
static Projection project(const std::string &paramList, const std::string &dimList, const std::string &body,
                          const std::string &contextText, const std::vector<std::string> &dimensions,
                          const std::vector<std::string> &params, unsigned most) {
  ContextPtr ctx = makeContext();
  SetPtr set(isl_set_read_from_str(ctx.get(), ("[" + paramList + "] -> { " + body + " }").c_str()), isl_set_free);
  SetPtr known(isl_set_read_from_str(
                   ctx.get(), ("[" + paramList + "] -> { [" + dimList + "] : 0 = 0" + contextText + " }").c_str()),
               isl_set_free);
  if (!set || !known)
    return std::nullopt;
  set.reset(isl_set_coalesce(isl_set_remove_redundancies(isl_set_coalesce(set.release()))));
  // An inner part and its edges are one box, which pairs of them do not show.
  if (set && isl_set_n_basic_set(set.get()) > 1) {
    SetPtr hull(isl_set_from_basic_set(isl_set_simple_hull(isl_set_copy(set.get()))), isl_set_free);
    if (hull && isl_set_is_subset(hull.get(), set.get()) == isl_bool_true)
      set = std::move(hull);
  }
  if (!set || isl_set_n_basic_set(set.get()) < 1 || isl_set_n_basic_set(set.get()) > int(most))
    return std::nullopt;
  SetPtr gist(isl_set_gist(isl_set_copy(set.get()), known.release()), isl_set_free);
  gist.reset(isl_set_remove_redundancies(isl_set_coalesce(gist.release())));
  if (!gist || isl_set_n_basic_set(gist.get()) > int(most))
    return std::nullopt;
  std::vector<std::vector<Poly>> result;
  if (!readConstraints(gist.get(), dimensions, params, result))
    return std::nullopt;
  return result;
}

std::optional<std::vector<std::vector<Poly>>> optiml::projectSets(const std::vector<std::string> &dimensions,
                                                                  const std::vector<std::string> &hidden,
                                                                  const std::vector<SetPiece> &pieces,
                                                                  const std::vector<Poly> &context, unsigned most) {
  Names names;
  std::string dimList, hiddenList;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    names.toIsl[dimensions[i]] = "d" + std::to_string(i);
    dimList += (i ? ", d" : "d") + std::to_string(i);
  }
  for (size_t i = 0; i < hidden.size(); ++i) {
    names.toIsl[hidden[i]] = "h" + std::to_string(i);
    hiddenList += (i ? ", h" : "h") + std::to_string(i);
  }
  auto conjunction = [&](const std::vector<Poly> &facts, bool &ok) {
    std::string text;
    for (const Poly &fact : facts) {
      auto f = affineText(fact, names);
      ok &= f.has_value();
      if (f)
        text += " and " + *f + " >= 0";
    }
    return text;
  };
  bool ok = true;
  std::string body;
  for (const SetPiece &piece : pieces) {
    std::string text = "0 = 0";
    for (size_t i = 0; i < dimensions.size(); ++i) {
      auto value = affineText(piece.values[i], names);
      if (!value)
        return std::nullopt;
      text += " and d" + std::to_string(i) + " = " + *value;
    }
    text += conjunction(piece.facts, ok);
    body += (body.empty() ? "" : "; ") + ("[" + dimList + "] : exists (" + hiddenList + " : " + text + ")");
    if (hidden.empty())
      body = (body.size() ? body : "");
  }
  std::string contextText = conjunction(context, ok);
  if (!ok)
    return std::nullopt;
  if (hidden.empty()) { // isl wants at least one variable after "exists"
    size_t at;
    while ((at = body.find("exists ( : ")) != std::string::npos)
      body.replace(at, 11, "exists (unused : ");
  }
  std::string paramList;
  for (size_t i = 0; i < names.params.size(); ++i)
    paramList += (i ? ", p" : "p") + std::to_string(i);

  std::string question = std::to_string(most) + "|" + llvm::join(names.params, ",") + "|" +
                         llvm::join(dimensions, ",") + "|" + body + "|" + contextText;
  if (const Projection *known = Projections::get().find(question))
    return *known;
  return Projections::get().add(question,
                                project(paramList, dimList, body, contextText, dimensions, names.params, most));
}

bool optiml::isEmptySet(const std::vector<Poly> &facts) {
  std::map<std::string, std::string> variables; // of isl, by product of atoms
  std::string text, list;
  for (const Poly &fact : facts) {
    text += text.empty() ? "0" : " and 0";
    for (const auto &[monomial, coefficient] : fact.terms) {
      text += " + " + std::to_string(coefficient);
      if (monomial.empty())
        continue;
      std::string product;
      for (const std::string &atom : monomial)
        product += atom + "*";
      auto [it, added] = variables.emplace(product, "v" + std::to_string(variables.size()));
      if (added)
        list += (list.empty() ? "" : ", ") + it->second;
      text += "*" + it->second;
    }
    text += " >= 0";
  }
  ContextPtr ctx = makeContext();
  SetPtr set(isl_set_read_from_str(ctx.get(), ("{ [" + list + "] : " + (text.empty() ? "0 = 0" : text) + " }").c_str()),
             isl_set_free);
  return set && isl_set_is_empty(set.get()) == isl_bool_true;
}
