// Tests of the commands that pages show: a shell reads back the words that they were made of.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { whyCommand } from './commands.ts'

/** Lets a shell read the command, and returns the words that `platform` would get. */
function wordsOf(command: string): string[] {
  const script = `platform() { printf '%s\\0' "$@"; }\n${command}`
  const env = { LC_ALL: 'C.UTF-8', PATH: '/nowhere' }
  return execFileSync('/bin/bash', ['--norc', '-c', script], { env, encoding: 'utf8' }).split('\0').slice(0, -1)
}

const special = [
  "'",
  '"',
  '\\',
  '$(exit 1)',
  '`',
  ';',
  '\n',
  ' ',
  '\u202E',
  '\u2069',
  '\u200B',
  '\u001B[2J',
  '-',
  '\\u0041',
  'é',
]
const word = fc
  .array(fc.oneof(fc.constantFrom(...special), fc.string({ unit: 'grapheme', maxLength: 3 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map(parts => parts.join('').replaceAll('\0', ''))
  .filter(text => text !== '')

test('a shell reads the words of a command, and the command has no invisible character', () => {
  fc.assert(
    fc.property(word, word, (name, user) => {
      const command = whyCommand({ verb: 'get', resource: 'teams', name, user })
      assert.doesNotMatch(command, /[\p{Cc}\p{Cf}]/u)
      const words = wordsOf(command)
      assert.ok(words.includes(name), command)
      assert.ok(words.includes(user) || words.includes(`--user=${user}`), command)
    }),
    { numRuns: 150 },
  )
})

test('a shell without $-quotes gets another word, but runs nothing', () => {
  const command = whyCommand({ verb: 'get', resource: 'teams', user: "\u200B'; echo run #" })
  const script = `platform() { :; }\n${command}`
  assert.equal(execFileSync('/bin/sh', ['-c', script], { env: { PATH: '/nowhere' }, encoding: 'utf8' }), '')
})
