// Exported secrets import unchanged, and parse errors name the line, never the value.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exec } from '../../../test/support/exec.ts'
import { UsageError } from '../../host/command.ts'
import { type Form, forms, readForm, writeForm } from './formats.ts'
import { readDotenv } from './read-dotenv.ts'

const key = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/)
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'ab \'"\\\n\r\t$`#=;é€\u{1f600}') }),
  fc.string({ unit: 'grapheme' }).filter(one => !one.includes('\0') && one.isWellFormed()),
)
const same = (a: ReadonlyMap<string, Uint8Array>, b: ReadonlyMap<string, Uint8Array>) =>
  assert.deepEqual(
    [...a].map(([k, v]) => [k, Buffer.from(v).toString('base64')]).toSorted(),
    [...b].map(([k, v]) => [k, Buffer.from(v).toString('base64')]).toSorted(),
  )

for (const form of forms)
  test(`${form}: text round-trips, with quotes, line breaks and any other character`, () => {
    fc.assert(
      fc.property(fc.dictionary(key, text, { noNullPrototype: true }), entries => {
        const data = new Map(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value)]))
        same(readForm(form, Buffer.from(writeForm(form, data)), 'f'), data)
      }),
    )
  })

for (const form of ['json', 'yaml'] as const)
  test(`${form}: arbitrary bytes round-trip`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), bytes => {
        const data = new Map([['key', bytes]])
        same(readForm(form, Buffer.from(writeForm(form, data)), 'f'), data)
      }),
    )
  })

test('a shell reads the exported values unchanged', async () => {
  const value = 'it\'s "quoted"\n$HOME `id` \\ end\n'
  const script = `${writeForm('shell', new Map([['VALUE', Buffer.from(value)]]))}printf %s "$VALUE"`
  assert.equal((await exec('sh', ['-c', script])).stdout, value)
})

test('dotenv and shell reject values they cannot represent and name the keys', () => {
  const data = new Map([
    ['binary', Buffer.from([0xff])],
    ['nul', Buffer.from('a\0b')],
    ['a.b', Buffer.from('x')],
  ])
  const problems = (form: Form) => {
    try {
      writeForm(form, data)
    } catch (error) {
      return (error as UsageError).problems.map(one => one.split(' ')[0])
    }
    return []
  }
  assert.deepEqual(problems('dotenv'), ['binary', 'nul'])
  assert.deepEqual(problems('shell'), ['a.b', 'binary', 'nul'])
})

test('the shell format rejects lines that a shell would expand; dotenv takes them literally', () => {
  const lines = [
    'A=$(id)',
    'B=`id`',
    'C=1; D=2',
    'E="$HOME"',
    'F=a b',
    'K="a\\nb"',
    'G="1" # one',
    "H='$(id)'",
    'I="\\$5"',
    'J=plain',
  ]
  const file = lines.join('\n')
  const shown = (text: string, isShell: boolean) =>
    Object.fromEntries([...readDotenv(text, 'f', isShell)].map(([name, value]) => [name, value.toString()]))
  const wrong = (text: string, isShell: boolean): readonly string[] => {
    try {
      return Object.keys(shown(text, isShell))
    } catch (error) {
      return (error as UsageError).problems
    }
  }
  const message = (line: number, key: string) =>
    `f:${line}: a shell would expand the value of ${key}: put it in single quotes`
  const expected = [1, 2, 3, 4, 5, 6].map(line => message(line, lines[line - 1]?.[0] ?? ''))
  assert.deepEqual(wrong(file, true), expected)
  assert.deepEqual(wrong(lines.map(line => `export ${line}`).join('\n'), true), expected)
  assert.equal(shown(file, false)['A'], '$(id)')
  assert.deepEqual(shown(lines.slice(6).join('\n'), true), { G: '1', H: '$(id)', I: '$5', J: 'plain' })
})

test('dotenv supports comments, quotes, export and multi-line values', () => {
  const read = (file: string) =>
    Object.fromEntries([...readDotenv(file, 'f')].map(([name, value]) => [name, value.toString()]))
  assert.deepEqual(
    read(
      '# head\n\nA=1\nexport B = two words # note\r\nC="x\\ty # no note"\nD=\'$raw\\n\' # note\nE="over\ntwo lines"\nF=\nG=a#b\n',
    ),
    {
      A: '1',
      B: 'two words',
      C: 'x\ty # no note',
      D: '$raw\\n',
      E: 'over\ntwo lines',
      F: '',
      G: 'a#b',
    },
  )
})

test('parse errors name the line and never contain the value', () => {
  for (const [file, expected] of [
    ['A=1\nhunter2\n', /^f:2: expected NAME=value$/],
    ['A="hunter2\n', /^f:1: unclosed quotes of A/],
    ['A="x" hunter2\n', /^f:1: unclosed quotes of A/],
    ['A=hunter2\nA=hunter2\n', /^f:2: duplicate key A$/],
  ] as const)
    assert.throws(
      () => readDotenv(file, 'f'),
      (error: unknown) =>
        error instanceof UsageError && expected.test(error.message) && !error.message.includes('hunter2'),
    )
  for (const json of ['[]', '{"a":{"base64":"hunter2"}}', '{"a":["hunter2"]}', '{"a":"hunter2"', '{"a":null}'])
    assert.throws(
      () => readForm('json', Buffer.from(json), 'f'),
      (error: unknown) => error instanceof UsageError && !error.message.includes('hunter2'),
    )
  assert.throws(
    () => readDotenv('junk\n'.repeat(100_000), 'f'),
    (error: UsageError) => error.problems.length === 20,
  )
})
