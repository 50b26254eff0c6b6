#include "kvwitness/core/tensor_view.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace kvwitness::core {
namespace {

using Shape = std::vector<std::uint64_t>;

/// A view as a list: its shape, and for each element in row-major order which element of the memory it is.
struct Listed {
  Shape shape;
  std::vector<std::uint64_t> elements;
};

std::uint64_t product(const Shape& shape) {
  std::uint64_t all = 1;
  for (const std::uint64_t size : shape) all *= size;
  return all;
}

/// Calls `each` with every index of the shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& each) {
  const std::uint64_t count = product(shape);
  for (std::uint64_t n = 0; n < count; ++n) {
    Shape index(shape.size());
    std::uint64_t rest = n;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    each(index);
  }
}

std::uint64_t element(const Listed& list, const Shape& index) {
  std::uint64_t flat = 0;
  for (std::size_t d = 0; d < index.size(); ++d) flat = flat * list.shape[d] + index[d];
  return list.elements[flat];
}

/// A list of another shape whose element at each index is the one of `from` at `map(index)`.
Listed remap(const Listed& from, const Shape& shape, const std::function<Shape(Shape)>& map) {
  Listed result{shape, {}};
  for_each_index(shape, [&](const Shape& index) { result.elements.push_back(element(from, map(index))); });
  return result;
}

struct Action {
  enum Kind { narrow, transpose, step, squeeze, unsqueeze } kind;
  std::size_t dimension;
  std::uint64_t a;
  std::uint64_t b;
};

bool legal(const Listed& list, const Action& action) {
  const std::size_t rank = list.shape.size();
  if (action.kind == Action::unsqueeze) return action.dimension <= rank && rank < 4;
  if (action.dimension >= rank) return false;
  switch (action.kind) {
    case Action::narrow: return action.a + action.b <= list.shape[action.dimension];
    case Action::transpose: return action.a < rank;
    case Action::step: return action.a > 0;
    case Action::squeeze: return list.shape[action.dimension] == 1 && rank > 1;
    case Action::unsqueeze: break;
  }
  return true;
}

Listed apply(const Listed& list, const Action& action) {
  Shape shape = list.shape;
  const std::size_t d = action.dimension;
  const auto at = [d](Shape& values) { return values.begin() + static_cast<std::ptrdiff_t>(d); };
  switch (action.kind) {
    case Action::narrow: shape[d] = action.b; return remap(list, shape, [&](Shape i) { return i[d] += action.a, i; });
    case Action::transpose:
      std::swap(shape[d], shape[action.a]);
      return remap(list, shape, [&](Shape i) { return std::swap(i[d], i[action.a]), i; });
    case Action::step:
      shape[d] = (shape[d] + action.a - 1) / action.a;
      return remap(list, shape, [&](Shape i) { return i[d] *= action.a, i; });
    case Action::squeeze:
      shape.erase(at(shape));
      return remap(list, shape, [&](Shape i) { return i.insert(at(i), 0), i; });
    case Action::unsqueeze:
      shape.insert(at(shape), 1);
      return remap(list, shape, [&](Shape i) { return i.erase(at(i)), i; });
  }
  return list;
}

TensorView apply(const TensorView& view, const Action& action) {
  switch (action.kind) {
    case Action::narrow: return view.narrow(action.dimension, action.a, action.b);
    case Action::transpose: return view.transpose(action.dimension, action.a);
    case Action::step: return view.step(action.dimension, action.a);
    case Action::squeeze: return view.squeeze(action.dimension);
    case Action::unsqueeze: return view.unsqueeze(action.dimension);
  }
  return view;
}

/// Gaps and order are the list's; rows lie side by side where their elements follow each other in memory.
bool is_consecutive(std::span<const std::uint64_t> elements) {
  for (std::size_t i = 1; i < elements.size(); ++i)
    if (elements[i] != elements[i - 1] + 1) return false;
  return true;
}

void check_same(const TensorView& view, const Listed& list, const std::byte* base, std::uint64_t each) {
  BOOST_REQUIRE(view.rank() == list.shape.size());
  for (std::size_t d = 0; d < view.rank(); ++d) BOOST_REQUIRE(view.size(d) == list.shape[d]);
  BOOST_REQUIRE(view.elements() == list.elements.size());
  BOOST_REQUIRE(view.contiguous() == is_consecutive(list.elements));
  for_each_index(list.shape,
                 [&](const Shape& index) { BOOST_REQUIRE(view.at(index) == base + element(list, index) * each); });
  if (!list.elements.empty()) BOOST_REQUIRE(view.data() == base + list.elements.front() * each);
}

Action random_action(std::mt19937& random) {
  Action action{};
  action.kind = static_cast<Action::Kind>(random() % 5);
  action.dimension = random() % 5;
  action.a = random() % 5;
  action.b = random() % 5;
  return action;
}

Shape random_shape(std::mt19937& random) {
  Shape shape(1 + random() % 4);
  for (std::uint64_t& size : shape) size = random() % 7;
  return shape;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_view)

