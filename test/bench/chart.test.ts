// Charts of the bench: well-formed, plain, and readable on light and dark pages.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chartOf, colours } from '../../bench/chart.ts'
import type { Figure } from '../../bench/measurement.ts'
import { readRecord } from '../../bench/record-files.ts'

const odd: Figure = {
  name: 'a < b & "c" > d',
  value: 52,
  unit: 'ms',
  bare: { name: '<bare>', value: 1.5 },
  wanted: 3,
  direction: 'at-most',
}

test('every chart is well-formed XML of a few plain elements, with nothing to load or run', () => {
  for (const figure of [odd, ...readRecord().figures]) {
    const open: string[] = []
    const svg = chartOf(figure)
    const rest = svg.replace(/<(\/?)([a-z]+)((?: [\w-]+="[^"<&]*")*)(\/?)>/g, (_, closes, name, attributes, empty) => {
      assert.ok(['svg', 'title', 'g', 'rect', 'path', 'circle', 'text'].includes(name), `<${name}> in ${figure.name}`)
      const keys = [...attributes.matchAll(/ ([\w-]+)=/g)].map(([, key]) => key)
      assert.equal(new Set(keys).size, keys.length, `an attribute twice in ${figure.name}`)
      if (closes) assert.equal(open.pop(), name)
      else if (!empty) open.push(name)
      return ''
    })
    assert.deepEqual(open, [], figure.name)
    assert.doesNotMatch(rest.replace(/&(amp|lt|gt|quot);/g, ''), /[<>&]/, figure.name)
    assert.equal(svg.match(/https?:/g)?.length, 1, 'its namespace is its only address')
    assert.ok(svg.length < 1500)
  }
})

test('a chart shows the figure, its target and whether it is met; bars have the lengths of their values', () => {
  const svg = chartOf(odd)
  assert.match(svg, /<title>a &lt; b &amp; &quot;c&quot; &gt; d: 52 ms, wanted ≤ 3 ms: falls short<\/title>/)
  assert.match(svg, /&lt;bare&gt; 1.5 ms/)
  assert.deepEqual(
    [...svg.matchAll(/<rect .*?width="(\d+)"/g)].map(([, width]) => Number(width)),
    [190, 5],
  )
  assert.match(chartOf({ ...odd, direction: 'at-least' }), /wanted ≥ 3 ms: met/)
  assert.match(chartOf({ ...odd, value: -2 }), /<rect x="10" y="24" width="1"/)
  assert.equal(chartOf(odd), svg)
})

test('no label is wider than its chart', () => {
  for (const figure of readRecord().figures)
    for (const [, x, words = ''] of chartOf(figure).matchAll(/<text x="(\d+)"[^>]*>([^<]*)/g))
      assert.ok(Number(x) + words.length * 6 <= 400, `${figure.name}: ${words}`)
})

test('every colour stands out on a white page and on a dark one', () => {
  const light = (hex: string) => {
    const [r = 0, g = 0, b = 0] = [1, 3, 5]
      .map(at => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
      .map(part => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one: string, other: string) => {
    const [less = 0, more = 0] = [light(one), light(other)].toSorted((a, b) => a - b)
    return (more + 0.05) / (less + 0.05)
  }
  for (const colour of Object.values(colours))
    for (const page of ['#ffffff', '#0d1117']) assert.ok(contrast(colour, page) >= 3.5, `${colour} on ${page}`)
})

test('a curve has a point per size, with its value, and the target', () => {
  const points = [1000, 10_000, 100_000].map(at => ({ at, value: at / 100 }))
  const svg = chartOf({
    name: 'cost by objects: get',
    value: 100,
    unit: 'times the CPU',
    curve: { axis: 'objects in the store', unit: 'µs', points },
    wanted: 1.5,
    direction: 'at-most',
  })
  assert.equal(svg.match(/<circle /g)?.length, 3)
  for (const words of ['>1,000<', '>100,000<', '>10 µs<', '>1,000 µs<', 'objects in the store; wanted ≤ 1.5 times'])
    assert.ok(svg.includes(words), `${words} in ${svg}`)
  // Both axes are logarithmic: a cost in proportion to the size is a straight line.
  const [first, second, third] = [...svg.matchAll(/cx="(\d+)" cy="(\d+)"/g)].map(([, x, y]) => [Number(x), Number(y)])
  assert.ok(first && second && third)
  const middle = [0, 1].map(axis => ((first[axis] as number) + (third[axis] as number)) / 2)
  for (const axis of [0, 1]) assert.ok(Math.abs((second[axis] as number) - (middle[axis] as number)) <= 1)
})
