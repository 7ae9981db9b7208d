#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "config/difference.h"
#include "config/nearest_word.h"
#include "config/reference.h"

namespace warmpath {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Level { kLow, kHigh };

struct Limits {
  double drain_s = 30;
  int64_t max_body_bytes = int64_t{64} << 20;
  int workers = 4;
  uint64_t seed = 7;
};
struct Sticky {
  std::string header = "x-session-id";
};
struct Seconds {
  double price = 2;
};
struct Policy {
  std::string name = "seconds";
  Seconds seconds;
  Sticky sticky;
};
struct Endpoint {
  std::string url;
  std::map<std::string, std::string> labels;
};
struct Discovery {
  std::string service;
};
struct Model {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<Endpoint> endpoints;
  std::optional<Discovery> discovery;
  Policy policy;
};
struct Gateway {
  std::string listen = "127.0.0.1:8000";
  std::string key;
  bool verbose = false;
  Level level = Level::kLow;
  std::optional<int> cap;
  Limits limits;
  std::vector<Model> models;
};

StructSchema<Policy> policy_schema() {
  StructSchema<Seconds> seconds;
  seconds.field("price", &Seconds::price, {.doc = "What others pay.", .min = 0, .max = 100});
  StructSchema<Sticky> sticky;
  sticky.field("header", &Sticky::header, {.doc = "Header with the session id."});
  StructSchema<Policy> policy("How a replica is chosen.");
  policy.tag("name", &Policy::name, {.doc = "Its name."})
      .variant("seconds", "Cost in seconds.", &Policy::seconds, seconds)
      .variant("sticky", "By session.", &Policy::sticky, sticky)
      .variant("random", "By chance.")
      .shorthand("name");
  return policy;
}

StructSchema<Gateway> gateway_schema() {
  StructSchema<Limits> limits("Bounds.");
  limits.field("drain_s", &Limits::drain_s, {.doc = "Time to drain.", .min = 0, .unit = "seconds"})
      .field("max_body_bytes", &Limits::max_body_bytes, {.doc = "Largest body.", .min = 1, .unit = "bytes"})
      .field("workers", &Limits::workers, {.doc = "Threads.", .min = 1, .max = 256})
      .field("seed", &Limits::seed, {.doc = "Seed."});
  StructSchema<Endpoint> endpoint;
  endpoint.field("url", &Endpoint::url, {.doc = "Where.", .required = true})
      .field("labels", &Endpoint::labels, {.doc = "Free labels."})
      .shorthand("url");
  StructSchema<Discovery> discovery;
  discovery.field("service", &Discovery::service, {.doc = "DNS name.", .required = true});
  StructSchema<Model> model("A model.");
  model.field("name", &Model::name, {.doc = "Its name.", .required = true})
      .field("aliases", &Model::aliases, {.doc = "Other names."})
      .list("endpoints", &Model::endpoints, endpoint, {.doc = "Servers.", .min_items = 1, .item_key = "url"})
      .section("discovery", &Model::discovery, discovery)
      .section("policy", &Model::policy, policy_schema())
      .exactly_one_of({"endpoints", "discovery"})
      .check([](const Model& read, CheckContext& at) {
        for (const auto& alias : read.aliases) {
          if (alias == read.name) at.error("aliases", "repeats the model's own name");
        }
      });
  StructSchema<Gateway> gateway("The gateway.");
  gateway.field("listen", &Gateway::listen, {.doc = "Address."})
      .field("key", &Gateway::key, {.doc = "API key.", .secret = true})
      .field("verbose", &Gateway::verbose, {.doc = "More lines."})
      .choice<Level>("level", &Gateway::level, {{"low", Level::kLow}, {"high", Level::kHigh}}, {.doc = "Level."})
      .field("cap", &Gateway::cap, {.doc = "Optional cap.", .min = 0})
      .section("limits", &Gateway::limits, limits)
      .list("models", &Gateway::models, model, {.doc = "Models.", .required = true, .item_key = "name"});
  return gateway;
}

ConfigResult<Gateway> parse(std::string_view text) {
  return parse_config(gateway_schema(), text, "g.yaml", [](const std::string& name) -> std::optional<std::string> {
    return name == "KEY" ? std::optional<std::string>("sesame") : std::nullopt;
  });
}

const char* const kGood = R"(
listen: 0.0.0.0:9000
key: ${KEY}
verbose: true
level: high
cap: 3
limits: {drain_s: 2.5, max_body_bytes: 1.5MiB, workers: 8, seed: 18446744073709551615}
models:
  - name: a
    aliases: [b, "c"]
    endpoints:
      - http://one:1
      - url: http://two:2
        labels: {zone: x}
    policy: random
  - name: d
    discovery: {service: svc}
    policy: {name: sticky, header: x-id}
)";