BOOST_AUTO_TEST_CASE(any_chain_of_cuts_names_the_elements_that_a_list_names) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const trace::DType type = seed % 2 == 0 ? trace::DType::f32 : trace::DType::bf16;
    const std::uint64_t each = type == trace::DType::f32 ? 4 : 2;
    const Shape shape = random_shape(random);
    Storage storage(product(shape), each);
    const std::byte* base = storage.bytes().data();
    TensorView view(storage, type, shape);
    Listed list{shape, {}};
    for (std::uint64_t i = 0; i < product(shape); ++i) list.elements.push_back(i);
    BOOST_TEST_CONTEXT("seed " << seed) {
      check_same(view, list, base, each);
      for (int n = 0; n < 12; ++n) {
        const Action action = random_action(random);
        if (!legal(list, action)) {
          BOOST_REQUIRE_THROW(static_cast<void>(apply(view, action)), trace::Error);
          continue;
        }
        view = apply(view, action);
        list = apply(list, action);
        check_same(view, list, base, each);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_are_where_their_first_element_is_and_only_where_they_lie_side_by_side) {
  Storage storage(24, 4);
  const TensorView view(storage, trace::DType::f32, Shape{2, 3, 4});
  for (std::uint64_t i = 0; i < 2; ++i)
    for (std::uint64_t j = 0; j < 3; ++j)
      BOOST_TEST(view.row(Shape{i, j}) == storage.bytes().data() + (i * 12 + j * 4) * 4);
  BOOST_TEST(view.step(1, 2).row(Shape{1, 1}) == storage.bytes().data() + (12 + 8) * 4);
  BOOST_TEST(message_of([&] {
               static_cast<void>(view.transpose(0, 2).row(Shape{0, 0}));
             }) == "row: dimension 2: its elements do not lie side by side");
  BOOST_TEST(message_of([&] {
               static_cast<void>(view.step(2, 2).row(Shape{0, 0}));
             }) == "row: dimension 2: its elements do not lie side by side");
  BOOST_TEST(view.narrow(2, 1, 1).transpose(0, 2).narrow(2, 0, 1).row(Shape{0, 2}) == storage.bytes().data() + 9 * 4);
}

BOOST_AUTO_TEST_CASE(strides_are_bytes) {
  Storage storage(24, 2);
  const TensorView view(storage, trace::DType::f16, Shape{2, 3, 4});
  BOOST_TEST(view.stride_bytes(0) == 24U);
  BOOST_TEST(view.stride_bytes(1) == 8U);
  BOOST_TEST(view.stride_bytes(2) == 2U);
  BOOST_TEST(view.step(1, 2).stride_bytes(1) == 16U);
}

BOOST_AUTO_TEST_CASE(a_refusal_names_the_function_the_dimension_and_the_sizes) {
  Storage storage(24, 4);
  const TensorView view(storage, trace::DType::f32, Shape{2, 3, 4});
  const auto ignore = [](auto&&) {};
  BOOST_TEST(message_of([&] { ignore(view.narrow(1, 2, 2)); }) == "narrow: dimension 1: 2 from 2 are not within 3");
  BOOST_TEST(message_of([&] { ignore(view.narrow(1, 4, 0)); }) == "narrow: dimension 1: 0 from 4 are not within 3");
  BOOST_TEST(message_of([&] { ignore(view.narrow(2, ~0ULL, 2)); }).starts_with("narrow: dimension 2: 2 from 1844"));
  BOOST_TEST(message_of([&] { ignore(view.narrow(3, 0, 1)); }) ==
             "narrow: there is no dimension 3 in a view of 3 dimensions");
  BOOST_TEST(message_of([&] { ignore(view.transpose(0, 3)); }).starts_with("transpose: there is no dimension 3"));
  BOOST_TEST(message_of([&] { ignore(view.step(0, 0)); }) == "step: dimension 0: a step of 0 never ends");
  BOOST_TEST(message_of([&] { ignore(view.squeeze(1)); }) == "squeeze: dimension 1 has size 3, not 1");
  BOOST_TEST(message_of([&] { ignore(view.unsqueeze(0).unsqueeze(0)); }) ==
             "unsqueeze: dimension 0 would be the fifth");
  BOOST_TEST(message_of([&] { ignore(view.at(Shape{1, 3, 0})); }) == "at: dimension 1: index 3 is not below 3");
  BOOST_TEST(message_of([&] { ignore(view.at(Shape{1, 2})); }) == "at: 2 indices for 3 dimensions");
  BOOST_TEST(message_of([&] { ignore(view.row(Shape{2, 0})); }) == "row: dimension 0: index 2 is not below 2");
  BOOST_TEST(message_of([&] { ignore(view.size(3)); }) == "size: there is no dimension 3 in a view of 3 dimensions");
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_are_refused) {
  Storage storage(24, 4);
  const auto view_of = [&](trace::DType type, const Shape& shape) {
    return message_of([&] { TensorView(storage, type, shape); });
  };
  BOOST_TEST(view_of(trace::DType::f32, {2, 3, 4}).empty());
  BOOST_TEST(view_of(trace::DType::f32, {25}) == "view: [25] takes 100 bytes, and there are 96");
  BOOST_TEST(view_of(trace::DType::f32, {}) == "view: [] does not have 1 to 4 dimensions");
  BOOST_TEST(view_of(trace::DType::f32, {1, 1, 1, 1, 1}) == "view: [1, 1, 1, 1, 1] does not have 1 to 4 dimensions");
  BOOST_TEST(view_of(trace::DType::q8_0, {32}) == "view: q8-0 is not a format of single elements");
  // Each product is 2^64 elements or bytes, and would wrap to none.
  const std::string too_large = "do not fit into 63 bits";
  BOOST_TEST(view_of(trace::DType::f32, {1ULL << 32, 1ULL << 32}).ends_with(too_large));
  BOOST_TEST(view_of(trace::DType::f32, {1ULL << 62}).ends_with(too_large));
  BOOST_TEST(view_of(trace::DType::f32, {0, 1ULL << 40, 1ULL << 40}).ends_with(too_large));
  const std::string skewed =
      message_of([&] { TensorView(storage.bytes().subspan(2), storage.life(), trace::DType::f32, Shape{1}); });
  BOOST_TEST(skewed == "view: the memory is not aligned to elements of 4 bytes");
}

BOOST_AUTO_TEST_CASE(a_view_without_elements_has_no_memory_to_name) {
  Storage storage(0, 4);
  const TensorView view(storage, trace::DType::f32, Shape{0, 5});
  BOOST_TEST(view.elements() == 0U);
  BOOST_TEST(view.data() == nullptr);
  BOOST_TEST(view.contiguous());
  BOOST_CHECK_THROW(static_cast<void>(view.at(Shape{0, 0})), trace::Error);
  BOOST_TEST(TensorView().elements() == 0U);
  BOOST_TEST(TensorView().data() == nullptr);
  BOOST_CHECK_THROW(static_cast<void>(TensorView().at(Shape{})), trace::Error);
  BOOST_CHECK_THROW(static_cast<void>(TensorView().unsqueeze(0)), trace::Error);
}

BOOST_AUTO_TEST_CASE(huge_steps_do_not_wrap) {
  Storage storage(8, 4);
  const TensorView view = TensorView(storage, trace::DType::f32, Shape{2, 4}).step(1, ~0ULL);
  BOOST_TEST(view.size(1) == 1U);
  BOOST_TEST(view.at(Shape{1, 0}) == storage.bytes().data() + 16);
}

BOOST_AUTO_TEST_CASE(nothing_is_named_after_a_storage_closed) {
  TensorView view;
  {
    Storage storage(24, 4);
    view = TensorView(storage, trace::DType::f32, Shape{2, 1, 12});
    storage.close();
    BOOST_TEST(!view.alive());
    BOOST_CHECK_THROW(static_cast<void>(view.at(Shape{0, 0, 0})), trace::Error);
  }
  // And not after it is gone either.
  const std::string closed = "the memory of this view was closed or reset";
  const auto ignore = [](auto&&) {};
  BOOST_TEST(message_of([&] { ignore(view.at(Shape{0, 0, 0})); }) == "at: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.row(Shape{0, 0})); }) == "row: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.data()); }) == "data: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.narrow(0, 0, 1)); }) == "narrow: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.transpose(0, 1)); }) == "transpose: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.step(0, 1)); }) == "step: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.squeeze(1)); }) == "squeeze: " + closed);
  BOOST_TEST(message_of([&] { ignore(view.unsqueeze(1)); }) == "unsqueeze: " + closed);
  Storage none;
  BOOST_CHECK_THROW(TensorView(none, trace::DType::f32, Shape{0}), trace::Error);
}

