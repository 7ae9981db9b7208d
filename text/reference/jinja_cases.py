#!/usr/bin/env python3
"""Small templates that touch each corner of the language, with what Jinja2 makes of them as transformers sets it up.
text/testdata/jinja_cases.jsonl is its output: {template, vars, text | error}, one a line.

usage: jinja_cases.py MODEL_DATA > text/testdata/jinja_cases.jsonl      needs: pip install jinja2==3.1.6
"""
import datetime
import json
import pathlib
import sys

DATA = {
    "name": "Ada", "empty": "", "n": 7, "neg": -3, "pi": 3.14159, "big": 123456789012345678901234567890, "yes": True,
    "no": False, "nil": None, "xs": [3, 1, 2], "words": ["pear", "Apple", "fig"], "uni": "Ünïcode 漢字 🙂 ß ǆ",
    "d": {"b": 1, "a": [1, 2], "C": {"x": None}}, "items_dict": {"items": 5, "keys": 6, "x-y": 7},
    "users": [{"name": "bo", "age": 3, "tags": ["t"]}, {"name": "Al", "age": 5}, {"name": "cy", "age": 3}],
    "text": "  line one\n\tline two \n\nlast  ", "quote": "it's \"q\" \\ \n\u0007é\u2028\u00ad", "nested": [[1, [2]], [], {}],
    "floats": [1.0, 1e16, 1e-5, 0.1, 123456.789, 1e22, -0.0, 2.5, 1e15, 12345678.0],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}],
}
CASES = """
{{ name }}|{{ n }}|{{ pi }}|{{ big }}|{{ yes }}|{{ no }}|{{ nil }}|{{ xs }}|{{ d }}|{{ words }}
{{ undefined_thing }}|{{ d.nothing }}|{{ d['nothing'] }}|{{ xs[10] }}
{{ undefined_thing.attr }}
{{ undefined_thing + 'x' }}
{{ undefined_thing ~ 'x' }}|{{ nil ~ 1 ~ 1.5 ~ true }}
{{ 1 + 2 * 3 - 4 / 2 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 2 ** 10 }}|{{ 2 ** -1 }}|{{ 7 / 7 }}|{{ 2 ** 3 ** 2 }}
{{ -2 ** 2 }}|{{ (1, 2) + (3,) }}|{{ [1] + [2] }}|{{ 'ab' * 3 }}|{{ [0] * 2 }}|{{ 3 * 'x' }}
{{ 1.0 }}|{{ 1e3 }}|{{ 1.5e-7 }}|{{ 10.0 // 3 }}|{{ 5.5 % 2 }}|{{ -5.5 % 2 }}|{{ 1_000 }}|{{ 0x1f }}|{{ 0b101 }}|{{ 0o17 }}
{{ floats }}|{{ floats|map('string')|join(' ') }}
{{ 1 == 1.0 }}|{{ true == 1 }}|{{ 'a' == 'a' }}|{{ [1,2] == [1,2] }}|{{ (1,) == [1] }}|{{ {'a':1} == {'a':1.0} }}|{{ none == none }}
{{ 1 < 2 < 3 }}|{{ 3 > 2 >= 2 }}|{{ 1 < 2 > 5 }}|{{ 'a' < 'b' }}|{{ [1,2] < [1,3] }}|{{ 'Z' < 'a' }}
{{ 'a' < 1 }}
{{ 2 in xs }}|{{ 9 not in xs }}|{{ 'b' in d }}|{{ 'da' in name }}|{{ 'zz' in name }}|{{ '' in name }}|{{ not 2 in xs }}
{{ 1 in 'abc' }}
{{ 1 in nil }}
{{ 'x' if yes else 'y' }}|{{ 'x' if no }}|{{ 'x' if no else 'y' if no else 'z' }}|{{ ('x' if no) is defined }}
{{ yes and 'a' or 'b' }}|{{ no or empty or 'c' }}|{{ '' and 1 }}|{{ not not 1 }}|{{ nil or [] }}
{{ name[0] }}|{{ name[-1] }}|{{ name[1:] }}|{{ name[::-1] }}|{{ name[:-1] }}|{{ name[5:9] }}|{{ xs[1:] }}|{{ xs[::-1] }}|{{ xs[-2:] }}|{{ xs[::2] }}
{{ uni[3:9] }}|{{ uni|length }}|{{ uni|upper }}|{{ uni|lower }}|{{ uni.title() }}|{{ uni|capitalize }}|{{ uni[8] }}|{{ uni[::-1] }}
{{ d.a }}|{{ d['a'] }}|{{ d.a[0] }}|{{ d.a.0 }}|{{ d.C.x }}|{{ items_dict['items'] }}|{{ items_dict['x-y'] }}|{{ items_dict['keys'] }}
{{ d.items() }}|{{ d.keys()|list }}|{{ d.values()|list }}|{{ d.get('b') }}|{{ d.get('zz') }}|{{ d.get('zz', 4) }}|{{ d|items|list }}
{{ d.items }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}|{% for k in d %}{{ k }}{% endfor %}|{% for c in 'añb' %}{{ c }}.{% endfor %}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.cycle('a', 'b') }} {% endfor %}
{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}|{% for x in [] %}{% else %}none{% endfor %}|{% for x in undefined_thing %}a{% else %}b{% endfor %}
{% for x in nil %}a{% endfor %}
{% for x in 5 %}a{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}|{% for a, (b, c) in [(1, (2, 3))] %}{{ a + b + c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}
{% for x in [[1,[2,[3]]]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(count=0, items=[]) %}{% for i in xs %}{% set ns.count = ns.count + i %}{% endfor %}{{ ns.count }}{{ ns.missing }}{{ ns['count'] }}
{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}|{% set a, b = 1, 'z' %}{{ a }}{{ b }}|{% set t = 1, 2 %}{{ t }}
{% set d.x = 1 %}
{% set block %}hello {{ name }}{% endset %}{{ block|upper }}|{% set block | upper | replace('A', '4') %}banana{% endset %}{{ block }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=5) }}|{{ m(b=1, a=2) }}|{{ m() }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m() %}[{{ caller('x') }}]{% endmacro %}{% call(v) m() %}body {{ v }}{{ name }}{% endcall %}
{% macro fact(n) %}{{ 1 if n <= 1 else n * fact(n - 1)|int }}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ outer }}{% endmacro %}{% set outer = 5 %}{{ m() }}{% for outer in [9] %}{{ m() }}{% endfor %}{{ m.name }}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}|{% filter upper %}shout {{ name }}{% endfilter %}
{% generation %}gen {{ name }}{% set inner = 1 %}{% endgeneration %}{{ inner }}|{% block b %}in block{% endblock %}
{% raw %}{{ not parsed }} {% if %}{% endraw %}|{# comment {{ name }} #}x{#- y -#} z
{{ '{{' }}{{ "}}" }}{{ '%}' }}|{{ {'a': {'b': {}}} }}|{{ {} }}|{{ [] }}|{{ () }}|{{ (1,) }}|{{ {1: 'a', none: 2} }}
{{ 'a' 'b' "c" }}|{{ 'tab\\tnl\\n\\x41\\u00e9\\'q\\'\\\\' }}|{{ 'keep\\q' }}
{{ text|trim }}|{{ text|trim|length }}|{{ 'xxaxx'|trim('x') }}|{{ text.strip() }}|{{ text.lstrip() }}|{{ text.rstrip() }}|{{ 'xyax'.strip('xy') }}
{{ text.split() }}|{{ text.split('\\n') }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ ' a  b '.split(none, 1) }}|{{ text.splitlines() }}|{{ 'a b c'.rsplit(none, 1) }}
{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'abc'.find('c') }}|{{ 'abc'.find('z') }}|{{ 'abcabc'.rfind('b') }}|{{ 'abc'.index('b') }}|{{ 'añc'.find('c') }}
{{ 'aXbX'.replace('X', '-') }}|{{ 'aXbX'.replace('X', '-', 1) }}|{{ 'ab'.replace('', '.') }}|{{ 'aXbX'|replace('X', '') }}|{{ 5|replace('5', '6') }}
{{ 'hello world-foo (bar'.title() }}|{{ 'hello world-foo (bar it\\'s'|title }}|{{ 'HeLLo'.swapcase() }}|{{ 'hELLO wORLD'|capitalize }}|{{ 'hELLO'.capitalize() }}
{{ ','.join(['a', 'b']) }}|{{ ','.join(xs) }}
{{ xs|join('-') }}|{{ users|join(', ', attribute='name') }}|{{ words|join }}|{{ []|join(',') }}
{{ 'abc'.center(9, '*') }}|{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4) }}|{{ '7'.zfill(3) }}|{{ '-7'.zfill(4) }}|{{ 'abc'|center(8) }}|{{ 'abcd'.center(7, '*') }}
{{ 'a-b-c'.partition('-') }}|{{ 'a-b-c'.rpartition('-') }}|{{ 'abc'.partition('z') }}|{{ 'banana'.count('an') }}|{{ 'unhappy'.removeprefix('un') }}|{{ 'cats'.removesuffix('s') }}
{{ 'abc'.isalpha() }}|{{ '12'.isdigit() }}|{{ 'a1'.isalnum() }}|{{ ' '.isspace() }}|{{ 'AB'.isupper() }}|{{ 'ab'.islower() }}|{{ ''.isalpha() }}|{{ '½'.isnumeric() }}|{{ '½'.isdigit() }}
{{ '{} and {}'.format(1, 'x') }}|{{ '{0}{1}{0}'.format('a', 'b') }}|{{ '{name}'.format(name='n') }}|{{ '{{}}'.format(1) }}
{{ '%s is %d and %.2f' % ('x', 5, 1.5) }}|{{ '%5s|%-5s|%05d|%x' % ('a', 'b', 42, 255) }}|{{ '%s' % name }}|{{ '%(a)s' % {'a': 1} }}|{{ '%%' % () }}|{{ '%s, %s'|format('a', 'b') }}|{{ '%r' % 'x' }}
{{ xs|sort }}|{{ words|sort }}|{{ words|sort(case_sensitive=true) }}|{{ xs|sort(reverse=true) }}|{{ users|sort(attribute='age')|map(attribute='name')|list }}|{{ users|sort(attribute='age,name')|map(attribute='name')|list }}
{{ xs|first }}|{{ xs|last }}|{{ xs|length }}|{{ xs|count }}|{{ xs|sum }}|{{ users|sum(attribute='age') }}|{{ xs|max }}|{{ xs|min }}|{{ xs|reverse|list }}|{{ 'abc'|reverse }}|{{ []|first }}|{{ words|max }}|{{ users|min(attribute='age') }}
{{ users|map(attribute='name')|list }}|{{ users|map(attribute='tags.0', default='-')|list }}|{{ words|map('upper')|join(',') }}|{{ xs|map('string')|list }}|{{ words|map('replace', 'p', 'P')|list }}
{{ users|selectattr('age', 'equalto', 3)|map(attribute='name')|list }}|{{ users|selectattr('tags')|list|length }}|{{ users|rejectattr('age', 'gt', 3)|list|length }}|{{ xs|select('odd')|list }}|{{ xs|reject('odd')|list }}|{{ [0, 1, '', 'a']|select|list }}|{{ users|selectattr('tags', 'defined')|list|length }}
{{ [1, 2, 1, 'a', 'A']|unique|list }}|{{ xs|batch(2)|list }}|{{ xs|batch(2, 'x')|list }}|{{ [1,2,3,4,5]|slice(2)|list }}|{% for g in users|groupby('age') %}{{ g[0] }}:{{ g[1]|length }} {% endfor %}
{% for age, group in users|groupby('age') %}{{ age }}{{ group|map(attribute='name')|join }}{% endfor %}|{{ d|dictsort }}|{{ d|dictsort(reverse=true) }}|{{ {'x': 2, 'y': 1}|dictsort(by='value') }}
{{ undefined_thing|default('d') }}|{{ empty|default('d') }}|{{ empty|default('d', true) }}|{{ nil|default('d') }}|{{ nil|d('d', boolean=true) }}|{{ undefined_thing|default }}
{{ '42'|int }}|{{ '4.7'|int }}|{{ 'x'|int }}|{{ 'x'|int(5) }}|{{ '0x1A'|int(base=16) }}|{{ 3.99|int }}|{{ '3.5'|float }}|{{ 'x'|float }}|{{ 5|float }}|{{ ' 12 '|int }}|{{ none|int }}
{{ 2.5|round }}|{{ 3.14159|round(2) }}|{{ 2.4|round(method='ceil') }}|{{ 2.6|round(0, 'floor') }}|{{ 1234|round(-2) }}|{{ 0.125|round(2) }}|{{ -5|abs }}|{{ -2.5|abs }}|{{ 7|round }}|{{ 1.005|round(2) }}
{{ '<a href="x">&\\'</a>'|e }}|{{ '<b>'|escape }}|{{ '<b>'|safe }}|{{ 'a b&c/d'|urlencode }}|{{ 'one two, three!'|wordcount }}
{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent(2, blank=true) }}|{{ 'a\\nb'|indent('> ') }}
{{ 'hello world this is long'|truncate(12) }}|{{ 'hello world'|truncate(8, true) }}|{{ 'hello world'|truncate(5, true, '..', 0) }}|{{ 'short'|truncate(3) }}
{{ d|tojson }}|{{ d|tojson(indent=2) }}|{{ quote|tojson }}|{{ floats|tojson }}|{{ uni|tojson }}|{{ uni|tojson(ensure_ascii=true) }}|{{ [1, none, true, 'x']|tojson }}|{{ big|tojson }}
{{ d|tojson(sort_keys=true) }}|{{ d|tojson(separators=(',', ':')) }}|{{ nested|tojson(indent=1) }}|{{ {1: 2, none: 3, true: 4}|tojson }}|{{ (1, 2)|tojson }}|{{ tools|tojson(indent=4) }}|{{ d|tojson(indent='--') }}|{{ d|tojson(indent=0) }}
{{ undefined_thing|tojson }}
{{ quote }}|{{ [quote] }}|{{ ["it's"] }}|{{ ['"'] }}|{{ ['\\x00\\x1f\\x7f'] }}|{{ [uni] }}|{{ {'k': quote} }}
{{ n is number }}{{ n is integer }}{{ pi is float }}{{ yes is boolean }}{{ yes is integer }}{{ yes is number }}{{ name is string }}{{ xs is sequence }}{{ d is mapping }}{{ d is sequence }}{{ xs is iterable }}{{ n is iterable }}{{ nil is none }}{{ yes is true }}{{ no is false }}{{ 1 is true }}
{{ x is defined }}{{ x is undefined }}{{ name is not none }}{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}{{ n is divisibleby(2) }}{{ 'a' is lower }}{{ 'A' is upper }}{{ n is sameas n }}{{ 1 is in [1] }}{{ n is eq 7 }}{{ n is gt 3 }}{{ n is lt(3) }}{{ n is ne 7 }}{{ range is callable }}{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}
{{ name is string and n is number or no }}|{{ not name is string }}|{{ name is not string }}|{{ undefined_thing is iterable }}{{ undefined_thing is sequence }}{{ undefined_thing is string }}
{{ range(3)|list }}|{{ range(1, 4)|list }}|{{ range(5, 0, -2)|list }}|{% for i in range(2) %}{{ i }}{% endfor %}|{{ range(3)|length }}
{{ range(1000000)|list|length }}
{{ dict(a=1, b=2) }}|{{ dict([('x', 1)]) }}|{{ dict(d, z=1)|length }}
{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}c|{% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{{ strftime_now('%Y-%m-%d') }}|{{ strftime_now('%d %b %Y %H:%M:%S %A %B %j') }}
{{ raise_exception('no ' + name) }}
{{ name|nosuchfilter }}
{{ name is nosuchtest }}
{% if no %}{{ name|nosuchfilter }}{% endif %}ok
{{ nosuchfunction() }}
{{ name() }}
{{ name.nosuchmethod() }}
{{ d.nosuchmethod() }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + 'a' }}
{{ none + 1 }}
{{ -name }}
{{ xs['a'] }}|{{ xs.foo }}|{{ name.foo }}|{{ n.foo }}
{{ nil.foo }}|{{ nil['foo'] }}
{{ nil.foo.bar }}
{{ nil[0] }}|{{ n[0] }}
{{ nil[1:] }}
{{ d[xs] }}
{{ xs|first|upper|lower }}{{ (xs|first) + 1 }}{{ xs|first + 1 }}|{{ 'a' ~ 1 + 2 }}|{{ 1 ~ 2 * 3 }}
{{ users[0].name ~ users[-1]['name'] }}|{{ users|length > 2 }}|{{ (users|first).tags|first }}|{{ users[0]['tags'][0] }}
  {% if yes %}  
 a 
  {% endif %}  
 b{% if yes +%}
 c{% endif %}
{%- if yes -%}   x   {%- endif -%}   y
	{%+ if yes %}keep{% endif %}
{{- name -}}   |   {{- name }}  |  {{ name -}}  |
line {# comment #}
  {# own line comment #}
next {#- trimmed -#}  end
{% for x in xs -%}
  {{ x }},
{%- endfor %}
{% if n > 5 and name == 'Ada' %}A{% elif n %}B{% else %}C{% endif %}{% if no %}A{% elif n %}B{% else %}C{% endif %}{% if no %}{% else %}C{% endif %}
{% if undefined_thing %}a{% else %}b{% endif %}{% if undefined_thing is defined and undefined_thing.x %}a{% endif %}{% if xs and not empty %}c{% endif %}
{% set ns = namespace() %}{% set ns.a = [1] %}{{ ns.a }}{% set ns.a = ns.a + [2] %}{{ ns.a|length }}
{% set _ = namespace(x=1) %}{{ _.x }}{% set name = name ~ '!' %}{{ name }}
{% set list = [1, 2] %}{{ list|map('string')|join }}{% set loop = 3 %}{{ loop }}
{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }}{% set outer = loop %}{% for k in [1] %}{{ outer.index }}{% endfor %};{% endfor %}
{{ xs.index(1) }}|{{ xs.count(3) }}|{{ xs.copy() }}|{{ d.copy() }}
{{ [1, 2, 3][1:][0] }}|{{ 'abc'[1:][0] }}|{{ {'a': [1]}['a'][0] }}|{{ (1, 2)[1] }}|{{ [[1, 2], [3]][0][1] }}
{{ true and false }}|{{ True }}|{{ False }}|{{ None }}|{{ none is none }}|{{ true + 1 }}|{{ true ~ '' }}
{{ 'a' if 'x' in 'xyz' and not 'q' in 'xyz' else 'b' }}|{{ 1 if 2 > 1 else 0 }}|{{ [1 if yes else 2, 3] }}|{{ {'a': 1 if no else 2} }}
{{ "a" > "b" or 1 }}|{{ 5 > 3 == true }}|{{ 1 != 2 }}|{{ 'a' != 'a' }}
{{ foo.bar is defined }}
{{ d.q.bar is defined }}
{{ d.a is defined and d.a|length == 2 and d.a[0] == 1 }}
{{ users | selectattr("name", "in", ["bo", "cy"]) | map(attribute="age") | sum }}
{{ xs | map("abs") | list | tojson }}|{{ "x" | list }}|{{ d | list }}|{{ {"a": 1}.items() | list }}
{{ 10000000000 * 10 }}|{{ 9007199254740993 + 0 }}|{{ 1e308 * 10 }}|{{ 0.1 + 0.2 }}|{{ 100 / 3 }}|{{ 1e100 }}|{{ 5 // 2.0 }}
{{ 'é' ~ 'ñ' }}|{{ 'é'|upper }}|{{ 'straße'|upper }}|{{ 'İ'|lower }}|{{ 'é'|length }}|{{ ['é'] }}
{{ '\\u00e9\\U0001F642' }}|{{ '\\101' }}|{{ "a\\
b" }}
{{ xs|attr('count') is callable }}|{{ name|attr('upper')() }}|{{ name|attr('nope') }}|{{ d|attr('b') }}
{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}
{% macro show(v, depth=0) %}{% if v is mapping %}{ {%- for k, x in v.items() %}{{ k }}:{{ show(x, depth + 1) }}{% if not loop.last %},{% endif %}{% endfor %} }{% elif v is string %}{{ v }}{% elif v is iterable %}[{% for x in v %}{{ show(x, depth + 1) }}{% endfor %}]{% else %}{{ v }}@{{ depth }}{% endif %}{% endmacro %}{{ show(d) }}|{{ show(tools) }}
{%- set x %}
  indented
{%- endset %}[{{ x }}]
{{ name | upper() }}|{{ name|replace('A','B')|lower }}|{{ -5 | abs }}|{{ (-5) | abs }}|{{ - 5|abs }}
{{ [x for x in xs] }}
{% endif %}
{% if %}{% endif %}
{% for x in xs %}
{{ name
{% unknown_tag %}
{{ 'unclosed }}
{% include 'x' %}
{{ }}
{{ a b }}
{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}
{% filter trim %}   {{ name }}   {% endfilter %}|{% filter replace('a', 'b') %}banana{% endfilter %}
{% for m in [{'role': 'user', 'content': 'hi'}] %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}
{{ namespace(a=1).a }}|{{ namespace({'b': 2}).b }}|{{ namespace().c is defined }}
{% set a = [] %}{% for x in xs %}{% set a = a + [x] %}{% endfor %}{{ a }}
{{ loop is defined }}|{% for x in [1] %}{{ loop is defined }}{% endfor %}
{% call undefined_macro() %}x{% endcall %}
{{ 'x'.join('abc') }}|{{ 'abc'|join('-') }}|{{ d|join('-') }}
{{ 1 if none else 2 if none else 3 }}|{{ (none)|default('x', true) }}|{{ [none, 1]|map('default', 'x', true)|list }}
{{ words | map('length') | list }}|{{ words | map('first') | join }}|{{ [[1, 2], [3]] | map('sum') | list }}|{{ [[1, 2], [3]] | sum(start=[]) }}
{{ text | replace('\\n', '\\\\n') }}|{{ 'a\\\\nb' }}|{{ '\\\\' }}|{{ "\\"" }}|{{ '\\'' }}
""".strip("\n")