TEST(Config, FillsEveryKindOfField) {
  const auto result = parse(kGood);
  ASSERT_TRUE(result.ok()) << result.error_text();
  const Gateway& gateway = *result.config;
  EXPECT_EQ(gateway.listen, "0.0.0.0:9000");
  EXPECT_EQ(gateway.key, "sesame");
  EXPECT_TRUE(gateway.verbose);
  EXPECT_EQ(gateway.level, Level::kHigh);
  EXPECT_EQ(gateway.cap, 3);
  EXPECT_EQ(gateway.limits.drain_s, 2.5);
  EXPECT_EQ(gateway.limits.max_body_bytes, 1'572'864);
  EXPECT_EQ(gateway.limits.workers, 8);
  EXPECT_EQ(gateway.limits.seed, UINT64_MAX);
  ASSERT_EQ(gateway.models.size(), 2u);
  EXPECT_THAT(gateway.models[0].aliases, ElementsAre("b", "c"));
  ASSERT_EQ(gateway.models[0].endpoints.size(), 2u);
  EXPECT_EQ(gateway.models[0].endpoints[0].url, "http://one:1");
  EXPECT_EQ(gateway.models[0].endpoints[1].labels.at("zone"), "x");
  EXPECT_EQ(gateway.models[0].policy.name, "random");
  ASSERT_TRUE(gateway.models[1].discovery.has_value());
  EXPECT_EQ(gateway.models[1].policy.sticky.header, "x-id");
}

TEST(Config, DefaultsAreThoseOfTheStruct) {
  const auto result = parse("models: []\nlimits:\n");
  ASSERT_TRUE(result.ok()) << result.error_text();
  EXPECT_EQ(result.config->listen, "127.0.0.1:8000");
  EXPECT_EQ(result.config->limits.drain_s, 30);
  EXPECT_FALSE(result.config->cap.has_value());
}

TEST(Config, AnchorsAndAliasesAreCopies) {
  const auto result = parse("models:\n- {name: a, endpoints: &e [u1, u2]}\n- {name: b, endpoints: *e}\n");
  ASSERT_TRUE(result.ok()) << result.error_text();
  EXPECT_EQ(result.config->models[1].endpoints.at(1).url, "u2");
}

struct BadCase {
  const char* yaml;
  const char* error;
};

