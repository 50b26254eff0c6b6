#include "kvwitness/trace/event_table.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

namespace kvwitness::trace {

BOOST_AUTO_TEST_SUITE(event_table)

BOOST_AUTO_TEST_CASE(fields_lie_in_the_payload_and_do_not_overlap) {
  for (const TypeInfo& info : all_types()) {
    std::array<bool, 40> taken{};
    std::set<std::string_view> keys = {"n", "type", "t", "seq", "layer", "store"};
    for (const FieldInfo& field : info.fields) {
      BOOST_TEST(keys.insert(field.name).second, info.name << "." << field.name << " stands twice");
      BOOST_REQUIRE(field.offset + field.size <= 40);
      for (std::size_t i = 0; i < field.size; ++i) {
        BOOST_TEST(!taken[field.offset + i], info.name << "." << field.name << " overlaps");
        taken[field.offset + i] = true;
      }
      BOOST_TEST(field.texts.empty() == (field.kind != FieldKind::enumeration && field.kind != FieldKind::flags));
    }
  }
}

/// A member that the table forgot would neither be saved nor be missed.
BOOST_AUTO_TEST_CASE(fields_cover_all_but_the_reserved_members) {
  const auto covers = []<class P>(const P& all_but_reserved) {
    BOOST_TEST((type_info(kTypeOf<P>)->used_mask == std::bit_cast<std::array<std::uint64_t, 5>>(all_but_reserved)),
               type_info(kTypeOf<P>)->name);
  };
  constexpr std::uint64_t k64 = ~0ULL;
  constexpr std::uint32_t k32 = ~0U;
  constexpr auto kOperation = static_cast<Operation>(k32);
  covers(RunEnd{k64, k64, k64, k64, 0});
  covers(Called{k64, kOperation, k32, k32, k32, k32, k32, k64});
  covers(Refused{kOperation, static_cast<RefusalCode>(k32), k32, k32, k32, k32, k32, 0, 0});
  covers(Append{k64, k64, k64, k32, k32, k32, k32});
  covers(AttentionStep{k64, k32, k32, k32, k32, k32, k32, static_cast<KernelKind>(k32), k32});
  covers(LayerDeclared{k32, k32, k32, k32, k32, k32, k32, k32, k32, k32});
  covers(LayerFormat{k64, k64, k32, k32, static_cast<DType>(0xffff), static_cast<DType>(0xffff), k32, k64});
  covers(TensorRecorded{k64, k64, k32, k32, static_cast<Plane>(k32), k32, k32, 0});
  covers(TensorValues{k32, k32, {k32, k32, k32, k32, k32, k32, k32, k32}});
  covers(RegionMeasured{k64, k64, kOperation, static_cast<Evidence>(k32), static_cast<RefusalCode>(k32), k32, k32, 0});
  covers(AdapterInserted{k64, k64, static_cast<AdapterKind>(k32), static_cast<Plane>(k32), k32,
                         static_cast<Evidence>(k32), static_cast<DType>(0xffff), static_cast<DType>(0xffff), k32});
  covers(LayerCode{k64, static_cast<Plane>(k32), static_cast<DType>(0xffff), 0xffff, k32, k32, k32, k32, 0});
  covers(PoolDeclared{k32, k32, k32, 0, {}});
  covers(BlockTokens{k64, k32, k32, {}});
  covers(BlockStored{k64, k64, k64, k64, k32, k32});
  covers(BlockRemoved{k64, {}});
  covers(BlocksCleared{});
  covers(MessagesLost{k64, k64, {}});
  covers(PoolPolicy{static_cast<BlockOrder>(k32), static_cast<AdmissionPolicy>(k32), static_cast<PublishingPolicy>(k32),
                    k32, k32, 0, {}});
  constexpr auto kEvidence = static_cast<Evidence>(k32);
  covers(Allocation{k64, k64, k64, k32, static_cast<ScopeKind>(0xffff), static_cast<Origin>(0xffff), kEvidence,
                    static_cast<Plane>(k32)});
  covers(Free{k64, k64, k32, static_cast<ScopeKind>(0xffff), static_cast<Origin>(0xffff), kEvidence, 0, 0});
  covers(PlanLayer{k64, k64, static_cast<Plane>(k32), 0, k64, 0});
  covers(StateDigest{k64, k64, k32, k32, static_cast<DigestReason>(k32), k32, 0});
}

BOOST_AUTO_TEST_CASE(types_are_found_by_id_and_by_name) {
  for (const TypeInfo& info : all_types()) {
    BOOST_TEST(type_info(info.type) == &info);
    BOOST_TEST(type_info(info.name) == &info);
    BOOST_TEST(!info.says.empty());
  }
  BOOST_TEST(type_info(EventType::unknown) == nullptr);
  BOOST_TEST(type_info(static_cast<EventType>(kLastEventType + 1)) == nullptr);
  BOOST_TEST(type_info("append") == nullptr);
  BOOST_TEST(to_text(EventType::AdapterInserted) == "AdapterInserted");
}

BOOST_AUTO_TEST_CASE(texts_and_values_are_one_to_one) {
  for (const TypeInfo& info : all_types()) {
    for (const FieldInfo& field : info.fields) {
      for (const EnumText& text : field.texts) {
        BOOST_TEST(text_of(field.texts, text.value).value() == text.text);
        BOOST_TEST(value_of(field.texts, text.text).value() == text.value);
      }
    }
  }
  BOOST_TEST(!text_of(operation_texts(), 1000).has_value());
  BOOST_TEST(!value_of(operation_texts(), "Append").has_value());
  BOOST_TEST(to_text(RefusalCode::none) == "ok");
  BOOST_TEST(to_text(RefusalCode::unknown_sequence) == "unknown-sequence");
  BOOST_TEST(to_text(static_cast<Operation>(1000)) == "unknown");
}

BOOST_AUTO_TEST_CASE(a_value_that_does_not_fit_changes_nothing) {
  Event event = make_event({}, LayerFormat{});
  const Event before = event;
  for (const FieldInfo& field : type_info(EventType::LayerFormat)->fields) {
    if (field.size == 8) continue;
    BOOST_TEST(!set_field(event, field, 1ULL << (8U * field.size)));
    BOOST_TEST((event == before));
  }
}

BOOST_AUTO_TEST_CASE(the_digest_does_not_see_what_depends_on_the_machine) {
  RegionMeasured region{};
  region.allocations = 1;
  const Event quiet = make_event({}, region);
  region.faults = 7;
  region.first_syscall = 9;
  Event loud = make_event({}, region);
  loud.time = 123;
  BOOST_TEST((canonical(loud) == canonical(quiet)));
  region.allocations = 2;
  BOOST_TEST((canonical(make_event({}, region)) != canonical(quiet)));

  Allocation allocation{};
  allocation.site = 5;
  BOOST_TEST((canonical(make_event({}, allocation)) == make_event({}, Allocation{})));
  StepEnd step{};
  step.duration_ns = 5;
  BOOST_TEST((canonical(make_event({}, step)) == make_event({}, StepEnd{})));
  EventsDropped reserved{};
  reserved.reserved[2] = 1;
  BOOST_TEST((canonical(make_event({}, reserved)) != make_event({}, EventsDropped{})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