def cases():
    """One a line; a line that opens with white space or a comment belongs to the case before it... kept apart by hand."""
    lines = CASES.split("\n")
    at = 0
    while at < len(lines):
        case = lines[at]
        at += 1
        # Multi-line cases: whitespace-control samples, ended by the next line that starts a fresh one-liner.
        while at < len(lines) and (case.count("\n") or lines[at - 1].rstrip("\\") != lines[at - 1] or joins(lines[at - 1], lines[at])):
            if not joins(lines[at - 1], lines[at]):
                break
            case += "\n" + lines[at]
            at += 1
        yield case


def joins(line, following):
    starters = ("  {% if yes %}", " a ", "  {% endif %}", " b{%", "line {#", "  {# own", "{% for x in xs -%}", "  {{ x }},",
                "{%- set x %}", "  indented")
    return line.startswith(starters) or line.endswith("\\")


def main(data):
    scope = {"__name__": "render_reference", "sys": sys}
    source = pathlib.Path(data, "render_reference.py").read_text().replace("sys.exit(main(sys.argv[1:]))", "")
    exec(compile(source, "render_reference.py", "exec"), scope)
    for template in cases():
        row = {"template": template}
        try:
            environment = scope["environment"](datetime.datetime(2026, 1, 2, 3, 4, 5))
            row["text"] = environment.from_string(template).render(**json.loads(json.dumps(DATA)))
            if " at 0x" in row["text"]:
                continue
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row, ensure_ascii=False))
    print(json.dumps({"vars": DATA}, ensure_ascii=False))


main(sys.argv[1])