BOOST_AUTO_TEST_CASE(nothing_is_named_after_a_scope_reset) {
  trace::NameTable names;
  trace::Bus bus(names);
  Scope scope(bus, trace::ScopeKind::forward, 256);
  const TensorView old(scope, scope.allocate(64), trace::DType::f32, Shape{4, 4});
  BOOST_TEST(old.alive());
  scope.reset();
  const TensorView fresh(scope, scope.allocate(64), trace::DType::f32, Shape{4, 4});
  BOOST_TEST(!old.alive());
  BOOST_CHECK_THROW(static_cast<void>(old.narrow(0, 0, 1)), trace::Error);
  BOOST_TEST(fresh.alive());
}

BOOST_AUTO_TEST_CASE(cutting_and_naming_do_not_allocate) {
  if (trace::probe_state() != trace::ProbeState::measuring) return;
  Storage storage(24, 4);
  const Shape shape{2, 3, 4};
  const Shape index{0, 0};
  const trace::ProbeRegion region;
  const TensorView view(storage, trace::DType::f32, shape);
  const std::byte* row = view.narrow(0, 1, 1).squeeze(0).unsqueeze(1).step(0, 2).row(index);
  BOOST_TEST(region.seen().allocations == 0U);
  BOOST_TEST(row == storage.bytes().data() + 48);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
