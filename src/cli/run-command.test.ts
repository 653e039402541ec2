// Command dispatch with test commands: lookup, flags, help, hints and exit codes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../test/support/fake-io.ts'
import { ApiError, notFound } from '../api/errors.ts'
import { defineCommand, UsageError } from '../host/command.ts'
import { runCommand } from './run-command.ts'

let given: unknown
const cook = defineCommand({
  words: ['kitchen', 'cook'],
  what: 'Cook something.',
  examples: [{ what: 'Soup for two', command: 'platform kitchen cook soup --portions 2' }],
  flags: {
    portions: { type: 'text', value: 'N', what: 'How many eat.', short: 'p', default: '1' },
    salt: { type: 'switch', what: 'With salt.' },
    spice: { type: 'list', value: 'NAME', what: 'A spice.' },
    stove: { type: 'text', value: 'KIND', what: 'Which stove.', choices: ['gas', 'wood'], variable: 'STOVE' },
  },
  positionals: [
    { name: 'DISH', what: 'what to cook' },
    { name: 'SIDE', what: 'what goes with it', optional: true },
  ],
  run: async ({ flags, words }) => {
    given = { ...flags, words }
    return 0
  },
})
const burn = (error: unknown) =>
  defineCommand({
    words: ['kitchen', 'burn'],
    what: 'Fail.',
    examples: [],
    flags: {},
    run: async () => {
      throw error
    },
  })
const commands = [cook, burn(new Error('smoke'))]

test('flags support defaults, lists, short forms and environment variables', async () => {
  const io = fakeIo({}, { env: { STOVE: 'wood' } })
  const args = ['kitchen', 'cook', 'soup', '-p', '3', '--spice', 'dill', '--spice=mint', '--salt']
  assert.equal(await runCommand(commands, args, io), 0)
  assert.deepEqual(given, { portions: '3', salt: true, spice: ['dill', 'mint'], stove: 'wood', words: ['soup'] })
})

test('all argument errors are reported at once, with suggestions and exit code 2', async () => {
  const io = fakeIo()
  const args = ['kitchen', 'cook', '--portion', '2', '--stove', 'gaz', '--salt=maybe', '--spice']
  assert.equal(await runCommand(commands, args, io), 2)
  assert.deepEqual(io.said().trim().split('\n'), [
    'platform: unknown flag --portion; did you mean --portions?',
    'platform: --salt: "maybe" must be true or false',
    'platform: --spice requires a value: --spice NAME',
    'platform: --stove: "gaz" must be gas, wood; did you mean gas?',
    'platform: see platform kitchen cook --help',
  ])
})

test('a missing argument and an extra argument are reported', async () => {
  const [none, many] = [fakeIo(), fakeIo()]
  assert.equal(await runCommand(commands, ['kitchen', 'cook'], none), 2)
  assert.match(none.said(), /DISH is missing: what to cook/)
  assert.equal(await runCommand(commands, ['kitchen', 'cook', 'a', 'b', 'c'], many), 2)
  assert.match(many.said(), /unexpected argument "c"/)
})

test('help starts with the description and the examples', async () => {
  const io = fakeIo()
  assert.equal(await runCommand(commands, ['kitchen', 'cook', '--help'], io), 0)
  assert.deepEqual(io.printed().split('\n').slice(0, 8), [
    'Cook something.',
    '',
    'Examples:',
    '  # Soup for two',
    '  platform kitchen cook soup --portions 2',
    '',
    'Usage:',
    '  platform kitchen cook DISH [SIDE] [flags]',
  ])
  assert.match(io.printed(), /--stove KIND +Which stove\. \(one of gas, wood; or STOVE\)/)
})

test('a group lists its commands, on standard output only for help', async () => {
  const [withHelp, bare] = [fakeIo(), fakeIo()]
  assert.equal(await runCommand(commands, ['help', 'kitchen'], withHelp), 0)
  assert.match(withHelp.printed(), /platform kitchen cook +Cook something\./)
  assert.equal(await runCommand(commands, ['kitchen'], bare), 2)
  assert.equal(bare.printed(), '')
  assert.match(bare.said(), /platform kitchen burn/)
})

test('an unknown command suggests the closest one', async () => {
  const io = fakeIo()
  assert.equal(await runCommand(commands, ['kitchen', 'cok', 'soup'], io), 2)
  assert.match(io.said(), /unknown command "kitchen cok soup"; did you mean platform kitchen cook\?/)
})

test('the error of a command decides the exit code', async () => {
  const named = { group: '', plural: 'services', kind: 'Service' }
  const cases: [unknown, number][] = [
    [new Error('no'), 1],
    [new UsageError(['no']), 2],
    [notFound(named, 'x'), 3],
    [new ApiError(401, '', 'no'), 4],
    [new ApiError(403, '', 'no'), 5],
    [new ApiError(409, '', 'no'), 6],
    [new ApiError(503, '', 'no'), 7],
    [new ApiError(422, '', 'no'), 1],
  ]
  for (const [error, code] of cases)
    assert.equal(await runCommand([burn(error)], ['kitchen', 'burn'], fakeIo()), code, String(error))
})
