#include "text/schema/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/schema/schema_check_for_test.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

std::string prepared(std::string_view schema) {
  const auto result = prepare_json_schema(schema);
  return result.ok() ? *result : result.status().message();
}

TEST(JsonSchemaTest, SaysExplicitlyWhatTheSchemaLeavesOpen) {
  EXPECT_EQ(prepared("true"), "{}");
  EXPECT_EQ(prepared(R"({"title":"t","description":"d","x-vendor":[1]})"), "{}");
  EXPECT_EQ(prepared(R"({"type":"object"})"), R"({"type":"object","additionalProperties":true})");
  // Listed properties are all there are, unless the schema says otherwise.
  EXPECT_EQ(prepared(R"({"properties":{"a":{"type":"null"}}})"),
            R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false})");
  EXPECT_EQ(
      prepared(R"({"type":"object","properties":{},"required":["b"],"additionalProperties":{"type":"string"}})"),
      R"({"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":{"type":"string"}})");
  EXPECT_EQ(prepared(R"({"type":"array"})"), R"({"type":"array","items":{}})");
  EXPECT_EQ(prepared(R"({"type":["string","null"],"maxLength":3})"),
            R"({"anyOf":[{"type":"string","pattern":"^[^\"\\\\\\x00-\\x1f]{0,3}$"},{"type":"null"}]})");
  EXPECT_EQ(prepared(R"({"type":"string","enum":["a",1,null]})"), R"({"enum":["a"]})");
  EXPECT_EQ(prepared(R"({"type":"integer","minimum":0.5,"exclusiveMaximum":4})"),
            R"({"type":"integer","minimum":1,"maximum":3})");
}

TEST(JsonSchemaTest, ReferencesBecomeDefinitionsOnce) {
  EXPECT_EQ(prepared(R"({"$defs":{"a/b":{"type":"array","items":{"$ref":"#/$defs/a~1b"}}},"$ref":"#/$defs/a~1b"})"),
            R"({"$defs":{"d0":{"type":"array","items":{"$ref":"#/$defs/d0"}}},"$ref":"#/$defs/d0"})");
  // Narrowed by what is around it, a reference is a copy.
  EXPECT_EQ(prepared(R"({"$defs":{"x":{"type":["string","null"]}},"type":"string","anyOf":[{"$ref":"#/$defs/x"}]})"),
            R"({"anyOf":[{"type":"string"}]})");
}

TEST(JsonSchemaTest, OneOfIsKeptWhereItsBranchesCannotBothFit) {
  EXPECT_EQ(prepared(R"({"oneOf":[{"type":"string","enum":["all"]},{"type":"string","pattern":"^[1-9][0-9]*$"}]})"),
            R"({"anyOf":[{"enum":["all"]},{"type":"string","pattern":"^[1-9][0-9]*$"}]})");
  EXPECT_THAT(prepared(R"({"oneOf":[{"type":"integer"},{"type":"null"}]})"), HasSubstr("anyOf"));
  EXPECT_THAT(prepared(R"({"oneOf":[
      {"type":"object","properties":{"kind":{"const":"a"}},"required":["kind"]},
      {"type":"object","properties":{"kind":{"enum":["b","c"]}},"required":["kind"]}]})"),
              HasSubstr("anyOf"));
  EXPECT_THAT(prepared(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"), HasSubstr("'oneOf' at #"));
  EXPECT_THAT(prepared(R"({"oneOf":[{"enum":["1"]},{"type":"string","pattern":"[0-9]"}]})"), HasSubstr("'oneOf' at #"));
}

TEST(JsonSchemaTest, WhatCannotBeKeptIsRefusedByKeywordAndPlace) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"not":{}})", "'not' at #"},
      {R"({"properties":{"a":{"if":{}}}})", "'if' at #/properties/a"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems' at #"},
      {R"({"type":"array","items":{"contains":{}}})", "'contains' at #/items"},
      {R"({"type":"object","propertyNames":{"pattern":"a"}})", "'propertyNames' at #"},
      {R"({"patternProperties":{"a":{}},"properties":{"b":{}}})", "'patternProperties' at #"},
      {R"({"type":"string","pattern":"a","maxLength":3})", "'pattern' at #"},
      {R"({"type":"string","pattern":"\"a"})", "'pattern' at #"},
      {R"({"type":"string","pattern":"ä"})", "'pattern' at #"},
      {R"({"type":"string","minLength":4,"maxLength":3})", "'minLength' at #"},
      {R"({"type":"number","multipleOf":0.1})", "'multipleOf' at #"},
      {R"({"anyOf":[{}],"properties":{}})", "'properties' at #"},
      {R"({"allOf":[{},{}]})", "'allOf' at #"},
      {R"({"$ref":"http://x/y"})", "'$ref' at #"},
      {R"({"$ref":"#/$defs/no"})", "'$ref' at #"},
      {R"({"type":"text"})", "'type' at #"},
      {R"({"type":"string","const":1})", "'const' at #"},
      {R"({"enum":[]})", "'enum' at #"},
      {R"({"type":"integer","minimum":3,"maximum":2})", "'minimum' at #"},
      {R"({"required":["a"],"additionalProperties":false})", "'required' at #"},
      {R"({"type":"string","minLength":1000000})", "'minLength' at #"},
      {R"({"type":"string","minLength":-1})", "'minLength' at #"},
      {R"({"properties":[]})", "'properties' at #"},
      {"false", "'false' at #"},
      {"[]", "'schema' at #"},
      {"{", "cannot be read"},
  };
  for (const auto& [schema, message] : rows) {
    const auto result = prepare_json_schema(schema);
    ASSERT_FALSE(result.ok()) << schema << " became " << *result;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().message(), HasSubstr(message)) << schema;
  }
}

TEST(JsonSchemaTest, HostileSchemasAreRefusedBeforeTheyCost) {
  std::string deep, close;
  for (int level = 0; level < 190; ++level) {
    deep += R"({"items":)";
    close += '}';
  }
  EXPECT_THAT(prepared(deep + "{}" + close), HasSubstr("nested"));
  // Each definition twice the one before, when its references are followed.
  std::string doubling = R"({"type":"string","anyOf":[{"$ref":"#/$defs/a0"}],"$defs":{)";
  for (int level = 0; level < 40; ++level) {
    const std::string next = R"({"$ref":"#/$defs/a)" + std::to_string(level + 1) + "\"}";
    doubling += "\"a" + std::to_string(level) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  EXPECT_THAT(prepared(doubling + R"("a40":{}}})"), HasSubstr("'schema' at #"));
  // A circle that says nothing.
  EXPECT_THAT(prepared(R"({"type":"string","$ref":"#"})"), HasSubstr("nested"));
}

}  // namespace
}  // namespace warmpath
