// Patterns of `matches()`: usual ones work, and slow ones are rejected when auth.yaml is read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxMatchedText, safePattern } from './safe-pattern.ts'

test('patterns of real configurations are accepted', () => {
  for (const [pattern, text] of [
    ['^refs/heads/(main|release-[0-9]+)$', 'refs/heads/release-12'],
    ['^repo:acme/[^:]+:ref:refs/tags/v.*$', 'repo:acme/web:ref:refs/tags/v1'],
    ['^(?:a|b)?c$', 'bc'],
    ['main', 'refs/heads/main'],
    ['^v\\d{1,3}\\.\\d{1,3}$', 'v1.20'],
    ['^[(){}*+?|]+$', '(*)'],
  ] as const) {
    const found = safePattern(pattern)
    assert.ok(found instanceof RegExp, `${pattern}: ${found}`)
    assert.ok(found.test(text), pattern)
  }
})

test('patterns that backtrack for long are rejected, with a reason', () => {
  for (const pattern of [
    '(a+)+$',
    '^(a|a)*$',
    '(a*){5}',
    '^.*.*.*.*x$',
    '.*.*x.*y',
    `^${'a?'.repeat(40)}${'a'.repeat(40)}$`,
    `^${'(a|a)'.repeat(40)}$`,
    '^(?=a)a',
    '(?<n>a)',
    '(a)\\1',
    'x'.repeat(257),
    '[',
    '\\p',
  ])
    assert.equal(typeof safePattern(pattern), 'string', pattern)
})

test('the slowest accepted patterns finish', () => {
  const text = `${'a'.repeat(maxMatchedText - 1)}!`
  for (const pattern of ['a*b', '^a*a*b', `^${'a?'.repeat(6)}a*a*b`, `^${'(a|a)'.repeat(6)}a*a*b`]) {
    const found = safePattern(pattern)
    assert.ok(found instanceof RegExp, pattern)
    assert.equal(found.test(text), false)
  }
})