TEST(Config, ErrorsNamePlacePathAndRemedy) {
  const BadCase cases[] = {
      {"models: []\nlisen: x\n", "g.yaml:2:1: lisen: unknown key; did you mean \"listen\"?"},
      {"models: []\nzzzzzzzz: x\n",
       "g.yaml:2:1: zzzzzzzz: unknown key; it must be one of listen, key, verbose, level, cap, limits, models"},
      {"models: []\nlevel: hihg\n", "g.yaml:2:8: level: \"hihg\" is not known; did you mean \"high\"?"},
      {"models: []\nverbose: yes\n", "g.yaml:2:10: verbose: must be true or false, not \"yes\""},
      {"models: []\nlimits: {drain_s: 30s}\n",
       "g.yaml:2:19: limits.drain_s: must be a number of seconds, not \"30s\"; the unit is always seconds, so write a "
       "plain "
       "number"},
      {"models: []\nlimits: {drain_s: -1}\n", "g.yaml:2:19: limits.drain_s: must be at least 0, not -1"},
      {"models: []\nlimits: {workers: 300}\n", "g.yaml:2:19: limits.workers: must be between 1 and 256, not \"300\""},
      {"models: []\nlimits: {workers: \"3\"}\n",
       "g.yaml:2:19: limits.workers: must be an integer; leave out the quotes around \"3\""},
      {"models: []\nlimits: {workers: 3.5}\n", "g.yaml:2:19: limits.workers: must be an integer, not \"3.5\""},
      {"models: []\nlimits: {seed: 18446744073709551616}\n",
       "g.yaml:2:16: limits.seed: must be between 0 and 18446744073709551615, not \"18446744073709551616\""},
      {"models: []\nlimits: {max_body_bytes: 64Mib}\n",
       "g.yaml:2:26: limits.max_body_bytes: must be a size in bytes (as 64MiB), not \"64Mib\""},
      {"models: []\nlimits: [1]\n", "g.yaml:2:9: limits: must be a mapping of keys, not a list"},
      {"models: []\nkey: ${NOPE}\n", "g.yaml:2:6: key: the environment variable NOPE is not set"},
      {"models: []\nmodels: []\n", "g.yaml:2:1: the key \"models\" is written twice; the first is on line 1"},
      {"listen: x\n", "g.yaml:1:1: models: is required but missing (list of mappings)"},
      {"models:\n- {name: a, endpoints: []}\n", "g.yaml:2:24: models[0].endpoints: needs at least 1 item"},
      {"models:\n- {name: a, endpoints: [u, u]}\n",
       "g.yaml:2:28: models[0].endpoints[1].url: \"u\" is already taken by the item on line 2"},
      {"models:\n- {name: a}\n", "g.yaml:2:3: models[0]: needs endpoints or discovery"},
      {"models:\n- {name: a, endpoints: [u], discovery: {service: s}}\n",
       "g.yaml:2:29: models[0].discovery: cannot stand beside endpoints; keep one of them"},
      {"models:\n- {name: a, endpoints: u}\n",
       "g.yaml:2:24: models[0].endpoints: must be a list, not \"u\"; write [u]"},
      {"models:\n- {name: a, aliases: [a], endpoints: [u]}\n",
       "g.yaml:2:13: models[0].aliases: repeats the model's own name"},
      {"models:\n- {name: a, endpoints: [u], policy: secnods}\n",
       "g.yaml:2:37: models[0].policy.name: \"secnods\" is not known; did you mean \"seconds\"?"},
      {"models:\n- {name: a, endpoints: [u], policy: {name: random, price: 2}}\n",
       "g.yaml:2:52: models[0].policy.price: belongs to name: seconds, not to random"},
      {"models:\n- {name: a, endpoints: [u], policy: {pirce: 2}}\n",
       "g.yaml:2:38: models[0].policy.pirce: unknown key; did you mean \"price\"?"},
      {"models:\n- {name: a, endpoints: [u], policy: {name: seconds, price: 200}}\n",
       "g.yaml:2:60: models[0].policy.price: must be between 0 and 100, not 200"},
      {"models: [\n", "g.yaml:2:1: this is not YAML: end of sequence flow not found"},
      {"models: []\n---\nmodels: []\n", "g.yaml:3:1: a second document follows; the file must hold one"},
      {"models: !!omap []\n", "g.yaml:1:9: the tag tag:yaml.org,2002:omap has no meaning here; leave it out"},
      {"? [a]\n: b\n", "g.yaml:1:3: a key must be a plain word"},
      {"models: &m [*m]\n", "g.yaml:1:13: an alias may not stand inside the value that it names"},
      {"just text\n", "g.yaml:1:1: must be a mapping of keys, not \"just text\""},
  };
  for (const BadCase& bad : cases) EXPECT_EQ(parse(bad.yaml).error_text(), bad.error) << bad.yaml;
}

TEST(Config, ReportsEveryErrorOfAFileAtOnceInFileOrder) {
  const auto result =
      parse("lisen: x\nverbose: 3\nmodels:\n- {nam: a, endpoints: [u]}\n- {name: b, endpoints: [{}]}\n");
  EXPECT_FALSE(result.ok());
  std::vector<std::string> paths;
  for (const auto& error : result.errors) paths.push_back(error.path);
  EXPECT_THAT(paths, ElementsAre("lisen", "verbose", "models[0].nam", "models[1].endpoints[0].url"));
}

TEST(Config, HostileFilesStayCheap) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 20; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int n = 0; n < 10; ++n) bomb += (n > 0 ? ", " : "") + below;
    bomb += "]\n";
  }
  EXPECT_THAT(parse(bomb).error_text(), HasSubstr("more than 200000 values"));
  std::string deep = "models: ";
  for (int level = 0; level < 1000; ++level) deep += "{a: ";
  EXPECT_THAT(parse(deep).error_text(), HasSubstr("levels deep"));
  EXPECT_FALSE(parse("models: " + std::string(100'000, '[')).ok());
  EXPECT_FALSE(parse(std::string(100'000, '-') + std::string(100'000, '?')).ok());
  EXPECT_THAT(parse(std::string((5 << 20), ' ')).error_text(), HasSubstr("larger than 4 MiB"));
  std::string many = "models: []\n";
  for (int n = 0; n < 10'000; ++n) many += "k" + std::to_string(n) + ": 1\n";
  const auto result = parse(many);
  EXPECT_EQ(result.errors.size(), 51u);
  EXPECT_EQ(result.errors.back().message, "and more errors, not shown");
}

TEST(Config, LoadsFilesAndNamesTheOnesItCannot) {
  const std::string path = ::testing::TempDir() + "/config_test.yaml";
  std::ofstream(path) << "models: []\nlisten: here\n";
  const auto loaded = load_config(gateway_schema(), path);
  ASSERT_TRUE(loaded.ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config->listen, "here");
  const std::string missing = ::testing::TempDir() + "/no_such.yaml";
  EXPECT_EQ(load_config(gateway_schema(), missing).error_text(),
            missing + ": cannot be opened; check the path and its permissions");
  EXPECT_THAT(load_config(gateway_schema(), ::testing::TempDir()).error_text(), HasSubstr("is a folder"));
}

TEST(ConfigDifference, NamesLeavesAndMasksSecrets) {
  const auto before = parse(kGood);
  std::string text = kGood;
  text.replace(text.find("drain_s: 2.5"), 12, "drain_s: 9.0");
  text.replace(text.find("${KEY}"), 6, "opensesame");
  text.replace(text.find("policy: random"), 14, "policy: {name: seconds, price: 3}");
  text.replace(text.find("name: d"), 7, "name: e");
  const auto after = parse(text);
  ASSERT_TRUE(before.ok() && after.ok()) << after.error_text();
  std::string lines;
  for (const auto& change : config_difference(gateway_schema(), *before.config, *after.config)) {
    lines += format_config_change(change) + "\n";
  }
  EXPECT_EQ(lines,
            "key: *** -> ***\n"
            "limits.drain_s: 2.5 -> 9\n"
            "models[a].policy.name: random -> seconds\n"
            "models[a].policy.price: (unset) -> 3\n"
            "models[e].name: (unset) -> e\n"
            "models[e].aliases: (unset) -> []\n"
            "models[e].discovery.service: (unset) -> svc\n"
            "models[e].policy.name: (unset) -> sticky\n"
            "models[e].policy.header: (unset) -> x-id\n"
            "models[d].name: d -> (unset)\n"
            "models[d].aliases: [] -> (unset)\n"
            "models[d].discovery.service: svc -> (unset)\n"
            "models[d].policy.name: sticky -> (unset)\n"
            "models[d].policy.header: x-id -> (unset)\n");
  EXPECT_THAT(config_difference(gateway_schema(), *before.config, *before.config), IsEmpty());
}

TEST(ConfigReference, ListsKeysTypesDefaultsAndVariants) {
  const std::string text = config_reference_markdown(gateway_schema());
  EXPECT_THAT(text, HasSubstr("| `listen` | text | `127.0.0.1:8000` | Address. |"));
  EXPECT_THAT(text, HasSubstr("| `drain_s` | number of seconds, at least 0 | `30` | Time to drain. |"));
  EXPECT_THAT(text, HasSubstr("| `max_body_bytes` | size in bytes (as 64MiB), at least 1 | `64MiB` | Largest body. |"));
  EXPECT_THAT(text, HasSubstr("| `models` | list of mappings | *required* | Models. |"));
  EXPECT_THAT(text, HasSubstr("| `level` | one of low, high | `low` | Level. |"));
  EXPECT_THAT(text, HasSubstr("## `models[].endpoints[]`"));
  EXPECT_THAT(text, HasSubstr("### `models[].policy.name: seconds`"));
  EXPECT_THAT(text, HasSubstr("| `price` | number, 0 to 100 | `2` | What others pay. |"));
}

TEST(NearestWord, PrefersSmallSlipsAndStaysSilentOnNonsense) {
  const std::vector<std::string> words{"round_robin", "random", "predicted_seconds", "least_requests"};
  const auto nearest = [&](std::string_view word) {
    const std::string* found = nearest_word(word, words);
    return found == nullptr ? std::string() : *found;
  };
  EXPECT_EQ(nearest("roundrobin"), "round_robin");
  EXPECT_EQ(nearest("radnom"), "random");
  EXPECT_EQ(nearest("predicted"), "predicted_seconds");
  EXPECT_EQ(nearest("least-request"), "least_requests");
  EXPECT_EQ(nearest("xyzzy"), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance(std::string(65, 'a'), "a"), SIZE_MAX);
}

}  // namespace
}  // namespace warmpath
